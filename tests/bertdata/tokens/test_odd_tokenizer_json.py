"""A tokenizer.json that the library refuses, reads otherwise or dies of: its ids, or one line."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from bertdata.errors import VocabularyError
from bertdata.tokens.bpe.settings import make_byte_alphabet
from bertdata.tokens.load import describe_engine, tokenizer_of
from bertdata.tokens.tokenizer_json import find_tokenizer_json
from tests.soak.tokenizer_fuzz import DIFFERS, compare_file, run_cases
from tests.support.byte_bpe import added, byte_bpe
from tests.support.model_directories import IDS, bert_json


def written(path: Path, value: Any) -> str:
    file = path / "tokenizer.json"
    file.write_text(json.dumps(value))
    return str(file)


def ids_of(path: str, text: str) -> list[int]:
    return list(tokenizer_of(find_tokenizer_json(path, {})).encode_each([text]).ids)


def refusal(path: str) -> str:
    with pytest.raises(VocabularyError) as caught:
        ids_of(path, "a text")
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_two_added_tokens_that_are_one_text_once_normalised_are_refused(tmp_path: Path) -> None:
    number = len(IDS)
    tokens = {number: "Istanbul", number + 1: "istanbul"}
    value = bert_json(IDS, {})
    value["added_tokens"] = [added(key, token, normalized=True) for key, token in tokens.items()]
    message = refusal(written(tmp_path, value))
    assert "the added tokens 'Istanbul' and 'istanbul'" in message
    assert "changes from load to load" in message


def test_an_added_token_that_is_empty_once_normalised_is_refused(tmp_path: Path) -> None:
    """The library fails on a text of it, or takes memory until there is none."""
    value = bert_json(IDS, {})
    value["added_tokens"] = [added(len(IDS), "\u0301", normalized=True)]
    message = refusal(written(tmp_path, value))
    assert f"(id {len(IDS)}) is empty once normalised" in message


def gapped() -> dict[str, Any]:
    """A byte-level BPE of 257 tokens, of which <s> has the id 300."""
    value = byte_bpe()
    value["model"]["vocab"] = {unit: number for number, unit in enumerate(make_byte_alphabet())} | {
        "<s>": 300
    }
    value["model"]["merges"] = []
    value["added_tokens"] = [added(300, "<s>", special=True)]
    return value


def test_an_added_token_behind_a_gap_that_the_file_numbers_otherwise_is_refused(tmp_path: Path) -> None:
    value = gapped()
    value["added_tokens"].append(added(301, "<mask>", special=True))
    message = refusal(written(tmp_path, value))
    assert "the tokenizers library gives '<mask>' the id 257, the file another" in message


def test_an_added_token_behind_a_gap_has_the_librarys_id(tmp_path: Path) -> None:
    value = gapped()
    value["added_tokens"].insert(0, added(257, "<mask>", special=True))
    path = written(tmp_path, value)
    expected = Tokenizer.from_file(path).encode("a <mask> b<s>").ids
    assert ids_of(path, "a <mask> b<s>") == expected
    note = describe_engine(find_tokenizer_json(path, {}))
    assert note is not None
    assert note.endswith("kernel")


def test_a_file_that_ends_the_librarys_process_is_refused_in_a_line(tmp_path: Path) -> None:
    value = {
        "added_tokens": [],
        "model": {
            "type": "BPE",
            "vocab": {"a": 0, "é": 1},
            "merges": [["a", "é"]],
            "continuing_subword_prefix": "x",
        },
    }
    message = refusal(written(tmp_path, value))
    assert "the tokenizers library ends its process on this file (signal 6, SIGABRT)" in message
    assert "continuing_subword_prefix 'x'" in message


def test_a_normaliser_that_multiplies_a_text_is_refused_before_it_does(tmp_path: Path) -> None:
    value = byte_bpe()
    doubling = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    value["normalizer"] = {"type": "Sequence", "normalizers": [doubling] * 32}
    message = refusal(written(tmp_path, value))
    assert "its normalizer makes" in message
    assert "more than 256 times as long as it is" in message


def test_many_replacements_that_leave_a_text_its_length_are_read(tmp_path: Path) -> None:
    value = byte_bpe()
    steps = [{"type": "Replace", "pattern": {"Regex": "x+"}, "content": "xx"} for _ in range(12)]
    value["normalizer"] = {"type": "Sequence", "normalizers": steps}
    path = written(tmp_path, value)
    assert ids_of(path, "a x lamp") == Tokenizer.from_file(path).encode("a x lamp").ids


def test_a_replacement_of_the_empty_text_on_which_the_library_fails_is_one_line(tmp_path: Path) -> None:
    value = byte_bpe()
    value["normalizer"] = {"type": "Replace", "pattern": {"String": ""}, "content": "is"}
    path = written(tmp_path, value)
    library = Tokenizer.from_file(path)
    assert library.normalizer.normalize_str("abc") == "isaisbiscis"
    with pytest.raises(BaseException, match="index out of bounds"):  # a panic is no Exception
        library.encode("a text")
    assert "the tokenizers library cannot encode a document of a text (index out of bounds" in refusal(path)


def test_a_replacement_of_the_empty_text_may_not_multiply_a_text(tmp_path: Path) -> None:
    value = byte_bpe()
    value["normalizer"] = {"type": "Replace", "pattern": {"String": ""}, "content": "is" * 40_000}
    assert "more than 256 times as long as it is" in refusal(written(tmp_path, value))


ODD: dict[str, tuple[tuple[Any, ...], Any]] = {
    "a text for a switch": (("pre_tokenizer", "add_prefix_space"), "false"),
    "a text for ignore_merges": (("model", "ignore_merges"), "x"),
    "another version": (("version",), "9.0"),
    "an unknown decoder": (("decoder",), {"type": "None such"}),
    "an unknown part": (("more",), 1),
    "truncation that is none": (("truncation",), 3),
    "null for added tokens": (("added_tokens",), None),
    "an added token without a flag": (("added_tokens", 0), {"id": 0, "content": "<s>"}),
    "merges of two forms": (("model", "merges", 0), "h e"),
    "a merge of three": (("model", "merges", 0), ["h", "e", "r"]),
    "an object as merge": (("model", "merges", 0), {"h": 0, "e": 1}),
    "a dropout of 2": (("model", "dropout"), 2.0),
    "a number as pattern": (
        ("normalizer",),
        {"type": "Replace", "pattern": {"String": 5}, "content": "b"},
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_what_the_library_refuses_is_refused(name: str, tmp_path: Path) -> None:
    keys, value = ODD[name]
    whole = copy.deepcopy(byte_bpe())
    place: Any = whole
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path = written(tmp_path, whole)
    with pytest.raises(Exception, match=r"."):  # the library's errors are of no class of their own
        Tokenizer.from_file(path)
    refusal(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocab", []),
        ("unk_token", {}),
        ("unk_token", None),
        ("max_input_chars_per_word", "x"),
        ("vocab", None),
    ],
)
def test_a_wrong_type_in_a_wordpiece_is_one_line(key: str, value: Any, tmp_path: Path) -> None:
    whole = bert_json(dict(IDS), {})
    whole["model"][key] = value
    refusal(written(tmp_path, whole))


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf{}",
        b'{"model": NaN}',
        b'{"model": {"type": "BPE", "type": "BPE"}}',
        b'{"model": {"vocab": {"\\ud800": 0}}}',
        b"[" * 100_000,
        '{"model": {}}'.encode("utf-16"),
        b'{"model": {"vocab": {"a": 0}}, "normalizer": ' + b'{"a":' * 90 + b"1" + b"}" * 91,
    ],
)
def test_json_that_the_library_does_not_read_is_one_line(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(data)
    refusal(str(path))


def test_files_drawn_at_random_give_the_librarys_ids_or_a_line() -> None:
    """A share of the fuzz of tests/soak/tokenizer_fuzz.py."""
    outcomes = run_cases(compare_file, 11, 0, 250)
    assert [found for found in outcomes if found[1].kind == DIFFERS] == []
