"""A parsed tokenizer.json to the settings of a byte-level BPE, or why it is none that is known here."""

from collections.abc import Mapping
from typing import Any

from bertdata.tokens.added_ids import library_ids
from bertdata.tokens.bpe.settings import (
    PATTERNS,
    AddedToken,
    ByteBpe,
    Digits,
    Pattern,
    byte_alphabet,
)
from bertdata.tokens.library_form import odd_part
from bertdata.unicode import composition


class _UnknownSetting(Exception):
    """A setting of the file that the kernel does not know. Its message is the reason."""


def recognise_byte_bpe(parsed: Mapping[str, Any]) -> ByteBpe | str:
    """The settings of a byte-level BPE, or the reason why the kernel cannot do the file's work: "its ...".

    A part that is not even shaped as the library's is a reason, too: the library then says what is wrong.
    Truncation, padding and dropout are not looked at: a text is encoded whole, and the same way every time.
    """
    if (odd := odd_part(parsed)) is not None:
        return odd
    try:
        return _recognise(parsed)
    except _UnknownSetting as error:
        return str(error)


def _recognise(parsed: Mapping[str, Any]) -> ByteBpe:
    model = parsed["model"]
    _check_model(model)
    composes = _composes(parsed.get("normalizer"))
    pattern, digits, prefix_space = _pre_tokenizer(parsed.get("pre_tokenizer"))
    ids: dict[str, int] = model["vocab"]
    if len(set(ids.values())) < len(ids):
        raise _UnknownSetting("two of its tokens have one id")
    if any(unit not in ids for unit in byte_alphabet()):
        raise _UnknownSetting("its vocabulary lacks some of the 256 bytes")
    return ByteBpe(
        pattern=pattern,
        digits=digits,
        prefix_space=prefix_space,
        composes=composes,
        whole_words=bool(model.get("ignore_merges")),
        ids=ids,
        units=tuple(ids[unit] for unit in byte_alphabet()),
        merges=_merges(model["merges"], ids),
        added=_added_tokens(parsed.get("added_tokens") or [], ids, composes),
    )


def _check_model(model: Mapping[str, Any]) -> None:
    if model.get("type") != "BPE":
        raise _UnknownSetting(f"its model is {model.get('type')}")
    for key in ("continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(key):
            raise _UnknownSetting(f"its model has {key}")


def _composes(normalizer: Mapping[str, Any] | None) -> bool:
    """True for the normaliser NFC, False for none."""
    kinds = [part["type"] for part in _parts(normalizer, "normalizers")]
    if kinds not in ([], ["NFC"]):
        raise _UnknownSetting(f"its normaliser is {' and '.join(kinds)}")
    return kinds == ["NFC"]


def _pre_tokenizer(pre_tokenizer: Mapping[str, Any] | None) -> tuple[Pattern, Digits | None, bool]:
    """Digits, if any, then Split with a known pattern, if any, then ByteLevel."""
    parts = _parts(pre_tokenizer, "pretokenizers")
    kinds = [part["type"] for part in parts]
    digits: Digits | None = None
    if kinds[:1] == ["Digits"]:
        digits = "each" if parts[0].get("individual_digits") else "runs"
        kinds, parts = kinds[1:], parts[1:]
    if kinds == ["ByteLevel"] and parts[0].get("use_regex", True):
        return "gpt2", digits, bool(parts[0]["add_prefix_space"])
    if kinds != ["Split", "ByteLevel"] or parts[1].get("use_regex", True):
        raise _UnknownSetting(f"its pre-tokeniser is {' and '.join(kinds) or 'none'}")
    split, byte_level = parts
    pattern = PATTERNS.get(split["pattern"].get("Regex", ""))
    if pattern is None:
        raise _UnknownSetting(
            "its pre-tokeniser splits by a pattern that is neither GPT-2's, Llama 3's nor Qwen 2's"
        )
    if split["behavior"] != "Isolated" or split.get("invert"):
        raise _UnknownSetting("its pre-tokeniser does not keep each match of its pattern as it is")
    if byte_level["add_prefix_space"]:
        raise _UnknownSetting("its pre-tokeniser puts a blank before each part of a Split")
    return pattern, digits, False


def _parts(step: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    """The steps of a Sequence in order, or the single step, or none."""
    if step is None:
        return []
    if step["type"] != "Sequence":
        return [step]
    return [inner for part in step[name] for inner in _parts(part, name)]


def _merges(merges: list[Any], ids: Mapping[str, int]) -> dict[tuple[int, int], tuple[int, int]]:
    """Rank and new id by pair. A pair that comes twice has its later rank, as in the library."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for rank, merge in enumerate(merges):
        first, second = merge.split(" ") if isinstance(merge, str) else merge
        if first not in ids or second not in ids or first + second not in ids:
            raise _UnknownSetting(f"its merge {first} {second} names a token that its vocabulary lacks")
        found[ids[first], ids[second]] = rank, ids[first + second]
    return found


def _added_tokens(tokens: list[Any], ids: Mapping[str, int], composes: bool) -> tuple[AddedToken, ...]:
    """The added tokens, where the library gives each the id that the file says."""
    contents = [token["content"] for token in tokens]
    if len(set(contents)) < len(contents):
        raise _UnknownSetting("two of its added tokens have one text")
    added: list[AddedToken] = []
    for token, expected in zip(tokens, library_ids(contents, ids), strict=True):
        content, normalized = token["content"], token["normalized"]
        if not content or token["id"] != expected:
            raise _UnknownSetting(f"its added token {content!r} has another id than the library gives it")
        added.append(
            AddedToken(
                id=expected,
                content=composition.compose(content)[0] if normalized and composes else content,
                lstrip=token["lstrip"],
                rstrip=token["rstrip"],
                single_word=token["single_word"],
                normalized=normalized,
            )
        )
    normalized_texts = [token.content for token in added if token.normalized]
    if len(set(normalized_texts)) < len(normalized_texts):
        raise _UnknownSetting("two of its added tokens have one text once normalised")
    if len({token.id for token in added}) < len(added):
        raise _UnknownSetting("two of its added tokens have one id")
    if any(token.rstrip for token in added) and any(token.content[0].isspace() for token in added):
        raise _UnknownSetting("one of its added tokens takes the white space that another begins with")
    return tuple(added)
