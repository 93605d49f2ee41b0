"""The form of a tokenizer.json that the library saves, beside what the library itself reads."""

import copy
import json
from typing import Any

import pytest
from tokenizers import Tokenizer

from bertdata.tokens.library_form import find_unusual_part
from tests.support.byte_bpe import byte_bpe
from tests.support.model_directories import IDS, bert_json


@pytest.mark.parametrize("parsed", [byte_bpe(), bert_json(IDS, {})], ids=["bpe", "wordpiece"])
def test_a_file_of_the_library_may_lack_its_version_and_empty_parts(parsed: dict[str, Any]) -> None:
    saved = json.loads(Tokenizer.from_str(json.dumps(parsed)).to_str())
    assert find_unusual_part(saved) is None
    lacking = {key: value for key, value in saved.items() if key not in ("version", "truncation", "padding")}
    assert json.loads(Tokenizer.from_str(json.dumps(lacking)).to_str()) == saved
    assert find_unusual_part(lacking) is None
    assert find_unusual_part({**saved, "version": None}) == "its version is not as the library saves it"


@pytest.mark.parametrize(
    "merges",
    [
        {"a": "b"},
        "a b",
        [["a", "b", "c"]],
        [["a"]],
        [["a", 1]],
        [["a", None]],
        ["a b c"],
        ["ab"],
        [["a", "b"], "a b"],
        ["a b", ["a", "b"]],
    ],
)
def test_merges_that_the_library_refuses_have_not_its_form(merges: list[Any]) -> None:
    parsed = copy.deepcopy(byte_bpe())
    parsed["model"]["merges"] = merges
    with pytest.raises(Exception, match=r"."):  # the library's errors are of no class of their own
        Tokenizer.from_str(json.dumps(parsed))
    assert find_unusual_part(parsed) == "its model is not as the library saves it"


@pytest.mark.parametrize(
    "pair", [["[SEP]"], ["[SEP]", "3"], [3, 3], ["[SEP]", 3, 3], "[SEP]", {"[SEP]": 3}, None]
)
def test_a_special_token_of_a_post_processor_is_its_text_and_its_id(pair: Any) -> None:
    parsed = bert_json(IDS, {})
    assert find_unusual_part(parsed) is None
    parsed["post_processor"]["sep"] = pair
    with pytest.raises(Exception, match=r"."):
        Tokenizer.from_str(json.dumps(parsed))
    assert find_unusual_part(parsed) == "its post_processor is not as the library saves it"
