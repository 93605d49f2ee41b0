"""The seam of tokenisers: examples are made of any tokeniser's documents, knowing only its Vocabulary."""

import hashlib
from array import array

import pytest

from bertdata import _native
from bertdata.build import documents
from bertdata.errors import VocabularyError
from bertdata.examples.bert.objective import BERT
from bertdata.examples.bert.settings import BertSettings
from bertdata.records import Documents, Vocabulary
from bertdata.tokens.files import TokenizerJson
from bertdata.tokens.load import load_tokenizer
from bertdata.tokens.tokenizer import Tokenizer

SPECIAL = ("[CLS]", "[SEP]", "[MASK]")


class ByteTokenizer:
    """Every byte is a token, none is unknown; a byte that is not the first of its word continues it."""

    def __init__(self) -> None:
        plain = [chr(byte) for byte in range(128)]
        inner = [f"-{character}" for character in plain]
        words = [*plain, *inner, *SPECIAL]
        self.vocabulary = Vocabulary(
            name="bytes",
            md5=hashlib.md5("".join(words).encode()).hexdigest(),
            words=words,
            continues_word=bytes(128 <= number < 256 for number in range(len(words))),
            replacements=tuple(range(256)),
            cls=256,
            sep=257,
            mask=258,
        )

    def encode(self, texts: list[bytes], names: list[str]) -> Documents:
        ids, sentence_ends, document_ends = array("H"), array("I"), array("I")
        for line in [*b"\n".join(texts).split(b"\n"), b""]:
            for word in line.split():
                ids.extend([word[0], *(128 + byte for byte in word[1:])])
            if line:
                sentence_ends.append(len(ids))
            elif len(sentence_ends) > (document_ends[-1] if document_ends else 0):
                document_ends.append(len(sentence_ends))
        return Documents(ids=ids, sentence_ends=sentence_ends, document_ends=document_ends)


TEXT = b"a lamp was lit\nthe keeper slept\n\nbees came at noon\nno one saw\n\nthe sea rose\n"


def make(tokenizer: Tokenizer, settings: BertSettings, engine: str) -> list[object]:
    encoded = tokenizer.encode([TEXT], ["text"])
    examples = BERT.make(encoded, tokenizer.vocabulary, settings, engine)
    return list(examples.batch(0, len(examples)).examples())


@pytest.mark.skipif(not _native.available(), reason="the kernels are not built")
@pytest.mark.parametrize("whole_words", [False, True])
def test_both_engines_make_the_same_examples_of_another_tokeniser(whole_words):
    settings = BertSettings(
        max_seq_length=40, max_predictions_per_seq=9, dupe_factor=6, whole_word_mask=whole_words
    )
    made = make(ByteTokenizer(), settings, "native")
    assert made == make(ByteTokenizer(), settings, "python")
    assert len(made) > 10


def test_whole_words_follow_the_vocabulary_s_own_continuations():
    settings = BertSettings(
        max_seq_length=64,
        max_predictions_per_seq=20,
        dupe_factor=10,
        whole_word_mask=True,
        masked_lm_prob=0.3,
    )
    tokenizer = ByteTokenizer()
    continues = tokenizer.vocabulary.continues_word
    split = 0
    for example in make(tokenizer, settings, "python"):
        labels = dict(zip(example.positions, example.labels, strict=True))
        original = [labels.get(place, token) for place, token in enumerate(example.ids)]
        for place in range(2, len(original)):
            if continues[original[place]] and original[place - 1] < 256:
                split += (place in labels) != (place - 1 in labels)
    assert split == 0


def test_a_tokeniser_without_an_unknown_token_has_no_count_of_it(monkeypatch, tmp_path):
    monkeypatch.setattr(documents, "tokenizer_of", lambda *arguments: ByteTokenizer())
    (tmp_path / "part").write_bytes(TEXT)
    loaded = documents.PartReader(str(tmp_path / "part"), TokenizerJson(path="bytes")).load(BertSettings())
    assert loaded.entry.unknown_tokens is None
    assert "unknown_tokens" not in loaded.entry.as_json()
    assert loaded.warnings == ()


def test_the_first_tokeniser_is_wordpiece(small_vocabulary_file):
    tokenizer = load_tokenizer(str(small_vocabulary_file), "mlperf", True)
    assert tokenizer.vocabulary.words[tokenizer.vocabulary.mask] == "[MASK]"
    assert tokenizer.vocabulary.md5 == hashlib.md5(small_vocabulary_file.read_bytes()).hexdigest()
    assert tokenizer.encode([b"a\n"], ["text"]).tokens > 0


def test_a_file_of_more_prefixes_than_a_vocabulary_can_have_is_refused(tmp_path):
    """Twenty lines of a megabyte, each of its own letter: a tree of twenty million nodes."""
    lines = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *(chr(ord("a") + number) * 1_000_000 for number in range(20)),
    ]
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(lines))
    with pytest.raises(
        VocabularyError, match="^the vocabulary has more than 16 million prefixes; expected words"
    ):
        load_tokenizer(str(path), "mlperf", True, "native")


def test_a_vocabulary_that_was_changed_is_read_anew(tmp_path, small_vocabulary_file):
    """A notebook that makes a vocabulary again must not go on with the one before."""
    path = tmp_path / "vocab.txt"
    words = small_vocabulary_file.read_text()
    path.write_text(words)
    first = load_tokenizer(str(path), "mlperf", True)
    assert load_tokenizer(str(path), "mlperf", True) is first
    path.write_text(f"{words}lighthousekeepers\n")
    again = load_tokenizer(str(path), "mlperf", True)
    assert again.vocabulary.tokens == first.vocabulary.tokens + 1
