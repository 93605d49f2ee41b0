"""Checks that a tokenizer.json has exactly the form in which the tokenizers library saves it.

``tokenizers`` also reads files of other forms, but sometimes in a surprising way. For example, a
RobertaProcessing without the key ``add_prefix_space`` becomes a BertProcessing, and ``"add_prefix_space":
"false"`` is an error. The C++ kernels therefore run only files that have the form of saved files.
``tokenizers`` itself reads every other file, or refuses it.
"""

from collections.abc import Callable, Mapping
from typing import Any

_LARGEST_ID = (1 << 32) - 1
_LONGEST_WORD = (1 << 63) - 1

Check = Callable[[Any], bool]


def find_unusual_part(parsed: Mapping[str, Any]) -> str | None:
    """Return a description of the first part that is not as ``tokenizers`` saves it, or None if there is
    none.

    The description completes a sentence about the file: "its normalizer is not as the library saves it".
    """
    for key in parsed:
        if key not in _PARTS:
            return f"it has a part {key!r}"
    for key, check in _PARTS.items():
        # A missing part counts as null. A missing version counts as "1.0".
        if not check(parsed.get(key, "1.0" if key == "version" else None)):
            return f"its {key} is not as the library saves it"
    return None


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_bool_or_null(value: Any) -> bool:
    return value is None or isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_or_null(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_number(value: Any) -> bool:
    """Return True if the value is an integer that is not negative and fits into 32 bits."""
    # ``type(value) is int`` excludes JSON's true and false. For isinstance, they would be integers.
    return type(value) is int and 0 <= value <= _LARGEST_ID


def _make_list_check(check: Check) -> Check:
    """Return a check for a list whose items all pass the given check."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def _make_object_check(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Return a check for an object with certain keys. The check of each key is applied to its value.

    required: keys that the object must have.
    optional: further keys that it may have. Any other key fails the check.
    """
    known = {**required, **(optional or {})}

    def is_object(value: Any) -> bool:
        """Return True if the value is such an object."""
        return (
            isinstance(value, dict)
            and value.keys() <= known.keys()
            and required.keys() <= value.keys()
            and all(known[key](item) for key, item in value.items())
        )

    return is_object


def _make_step_check(kinds: Mapping[str, Check], *, others: bool = False) -> Check:
    """Return a check for a step of the pipeline: null, or an object with a type.

    kinds: for each known type, the check for the object without its key "type".
    others: if True, a step of an unknown type passes the check.
    """

    def is_step(value: Any) -> bool:
        """Return True if the value is such a step."""
        if value is None:
            return True
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            return False
        check = kinds.get(value["type"])
        if check is None:
            return others
        return check({key: item for key, item in value.items() if key != "type"})

    return is_step


def _make_sequence_check(kinds: dict[str, Check], name: str, *, others: bool = False) -> Check:
    """Return a check for a step of the pipeline, or for a Sequence of such steps.

    kinds: for each known type, the check for the object without its key "type".
    name: the key under which a Sequence lists its steps.
    others: if True, a step of an unknown type passes the check.
    """
    step = _make_step_check(kinds, others=others)
    kinds["Sequence"] = _make_object_check(
        {name: _make_list_check(lambda inner: inner is not None and step(inner))}
    )
    return step


_is_byte_level = _make_object_check(
    {"add_prefix_space": _is_bool, "trim_offsets": _is_bool}, {"use_regex": _is_bool}
)


def _is_token_and_id(value: Any) -> bool:
    """Return True if the value is a list of two items, a token and its id."""
    return isinstance(value, list) and len(value) == 2 and _is_text(value[0]) and _is_number(value[1])


def _is_pattern(value: Any) -> bool:
    """Return True if the value is the pattern of a Split step: a regular expression or a fixed text."""
    return _make_object_check({"Regex": _is_text})(value) or _make_object_check({"String": _is_text})(value)


def _is_template_piece(value: Any) -> bool:
    """Return True if the value is an item of TemplateProcessing: a text (A or B) or a special token."""
    sequence = _make_object_check({"id": lambda name: name in ("A", "B"), "type_id": _is_number})
    special = _make_object_check({"id": _is_text, "type_id": _is_number})
    return _make_object_check({"Sequence": sequence})(value) or _make_object_check({"SpecialToken": special})(
        value
    )


def _are_template_tokens(value: Any) -> bool:
    """Return True if the value is the table of special tokens in a TemplateProcessing."""
    token = _make_object_check(
        {"id": _is_text, "ids": _make_list_check(_is_number), "tokens": _make_list_check(_is_text)}
    )
    return isinstance(value, dict) and all(map(token, value.values()))


def _is_vocabulary(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _are_merges(value: Any) -> bool:
    """Return True if the value is a list of BPE merges.

    Each merge is a text such as "a b", or each is a pair. ``tokenizers`` does not accept a mixture of both.
    """
    if not isinstance(value, list):
        return False
    if all(map(_is_text, value)):
        return all(pair.count(" ") == 1 for pair in value)
    return all(isinstance(pair, list) and len(pair) == 2 and all(map(_is_text, pair)) for pair in value)


def _is_dropout(value: Any) -> bool:
    """Return True if the value is null or a probability from 0 to 1."""
    return value is None or (isinstance(value, int | float) and not _is_bool(value) and 0 <= value <= 1)


_NORMALIZERS: dict[str, Check] = {
    "NFC": _make_object_check({}),
    "BertNormalizer": _make_object_check(
        {"clean_text": _is_bool, "handle_chinese_chars": _is_bool, "lowercase": _is_bool},
        {"strip_accents": _is_bool_or_null},
    ),
}
_PRE_TOKENIZERS: dict[str, Check] = {
    "BertPreTokenizer": _make_object_check({}),
    "ByteLevel": _is_byte_level,
    "Digits": _make_object_check({"individual_digits": _is_bool}),
    "Split": _make_object_check({"pattern": _is_pattern, "behavior": _is_text, "invert": _is_bool}),
}
_POST_PROCESSORS: dict[str, Check] = {
    "ByteLevel": _is_byte_level,
    "BertProcessing": _make_object_check({"sep": _is_token_and_id, "cls": _is_token_and_id}),
    "RobertaProcessing": _make_object_check(
        {
            "sep": _is_token_and_id,
            "cls": _is_token_and_id,
            "trim_offsets": _is_bool,
            "add_prefix_space": _is_bool,
        }
    ),
    "TemplateProcessing": _make_object_check(
        {
            "single": _make_list_check(_is_template_piece),
            "pair": _make_list_check(_is_template_piece),
            "special_tokens": _are_template_tokens,
        }
    ),
}
_DECODERS: dict[str, Check] = {
    "ByteLevel": _is_byte_level,
    "WordPiece": _make_object_check({"prefix": _is_text, "cleanup": _is_bool}),
}
_is_bpe = _make_object_check(
    {"type": _is_text, "vocab": _is_vocabulary, "merges": _are_merges},
    {
        "dropout": _is_dropout,
        "unk_token": _is_text_or_null,
        "continuing_subword_prefix": _is_text_or_null,
        "end_of_word_suffix": _is_text_or_null,
        "fuse_unk": _is_bool_or_null,
        "byte_fallback": _is_bool_or_null,
        "ignore_merges": _is_bool_or_null,
    },
)
_is_wordpiece = _make_object_check(
    {
        "type": _is_text,
        "vocab": _is_vocabulary,
        "unk_token": _is_text,
        "continuing_subword_prefix": _is_text,
        "max_input_chars_per_word": lambda value: type(value) is int and 0 <= value <= _LONGEST_WORD,
    }
)
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")

_is_truncation = _make_object_check(
    {
        "direction": lambda value: value in ("Left", "Right"),
        "max_length": _is_number,
        "strategy": lambda value: value in ("LongestFirst", "OnlyFirst", "OnlySecond"),
        "stride": _is_number,
    }
)
_is_padding = _make_object_check(
    {
        "strategy": lambda value: value == "BatchLongest" or _make_object_check({"Fixed": _is_number})(value),
        "direction": lambda value: value in ("Left", "Right"),
        "pad_to_multiple_of": lambda value: value is None or _is_number(value),
        "pad_id": _is_number,
        "pad_type_id": _is_number,
        "pad_token": _is_text,
    }
)

_PARTS: dict[str, Check] = {
    "version": lambda value: value == "1.0",
    "truncation": lambda value: value is None or _is_truncation(value),
    "padding": lambda value: value is None or _is_padding(value),
    "added_tokens": _make_list_check(
        _make_object_check({"id": _is_number, "content": _is_text, **dict.fromkeys(_FLAGS, _is_bool)})
    ),
    "normalizer": _make_sequence_check(_NORMALIZERS, "normalizers", others=True),
    "pre_tokenizer": _make_sequence_check(_PRE_TOKENIZERS, "pretokenizers", others=True),
    "post_processor": _make_sequence_check(_POST_PROCESSORS, "processors"),
    "decoder": _make_step_check(_DECODERS),
    "model": lambda value: _is_bpe(value) or _is_wordpiece(value),
}
"""For each key of a tokenizer.json, the check for its value."""
