"""A tokenizer.json is known exactly, or not at all and the reason is said."""

import copy
import json
from dataclasses import asdict
from typing import Any

import pytest
from tokenizers import Tokenizer

from bertdata.tokens.bpe.recognition import recognise_byte_bpe
from bertdata.tokens.bpe.settings import ByteBpe
from bertdata.tokens.json_document import parse_tokenizer_json
from tests.support.byte_bpe import PRE_TOKENIZERS, ROBERTA, added, byte_bpe, byte_level, sequence, split

SIZE = len(byte_bpe()["model"]["vocab"])


def known(parsed: dict[str, Any]) -> ByteBpe:
    found = recognise_byte_bpe(parsed)
    assert isinstance(found, ByteBpe), found
    return found


@pytest.mark.parametrize(
    ("pre_tokenizer", "pattern", "digits", "prefix_space"),
    [
        ("gpt2", "gpt2", None, False),
        ("gpt2 with a blank", "gpt2", None, True),
        ("gpt2 by Split", "gpt2", None, False),
        ("llama3", "llama3", None, False),
        ("qwen2", "qwen2", None, False),
        ("each digit", "gpt2", "each", False),
        ("runs of digits", "gpt2", "runs", True),
    ],
)
def test_the_pre_tokenisers_of_published_models_are_known(pre_tokenizer, pattern, digits, prefix_space):
    found = known(byte_bpe(pre_tokenizer))
    assert (found.pattern, found.digits, found.prefix_space) == (pattern, digits, prefix_space)


def test_merges_are_read_as_pairs_and_as_texts():
    pairs = byte_bpe()
    texts = copy.deepcopy(pairs)
    texts["model"]["merges"] = [" ".join(merge) for merge in pairs["model"]["merges"]]
    found = known(pairs)
    assert found.merges == known(texts).merges
    first, second = pairs["model"]["merges"][0]
    ids = pairs["model"]["vocab"]
    assert found.merges[ids[first], ids[second]] == (0, ids[first + second])


def test_normalisers_and_post_processors_that_change_nothing_else_are_known():
    assert not known(byte_bpe()).composes
    assert known(byte_bpe(composes=True)).composes
    assert known(byte_bpe(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}]})).composes
    assert known(byte_bpe(post_processor=ROBERTA)).pattern == "gpt2"
    assert known(byte_bpe(post_processor=ROBERTA | {"trim_offsets": False})).pattern == "gpt2"
    assert known(byte_bpe(ignore_merges=True)).whole_words


def of_split(**changes: Any) -> dict[str, Any]:
    steps = copy.deepcopy(split("llama3"))
    steps["pretokenizers"][0].update(changes)
    return steps


WITH_UNKNOWN_PARTS = byte_bpe()["model"]["vocab"] | {"\u3042b": SIZE, "b\u3042": SIZE + 1}
"""A vocabulary with the results of two merges, but not with their part \u3042."""

WITHOUT_USE_REGEX = {name: value for name, value in byte_level(False).items() if name != "use_regex"}
"""The library takes it as true."""

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "another model": ({"type": "Unigram"}, "its model is Unigram"),
    "byte_fallback": ({"byte_fallback": True}, "its model has byte_fallback"),
    "a prefix": ({"continuing_subword_prefix": "##"}, "its model has continuing_subword_prefix"),
    "a suffix": ({"end_of_word_suffix": "</w>"}, "its model has end_of_word_suffix"),
    "lower-casing": ({"normalizer": {"type": "Lowercase"}}, "its normaliser is Lowercase"),
    "two normalisers": (
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}},
        "its normaliser is NFC and Lowercase",
    ),
    "no pre-tokeniser": ({"pre_tokenizer": None}, "its pre-tokeniser is none"),
    "words": ({"pre_tokenizer": {"type": "Whitespace"}}, "its pre-tokeniser is Whitespace"),
    "no pattern": ({"pre_tokenizer": byte_level(False, use_regex=False)}, "its pre-tokeniser is ByteLevel"),
    "a second pattern": (
        {"pre_tokenizer": sequence(split("qwen2")["pretokenizers"][0], byte_level(False))},
        "its pre-tokeniser is Split and ByteLevel",
    ),
    "a second pattern that is usual": (
        {"pre_tokenizer": sequence(split("qwen2")["pretokenizers"][0], WITHOUT_USE_REGEX)},
        "its pre-tokeniser is Split and ByteLevel",
    ),
    "another pattern": (
        {"pre_tokenizer": of_split(pattern={"Regex": r"\w+"})},
        "its pre-tokeniser splits by a pattern that is neither GPT-2's, Llama 3's nor Qwen 2's",
    ),
    "a text as pattern": (
        {"pre_tokenizer": of_split(pattern={"String": " "})},
        "its pre-tokeniser splits by a pattern that is neither GPT-2's, Llama 3's nor Qwen 2's",
    ),
    "removed matches": (
        {"pre_tokenizer": of_split(behavior="Removed")},
        "its pre-tokeniser does not keep each match of its pattern as it is",
    ),
    "a blank before each part": (
        {"pre_tokenizer": sequence(split("qwen2")["pretokenizers"][0], byte_level(True, use_regex=False))},
        "its pre-tokeniser puts a blank before each part of a Split",
    ),
    "an unknown part in a merge": (
        {"merges": [["a", "\u3042"]]},
        "its merge a \u3042 names a token that its vocabulary lacks",
    ),
    "a merge whose first part is unknown": (
        {"vocab": WITH_UNKNOWN_PARTS, "merges": [["\u3042", "b"]]},
        "its merge \u3042 b names a token that its vocabulary lacks",
    ),
    "a merge whose second part is unknown": (
        {"vocab": WITH_UNKNOWN_PARTS, "merges": [["b", "\u3042"]]},
        "its merge b \u3042 names a token that its vocabulary lacks",
    ),
    "a byte without token": ({"vocab": {"a": 0, "b": 1}}, "its vocabulary lacks some of the 256 bytes"),
    "an id of two tokens": ({"vocab": {"a": 0, "b": 0}}, "two of its tokens have one id"),
    "an odd id": ({"vocab": {"a": -1}}, "its model is not as the library saves it"),
    "another id": (
        {"added_tokens": [added(5000, "<new>")]},
        "its added token '<new>' has another id than the library gives it",
    ),
    "stripped blanks": (
        {"added_tokens": [added(SIZE, "<r>", rstrip=True), added(SIZE + 1, " x")]},
        "one of its added tokens takes the white space that another begins with",
    ),
    "one text twice": (
        {"added_tokens": [added(SIZE, "<r>"), added(SIZE + 1, "<r>")]},
        "two of its added tokens have one text",
    ),
    "a damaged part": ({"pre_tokenizer": {"types": 1}}, "its pre_tokenizer is not as the library saves it"),
    "merges of three": ({"merges": ["a b c"]}, "its model is not as the library saves it"),
    "a list of three as merge": ({"merges": [["a", "b", "c"]]}, "its model is not as the library saves it"),
    "an object as merge": ({"merges": [{"a": 0, "b": 1}]}, "its model is not as the library saves it"),
    "a number in a merge": ({"merges": [["a", 1]]}, "its model is not as the library saves it"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_known_is_said(case):
    changes, reason = CASES[case]
    assert recognise_byte_bpe(byte_bpe(**changes)) == reason


@pytest.mark.parametrize("case", [case for case in CASES if "merge" in case])
def test_the_library_refuses_these_merges_too(case):
    with pytest.raises(
        Exception, match="out of vocabulary|did not match any variant|Merges text file invalid"
    ):
        Tokenizer.from_str(json.dumps(byte_bpe(**CASES[case][0])))


@pytest.mark.parametrize(
    "key", ["version", "truncation", "padding", "normalizer", "post_processor", "decoder", "added_tokens"]
)
def test_a_part_that_is_left_out_means_what_it_means_to_the_library(key):
    whole = byte_bpe(added_tokens=[])
    parsed = {name: part for name, part in whole.items() if name != key}
    texts = ["The keeper's lamp", " wasn't lit <mask>"]
    libraries = [Tokenizer.from_str(json.dumps(value)) for value in (parsed, whole)]
    encodings = [[library.encode(text).ids for text in texts] for library in libraries]
    assert encodings[0] == encodings[1]
    found = known(parse_tokenizer_json(json.dumps(parsed).encode(), "made"))
    assert asdict(found) == asdict(known(whole))


def test_one_text_in_composed_and_decomposed_form_is_two_tokens_of_one_text():
    twins = [added(SIZE, "é!", normalized=True), added(SIZE + 1, "e\u0301!", normalized=True)]
    assert recognise_byte_bpe(byte_bpe(composes=True, added_tokens=twins)) == (
        "two of its added tokens have one text once normalised"
    )
    assert isinstance(recognise_byte_bpe(byte_bpe(added_tokens=twins)), ByteBpe)


@pytest.mark.parametrize("pre_tokenizer", PRE_TOKENIZERS)
def test_the_library_loads_what_is_known_with_the_same_ids(pre_tokenizer):
    parsed = byte_bpe(pre_tokenizer, tokens="all")
    library = Tokenizer.from_str(json.dumps(parsed))
    expected = {token.content: token.id for token in known(parsed).added} | parsed["model"]["vocab"]
    assert library.get_vocab(with_added_tokens=True) == expected
