"""Warns about keys of tokenizer_config.json that are not used here and might matter.

Each known key is either used, or listed in this module as harmless. The module ``reader`` refuses a few more
keys, because their effect on the ids of a text is not known.
"""

from contextlib import suppress
from typing import Any

from bertdata.config.value_check import suggest_known
from bertdata.errors import BertDataError
from bertdata.tokens.model_directory.added_tokens import SPECIAL_TOKEN_KEYS
from bertdata.tokens.model_directory.files import TOKENIZER_CONFIG_NAME, ModelFiles

_USED = (
    *SPECIAL_TOKEN_KEYS,
    "added_tokens_decoder",
    "additional_special_tokens",
    "extra_special_tokens",
    "tokenizer_class",
    "auto_map",
    "split_special_tokens",
    "fast_tokenizer_files",
    "do_lower_case",
    "strip_accents",
    "tokenize_chinese_chars",
    "add_prefix_space",
    "trim_offsets",
)

_HARMLESS = """
    model_max_length max_len max_length max_seq_length model_input_names return_token_type_ids
    padding padding_side pad_to_multiple_of pad_token_type_id stride truncation truncation_strategy
    clean_up_tokenization_spaces errors verbose
    name_or_path tokenizer_file vocab_file merges_file special_tokens_map_file full_tokenizer_file
    processor_class backend use_fast from_slow is_local local_files_only legacy sp_model_kwargs
    tokenizer_version transformers_version chat_template response_schema word_tokenizer_type
    subword_tokenizer_type do_word_tokenize do_subword_tokenize mecab_kwargs keep_accents init_inputs"""
"""Keys that do not influence the ids of a text.

They set lengths and padding (which the caller chooses), decoding, the origin of the files, or settings of
other classes.
"""

_HARMLESS_VALUES: dict[str, tuple[Any, ...]] = {
    "truncation_side": ("right", None),
    "do_basic_tokenize": (True, None),
    "never_split": (None, [], ()),
    "add_bos_token": (False, None),
    "add_eos_token": (False, None),
}
"""Keys that change how some programs read a text, with the values for which they change nothing."""

_KNOWN = (*_USED, *_HARMLESS.split(), *_HARMLESS_VALUES)


def warn_of_unread_keys(directory: str) -> list[str]:
    """Return a warning for each key of tokenizer_config.json that is not used here and might matter.

    If the file cannot be read, there are no warnings. Reading the tokeniser later reports the error.
    """
    files, settings = ModelFiles(directory), dict[str, Any]()
    with suppress(BertDataError):
        settings = files.tokenizer_config
    where, found = files.make_path(TOKENIZER_CONFIG_NAME), list[str]()
    for name, value in settings.items():
        if name in _HARMLESS_VALUES:
            if value not in (usual := _HARMLESS_VALUES[name]):
                found.append(f"{where}: {name} is {value!r:.80}, which is not read: taken as {usual[0]!r}")
        # A model may introduce special tokens under new keys, which are read too.
        elif name not in _KNOWN and not name.endswith("_token"):
            nearest = suggest_known(name, sorted(_KNOWN), 0.8)
            found.append(f"{where}: {name} is not a known key and is not read{nearest}")
    return found
