"""A tokenizer.json on the kit's contexts of XQuAD, in four languages: what the library makes of them."""

import json
from pathlib import Path

import pytest
import tokenizers

from bertdata.tokens.document_text import compute_word_starts
from bertdata.tokens.load import find_tokenizer_file, tokenizer_of
from tests.support.byte_bpe import LANGUAGES, PRE_TOKENIZERS, byte_bpe
from tests.support.tokenizer_files import TRAINERS

CONTEXTS = 40
"""Of each language."""


def contexts(kit: Path) -> list[str]:
    found: list[str] = []
    for code in ("en", "de", "zh", "th"):
        articles = json.loads((kit / "squad" / f"xquad.{code}.json").read_text(encoding="utf-8"))["data"]
        of_code = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
        found += of_code[:CONTEXTS]
    assert len(found) == 4 * CONTEXTS
    return found


@pytest.mark.parametrize("name", [*PRE_TOKENIZERS, *(kind for kind in TRAINERS if kind != "bpe"), "uncased"])
def test_ids_places_and_word_starts_are_the_library_s(kit: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "tokenizer.json"
    if name in PRE_TOKENIZERS:
        path.write_text(json.dumps(byte_bpe(name)))
    elif name == "uncased":
        uncased = tokenizers.BertWordPieceTokenizer(
            str(kit / "vocab" / "bert-base-uncased.txt"), lowercase=True
        )
        uncased.save(str(path))
    else:
        TRAINERS[name](path, [*LANGUAGES.values()] * 4, size=800)
    texts = [" ".join(text.split("\n")) for text in [*contexts(kit), *LANGUAGES.values()]]
    library = tokenizers.Tokenizer.from_file(str(path))
    library.no_truncation()
    library.no_padding()
    library.post_processor = None  # it takes letters off places
    tokenizer = tokenizer_of(find_tokenizer_file(str(path)))
    found = tokenizer.encode_each(texts)
    documents = tokenizer.encode(["\n\n".join(texts).encode()], ["texts"])
    assert list(documents.ids) == list(found.ids)
    assert list(documents.sentence_ends) == list(found.ends)
    assert documents.documents == len(texts)
    assert found.starts is not None
    assert found.stops is not None
    first = 0
    for text, stop in zip(texts, found.ends, strict=True):
        expected = library.encode(text, add_special_tokens=False)
        assert list(found.ids[first:stop]) == expected.ids
        places = zip(found.starts[first:stop], found.stops[first:stop], strict=True)
        assert list(places) == expected.offsets
        assert list(found.word_starts[first:stop]) == list(compute_word_starts(expected.word_ids))
        first = stop
