"""Parses a tokenizer.json, checks the parts that this package reads itself, and lists its tokens' ids."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bertdata.errors import VocabularyError
from bertdata.tokens.vocabulary import LARGEST_VOCABULARY

KINDS = ("BPE", "Unigram", "WordPiece", "WordLevel")
"""Types of model that a tokenizer.json may have, as named in the file."""

STEPS = ("normalizer", "pre_tokenizer", "post_processor")
"""Keys of the steps in a tokenizer.json that influence the ids and positions of tokens."""

DEEPEST = 64
"""Largest number of objects and lists inside each other in a step. Published files have at most 5."""

EXPECTED = "expected a tokenizer.json as Hugging Face's tokenizers library saves it"


def parse_tokenizer_json(data: bytes, name: str) -> dict[str, Any]:
    """Parse a tokenizer.json. If a step is missing in the file, its value in the result is None.

    name: name of the file, for error messages.

    Raises VocabularyError if the file is not a tokenizer.json.
    """
    parsed = parse_object(data, name)
    model = parsed.get("model")
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict | list):
        raise VocabularyError(f"{name}: holds no model with a vocabulary; {EXPECTED}")
    model["type"] = _find_model_type(model)
    if model["type"] not in KINDS:
        raise VocabularyError(f"{name}: its model is {model['type']!r}, expected one of {', '.join(KINDS)}")
    wanted, noun = (list, "a list") if model["type"] == "Unigram" else (dict, "an object")
    if not isinstance(model["vocab"], wanted):
        raise VocabularyError(f"{name}: the vocab of its {model['type']} is not {noun}; {EXPECTED}")
    for step in STEPS:
        if not isinstance(parsed.setdefault(step, None), dict | None):
            raise VocabularyError(f"{name}: {step} is no object; {EXPECTED}")
        if _is_deeper(parsed[step], DEEPEST):
            raise VocabularyError(f"{name}: {step} holds parts within parts, more than {DEEPEST}; {EXPECTED}")
    added = parsed.setdefault("added_tokens", [])
    if not isinstance(added, list) or not all(map(_is_added_token, added)):
        raise VocabularyError(f"{name}: added_tokens are no list of tokens with ids; {EXPECTED}")
    return parsed


def parse_object(data: bytes, name: str, expected: str = EXPECTED) -> dict[str, Any]:
    """Parse a JSON object as strictly as the tokenizers library.

    Python's parser also accepts a byte-order mark, UTF-16, NaN and half a surrogate pair. If a key occurs
    twice in an object, Python's parser takes the last value. This function refuses all of these.

    name: name of the file, for error messages.
    expected: what the error message says was expected.

    Raises VocabularyError for anything that is not such an object.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise VocabularyError(f"{name}: is not JSON (line {line} is not UTF-8); {expected}") from None
    try:
        parsed = json.loads(text, object_pairs_hook=_make_object, parse_constant=_refuse_json_constant)
    except (ValueError, RecursionError) as error:
        what = (
            str(error)
            if isinstance(error, json.JSONDecodeError | _RefusedJsonError)
            else "the text is damaged"
        )
        raise VocabularyError(
            f"{name}: is not JSON ({what}); {expected}"
            + (
                "; a WordPiece vocabulary, one token a line, goes with --vocab"
                if expected is EXPECTED
                else ""
            )
        ) from None
    if not isinstance(parsed, dict):
        raise VocabularyError(f"{name}: is JSON, but no object; {expected}")
    # The text itself is valid UTF-8, so half a surrogate pair can only come from a \u escape.
    if "\\u" in text:
        try:
            json.dumps(parsed, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise VocabularyError(f"{name}: holds half a surrogate pair, no character; {expected}") from None
    return parsed


class _RefusedJsonError(ValueError):
    """Error for JSON that Python's parser accepts, but that ``tokenizers`` refuses or reads differently."""


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict from the pairs of key and value in a JSON object. _RefusedJsonError for a repeated key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise _RefusedJsonError(f"the key {twice[:40]!r} stands twice in one object")
    return found


def _refuse_json_constant(text: str) -> Any:
    """Raise _RefusedJsonError for NaN or Infinity, which Python's parser accepts."""
    raise _RefusedJsonError(f"{text} is no number of JSON")


def _is_deeper(value: Any, depth: int) -> bool:
    """Return True if the objects and lists in a value are nested deeper than ``depth``.

    The check goes through the value level by level. A malicious file could make a recursive function exceed
    Python's recursion limit.
    """
    level = [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        if depth == 0:
            return True
        depth -= 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return False


def _find_model_type(model: Mapping[str, Any]) -> Any:
    """Return the type of the model. Old files do not name it, so it is inferred from other keys."""
    if "type" in model:
        return model["type"]
    if isinstance(model["vocab"], list):
        return "Unigram"
    if "merges" in model:
        return "BPE"
    return "WordPiece" if "max_input_chars_per_word" in model else "WordLevel"


def _is_added_token(item: Any) -> bool:
    """Return True if an entry of the file's added tokens has a text and an integer id."""
    return isinstance(item, dict) and isinstance(item.get("content"), str) and type(item.get("id")) is int


def read_token_ids(parsed: Mapping[str, Any], name: str) -> dict[str, int]:
    """Return the id of each token in a parsed tokenizer.json, including the added tokens.

    name: name of the file, for error messages.

    Raises VocabularyError for an id that is too large for a shard (data file).
    """
    found: dict[str, int] = {}
    for token, number in _list_tokens(parsed):
        if not isinstance(token, str) or type(number) is not int or not 0 <= number < LARGEST_VOCABULARY:
            raise VocabularyError(
                f"{name}: token {token!r} has the id {number!r}, expected a text with an id of 0 to "
                f"{LARGEST_VOCABULARY - 1}"
            )
        found.setdefault(token, number)
    if not found:
        raise VocabularyError(f"{name}: has no tokens; {EXPECTED}")
    return found


def _list_tokens(parsed: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield each token with its id: first the tokens of the model, then the added tokens.

    An added token may also be a token of the model, and is then yielded twice.
    """
    vocabulary = parsed["model"]["vocab"]
    if isinstance(vocabulary, dict):
        yield from vocabulary.items()
    else:
        for number, item in enumerate(vocabulary):
            yield (item[0] if isinstance(item, list) and item else item), number
    for item in parsed["added_tokens"]:
        yield item["content"], item["id"]
