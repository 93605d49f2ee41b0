"""Keys of tokenizer_config.json: used, harmless, or a warning by name."""

import json

import pytest
import transformers

from bertdata.build.plan import list_plan_warnings
from bertdata.tokens.model_directory.keys import warn_of_unread_keys
from bertdata.tokens.tokenizer_json import find_model_tokenizer
from tests.support.model_directories import german_directory

OF_TRANSFORMERS_4 = {
    "add_prefix_space": False,
    "clean_up_tokenization_spaces": True,
    "cls_token": "[CLS]",
    "do_basic_tokenize": True,
    "do_lower_case": True,
    "errors": "replace",
    "extra_special_tokens": {},
    "full_tokenizer_file": None,
    "init_inputs": [],
    "mask_token": "[MASK]",
    "max_len": 512,
    "model_max_length": 512,
    "name_or_path": "bert-base-uncased",
    "never_split": None,
    "sp_model_kwargs": {},
    "special_tokens_map_file": None,
    "strip_accents": None,
    "tokenize_chinese_chars": True,
    "tokenizer_class": "BertTokenizer",
    "tokenizer_file": None,
    "trim_offsets": True,
    "truncation_side": "right",
}
"""Keys of directories that transformers 2 to 4 have saved."""


def write(path, **keys):
    path.mkdir(exist_ok=True)
    (path / "tokenizer_config.json").write_text(json.dumps(keys), encoding="utf-8")
    return str(path)


def test_the_keys_of_older_releases_are_decided(tmp_path):
    assert warn_of_unread_keys(write(tmp_path, **OF_TRANSFORMERS_4)) == []


def test_what_transformers_saves_is_decided(tmp_path):
    tokenizer = transformers.AutoTokenizer.from_pretrained(german_directory(tmp_path / "german"))
    tokenizer.save_pretrained(tmp_path / "saved")
    assert warn_of_unread_keys(str(tmp_path / "saved")) == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"do_lowercase": True},
            "do_lowercase is not a known key and is not read; the nearest known is do_lower",
        ),
        ({"never_split": ["covid"]}, "never_split is ['covid'], which is not read: taken as None"),
        ({"do_basic_tokenize": False}, "do_basic_tokenize is False, which is not read: taken as True"),
        ({"truncation_side": "left"}, "truncation_side is 'left', which is not read: taken as 'right'"),
        ({"add_eos_token": True}, "add_eos_token is True, which is not read"),
    ],
)
def test_a_key_that_is_not_read_is_named(tmp_path, keys, said):
    [warning] = warn_of_unread_keys(write(tmp_path, **keys))
    assert warning.startswith(f"{tmp_path}/tokenizer_config.json: {said}")


def test_a_plan_of_examples_warns(tmp_path):
    directory = german_directory(tmp_path / "german", never_split=["covid"])
    [warning] = list_plan_warnings(find_model_tokenizer(str(directory)))
    assert "never_split is ['covid']" in warning


def test_a_token_of_a_name_of_the_models_own_is_no_unknown_key(tmp_path):
    assert warn_of_unread_keys(write(tmp_path, boi_token="<image>")) == []
