"""No vocabulary gives [UNK] for the text that it was trained on."""

import json
from pathlib import Path
from typing import Any

import pytest

from bertdata.tokens.files import VocabularyFile
from bertdata.tokens.load import tokenizer_of
from bertdata.tokens.training.special_tokens import Kind, number_special_tokens
from bertdata.tokens.training.texts import TextFiles
from bertdata.tokens.training.train import train_tokenizer
from bertdata.tokens.training.wordpiece import train_vocabulary

pytest.importorskip("tokenizers")

RANGES = (
    range(0xD800),
    range(0xE000, 0x34000),
    range(0xE0000, 0xE0200),
    range(0x34000, 0xE0000, 64),
    range(0xE0200, 0x110000, 64),
)
UNICODE = [chr(point) for points in RANGES for point in points]
"""All code points of planes 0 to 3 except surrogates, and the tags of plane 14. Of the others, which are
unassigned or private and all alike, every 64th."""

CASES: dict[str, dict[str, bool]] = {
    "lower": {"lower_case": True},
    "accents": {"lower_case": True, "keep_accents": True},
    "cased": {"lower_case": False},
}
FORMS = [("wordpiece", case) for case in CASES] + [("unigram", "lower"), ("unigram", "cased")]

HARD = "".join(
    map(
        chr,
        (
            *range(0x20),  # controls, sentencepiece's marks among them
            *range(0x80, 0xA1),
            *range(0x8D0, 0x903),  # Quranic marks
            0x130, 0x1E9E, 0x3A3, 0x345,  # case that changes length, final sigma, a mark made a letter
            0xAFA, 0xC04, 0x2E43, 0xA69E, 0x1885,
            *range(0x2580, 0x25A0),  # sentencepiece's sign for what is unknown
            0x200B, 0x2028, 0x2029, 0x3000, 0xFEFF, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF,
            0xAC00, 0xD7A3, 0x4E00, 0x9FFF, 0xF900, 0xE000, 0xF8FF,
            *range(0x1E900, 0x1E960),  # Adlam
            0x10570, 0x16EA0, 0x1D15E, 0x1F600, 0x2B820, 0x2F800, 0x323AF, 0xE0001, 0xF0000, 0x10FFFD,
        ),
    )
)  # fmt: skip
"""Characters that a program here treats otherwise than another, and some of each plane."""


def lines_of(characters: str) -> list[str]:
    """A document for each character: alone, and at each place of a word."""
    return [f"{character} {character}a b{character}c d{character}" for character in characters]


def write_lines(path: Path, lines: list[str]) -> TextFiles:
    path.write_text("".join(f"{line}\n\n" for line in lines), encoding="utf-8", newline="")
    return TextFiles([str(path)])


def unknown_in_json(kind: Kind, case: str, characters: str, tmp_path: Path) -> list[str]:
    """Those of the characters that the library makes unknown with a tokenizer.json trained on them."""
    if kind == "unigram":
        pytest.importorskip("sentencepiece")
    lines = lines_of(characters)
    text = write_lines(tmp_path / "text", lines)
    special = number_special_tokens(kind)
    tokenizer = train_tokenizer(text, kind=kind, size=1 << 21, special=special, **CASES[case])
    unknown = tokenizer.token_to_id(special.roles["unk"])
    encoded = tokenizer.encode_batch(lines)
    return [hex(ord(one)) for one, found in zip(characters, encoded, strict=True) if unknown in found.ids]


def unknown_in_lines(dialect: str, case: str, characters: str, tmp_path: Path) -> list[str]:
    """Those that ``create`` makes unknown with a vocabulary of lines trained on them."""
    lines = lines_of(characters)
    tokens = train_vocabulary(write_lines(tmp_path / "text", lines), size=1 << 21, **CASES[case])
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8", newline="")
    file = VocabularyFile(path=str(path), dialect=dialect, **CASES[case])
    found = tokenizer_of(file).encode_each(lines)
    unknown, start, bad = tokens.index("[UNK]"), 0, []
    for character, end in zip(characters, found.ends, strict=True):
        if unknown in found.ids[start:end]:
            bad.append(hex(ord(character)))
        start = end
    return bad


@pytest.mark.parametrize(("kind", "case"), [*FORMS, ("bpe", "lower")])
def test_a_json_knows_every_character_of_its_text(kind: Kind, case: str, tmp_path: Path) -> None:
    assert unknown_in_json(kind, case, HARD, tmp_path) == []


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dialect", ["google", "mlperf", "graphcore"])
def test_a_vocabulary_of_lines_knows_every_character_of_its_text(
    dialect: str, case: str, tmp_path: Path
) -> None:
    assert unknown_in_lines(dialect, case, HARD, tmp_path) == []


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "case"), FORMS)
def test_a_json_knows_unicode(kind: Kind, case: str, tmp_path: Path) -> None:
    for start in range(0, len(UNICODE), 1 << 15):
        characters = "".join(UNICODE[start : start + (1 << 15)])
        assert unknown_in_json(kind, case, characters, tmp_path) == []


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES)
def test_a_vocabulary_of_lines_knows_unicode(case: str, tmp_path: Path) -> None:
    for start in range(0, len(UNICODE), 1 << 15):
        characters = "".join(UNICODE[start : start + (1 << 15)])
        assert unknown_in_lines("google", case, characters, tmp_path) == []


def test_marks_that_the_library_keeps_are_learned(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text", ["قال\u08d4 نص"] * 3)
    tokenizer = train_tokenizer(
        text, kind="wordpiece", size=100, lower_case=True, special=number_special_tokens("wordpiece")
    )
    assert tokenizer.encode("قال\u08d4 نص").tokens == ["[CLS]", "قال\u08d4", "نص", "[SEP]"]


def test_a_capital_sigma_is_learned_as_the_library_lower_cases_it(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text", ["ΟΔΟΣ"] * 3)
    tokenizer = train_tokenizer(
        text, kind="wordpiece", size=100, lower_case=True, special=number_special_tokens("wordpiece")
    )
    assert tokenizer.encode("ΟΔΟΣ", add_special_tokens=False).tokens == ["οδοσ"]
    assert "οδος" in train_vocabulary(text, size=100, lower_case=True)


def pieces(tokenizer: Any) -> set[str]:
    return {piece for piece, _ in json.loads(tokenizer.to_str())["model"]["vocab"]}


def test_words_with_sentencepieces_own_marks_are_learned(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    text = write_lines(tmp_path / "text", ["alpha ▅Ω▅ beta x\0y"] * 3)
    tokenizer = train_tokenizer(
        text, kind="unigram", size=60, lower_case=False, special=number_special_tokens("unigram")
    )
    assert {"▅", "Ω", "\0", "x", "y"} <= pieces(tokenizer)
    assert not any(character > "\U000f0000" for piece in pieces(tokenizer) for character in piece)
    assert tokenizer.decode(tokenizer.encode("alpha ▅Ω▅ x\0y").ids) == "alpha ▅Ω▅ x\0y"
