"""fairseq's ``dict.txt`` with lines that overwrite an earlier symbol, and with odd counts.

The ids are those of fairseq 0.12.3's Dictionary: a word has the id of its last line, an unknown word and the
ends of a line have those of the four special symbols.
"""

from pathlib import Path

import pytest

from bertdata.tokens.fairseq_dictionary import compute_fairseq_ids, parse_dictionary
from bertdata.tokens.load import tokenizer_of, vocabulary_of
from bertdata.tokens.tokenizer_json import find_tokenizer_json

CAMEMBERT = "<unk> 999 #fairseq:overwrite\n<s> 999 #fairseq:overwrite\n, 999\n"
"""The beginning of CamemBERT's file, but for </s>."""


def ids_of(text: str, dictionary: str, folder: Path) -> list[int]:
    """The ids of a line of words by the dictionary."""
    (folder / "dict.txt").write_text(dictionary, encoding="utf-8", newline="")
    file = find_tokenizer_json(str(folder / "dict.txt"), {})
    [row] = tokenizer_of(file).encode_each([text]).lists()
    return list(map(int, row))


@pytest.mark.parametrize(
    ("text", "dictionary", "ids"),
    [
        (", x , <s> <unk> </s>", CAMEMBERT, [6, 3, 6, 5, 4, 2]),
        ("a b", "a 5\nb 4\na 3 #fairseq:overwrite\n", [6, 5]),
        ("a a#overwritten", "a 5\na#overwritten 4\na 3 #fairseq:overwrite\n", [6, 5]),
        ("ie p", "ie -0\np -1\n", [4, 5]),
        ("b c a", "a +1\r\nb 2\rc 3", [5, 6, 4]),
        ("<mask> a", "a 1\n<mask> 0\n", [5, 4]),
    ],
    ids=["camembert", "a word", "a name", "negative counts", "line ends", "mask at the end"],
)
def test_words_have_the_ids_that_fairseq_gives_them(text, dictionary, ids, tmp_path):
    assert ids_of(text, dictionary, tmp_path) == ids


def test_roles_keep_the_first_ids_where_their_symbols_are_overwritten(tmp_path):
    (tmp_path / "dict.txt").write_text(CAMEMBERT + "</s> 9 #fairseq:overwrite\n", encoding="utf-8")
    vocabulary = vocabulary_of(find_tokenizer_json(str(tmp_path / "dict.txt"), {}))
    roles = [vocabulary.role(role) for role in ("cls", "pad", "sep", "unk", "mask")]
    assert roles == [0, 1, 2, 3, 8]
    assert compute_fairseq_ids(vocabulary) == list(range(9))


@pytest.mark.parametrize("text", [CAMEMBERT, "ie 0\np -1\n", "a 1\na 2 #fairseq:overwrite\n"])
def test_a_dictionary_is_written_as_it_was_read(text):
    assert parse_dictionary(text.encode(), "dict.txt").dump() == text.encode()
