"""Slices of the text that a vocabulary is learned from."""

import random
from collections import Counter
from pathlib import Path

import pytest

from bertdata.errors import InputError
from bertdata.tokens.training import texts
from bertdata.tokens.training.texts import TextFiles
from tests.support.memory import peak_bytes

WHITE = (" ", "  ", "\t", " \t ", "\u3000", "\u2028 ", "\xa0", "\r", " \n", "\n", "\n ")
WORDS = ("it's", "I'll", "東京", "naïve", "42nd", "...", "'tis", "e\u0301", "🙂")


def slices_of(path: Path) -> list[str]:
    return list(TextFiles([str(path)]).read_slices())


def test_documents_are_sentences_with_blanks_between(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\n\none\r\ntwo \rthree\n \t\nfour\n\n\n")
    assert slices_of(path) == ["one two  three", "four"]


@pytest.mark.parametrize("seed", range(5))
def test_slices_have_the_pretokens_of_the_whole_document(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    split = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str
    rng = random.Random(seed)
    text = "".join(rng.choice(WORDS) + rng.choice(WHITE) for _ in range(400))
    path = tmp_path / "text"
    path.write_text(text, encoding="utf-8", newline="")
    whole = slices_of(path)
    monkeypatch.setattr(texts, "SLICE_CHARACTERS", 20)
    monkeypatch.setattr(texts, "_BLOCK_BYTES", 7)
    sliced = slices_of(path)
    assert len(sliced) > 3 * len(whole)
    assert "".join(sliced) == "".join(whole)
    counts = [Counter(word for one in some for word, _ in split(one)) for some in (whole, sliced)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("seed", range(20))
def test_a_long_line_is_cut_at_the_last_single_blank_between_two_texts(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        line = "".join(rng.choice(" \ta") for _ in range(rng.randrange(9)))
        cuts = [
            place
            for place in range(1, len(line.rstrip()))
            if line[place] == " " and line[:place].strip() and not line[place - 1].isspace()
        ]
        assert texts._find_line_cut(line) == max(cuts, default=0)


def test_a_line_without_end_comes_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "SLICE_CHARACTERS", 10)
    monkeypatch.setattr(texts, "LONGEST_RUN", 30)
    found = list(texts._split_lines(["some words ", "and more of them ", "x" * 50, " end\nlast"]))
    # each time a block has been read; what is left of a line when its end is read stays whole
    assert found == ["some", "words and more of", "them", "x" * 30, f"{'x' * 20} end", "last"]


def test_a_byte_that_is_not_utf8_is_named_by_its_line_behind_the_first_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "_BLOCK_BYTES", 16)
    path = tmp_path / "text"
    path.write_bytes(b"line\n" * 9 + b"na\xefve\n")
    with pytest.raises(
        InputError, match=r"text: line 10: byte 0xef at offset 47 is not UTF-8; it looks like"
    ):
        slices_of(path)


@pytest.mark.parametrize(
    "between", ["\n", " ", "", " \n"], ids=["lines", "one line", "no blank", "blank ends"]
)
@pytest.mark.thorough_after_first
def test_memory_does_not_grow_with_a_document(between: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(f"understanding{between}" * (1 << 19), encoding="utf-8")

    def read() -> None:
        for _ in TextFiles([str(path)]).read_slices():
            pass

    assert path.stat().st_size > 6 << 20
    assert peak_bytes(read) < 4 << 20
