"""Decides whether the C++ kernel for byte-level BPE can run a tokenizer.json, and reads its settings.

A tokenizer.json describes a pipeline: added tokens, normaliser, pre-tokeniser, model and so on. The C++
kernel implements only some pipelines. This module accepts a file only if the kernel gives exactly the ids
that the tokenizers library gives. The ``tokenizers`` library itself runs every other file, and the log says
why.
"""

from collections.abc import Mapping
from typing import Any

from bertdata.tokens.added_ids import number_added_tokens
from bertdata.tokens.bpe.settings import (
    PATTERNS,
    AddedToken,
    ByteBpe,
    Digits,
    Pattern,
    make_byte_alphabet,
)
from bertdata.tokens.library_form import find_unusual_part
from bertdata.unicode import composition


class _UnknownSetting(Exception):
    """Error for a setting in the file that the kernel does not support.

    Its message is the reason why the kernel cannot run the file.
    """


def recognise_byte_bpe(parsed: Mapping[str, Any]) -> ByteBpe | str:
    """Return the settings of the byte-level BPE in a tokenizer.json.

    If the kernel cannot run the file, the result is the reason as text, such as "its normaliser is
    Lowercase". One possible reason is a part that is not in the form in which ``tokenizers`` saves it.
    ``tokenizers`` then reads the file and reports what is wrong with it. Truncation, padding and dropout in
    the file are ignored, because a text is always encoded whole and without randomness.
    """
    if (odd := find_unusual_part(parsed)) is not None:
        return odd
    try:
        return _read_byte_bpe(parsed)
    except _UnknownSetting as error:
        return str(error)


def _read_byte_bpe(parsed: Mapping[str, Any]) -> ByteBpe:
    """Read the settings of the byte-level BPE in a tokenizer.json.

    _UnknownSetting if the file has a setting that the C++ kernel does not support.
    """
    model = parsed["model"]
    _check_model(model)
    composes = _read_normalizer(parsed.get("normalizer"))
    pattern, digits, prefix_space = _read_pre_tokenizer(parsed.get("pre_tokenizer"))
    ids: dict[str, int] = model["vocab"]
    # The kernel knows a token only by its id, so two tokens must not have the same id.
    if len(set(ids.values())) < len(ids):
        raise _UnknownSetting("two of its tokens have one id")
    # The kernel assumes that each of the 256 bytes has an id. For a byte without an id, ``tokenizers`` would
    # return the unknown token or drop the byte.
    if any(unit not in ids for unit in make_byte_alphabet()):
        raise _UnknownSetting("its vocabulary lacks some of the 256 bytes")
    return ByteBpe(
        pattern=pattern,
        digits=digits,
        prefix_space=prefix_space,
        composes=composes,
        whole_words=bool(model.get("ignore_merges")),
        ids=ids,
        units=tuple(ids[unit] for unit in make_byte_alphabet()),
        merges=_read_merges(model["merges"], ids),
        added=_read_added_tokens(parsed.get("added_tokens") or [], ids, composes),
    )


def _check_model(model: Mapping[str, Any]) -> None:
    """Raise _UnknownSetting unless the model is a BPE that the kernel supports.

    The kernel has no subword prefix, no subword suffix and no byte fallback.
    """
    if model.get("type") != "BPE":
        raise _UnknownSetting(f"its model is {model.get('type')}")
    for key in ("continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(key):
            raise _UnknownSetting(f"its model has {key}")


def _read_normalizer(normalizer: Mapping[str, Any] | None) -> bool:
    """Return True if the normaliser is NFC, and False if the file has no normaliser.

    _UnknownSetting for any other normaliser.
    """
    kinds = [part["type"] for part in _list_steps(normalizer, "normalizers")]
    if kinds not in ([], ["NFC"]):
        raise _UnknownSetting(f"its normaliser is {' and '.join(kinds)}")
    return kinds == ["NFC"]


def _read_pre_tokenizer(pre_tokenizer: Mapping[str, Any] | None) -> tuple[Pattern, Digits | None, bool]:
    """Return three settings of the pre-tokeniser: the pattern, the rule for digits, and add_prefix_space.

    The kernel supports these steps in this order: optionally Digits, optionally Split with a known pattern,
    and ByteLevel. _UnknownSetting for any others.
    """
    parts = _list_steps(pre_tokenizer, "pretokenizers")
    kinds = [part["type"] for part in parts]
    digits: Digits | None = None
    # A Digits step may come first. Note its setting and continue with the steps after it.
    if kinds[:1] == ["Digits"]:
        digits = "each" if parts[0].get("individual_digits") else "runs"
        kinds, parts = kinds[1:], parts[1:]
    # GPT-2 and RoBERTa have the single step ByteLevel. It splits text with GPT-2's pattern unless its setting
    # use_regex is false.
    if kinds == ["ByteLevel"] and parts[0].get("use_regex", True):
        return "gpt2", digits, bool(parts[0]["add_prefix_space"])
    # Llama 3 and Qwen 2 have a Split step with a pattern. The ByteLevel step after it only maps bytes to
    # characters. If its use_regex were true, it would split the pieces again with GPT-2's pattern.
    if kinds != ["Split", "ByteLevel"] or parts[1].get("use_regex", True):
        raise _UnknownSetting(f"its pre-tokeniser is {' and '.join(kinds) or 'none'}")
    split, byte_level = parts
    # Patterns are compared as text, because it cannot be decided here whether two different patterns have the
    # same matches.
    pattern = PATTERNS.get(split["pattern"].get("Regex", ""))
    if pattern is None:
        raise _UnknownSetting(
            "its pre-tokeniser splits by a pattern that is neither GPT-2's, Llama 3's nor Qwen 2's"
        )
    # With the behaviour "Isolated", each match becomes a piece. Other behaviours drop matches or join them to
    # a neighbouring piece.
    if split["behavior"] != "Isolated" or split.get("invert"):
        raise _UnknownSetting("its pre-tokeniser does not keep each match of its pattern as it is")
    # After a Split step, ByteLevel would put a blank before every piece, and not only before the whole text.
    if byte_level["add_prefix_space"]:
        raise _UnknownSetting("its pre-tokeniser puts a blank before each part of a Split")
    return pattern, digits, False


def _list_steps(step: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    """Return the steps of a pre-tokeniser in order.

    The result is empty if ``step`` is None, and has one item if ``step`` is not a Sequence.

    name: the key under which a Sequence lists its steps.
    """
    if step is None:
        return []
    if step["type"] != "Sequence":
        return [step]
    return [inner for part in step[name] for inner in _list_steps(part, name)]


def _read_merges(merges: list[Any], ids: Mapping[str, int]) -> dict[tuple[int, int], tuple[int, int]]:
    """Read the merges of a BPE: map each pair of ids to its rank and to the id of the merged token.

    If a pair occurs twice in the list, the later rank is used, as in ``tokenizers``.
    """
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for rank, merge in enumerate(merges):
        first, second = merge.split(" ") if isinstance(merge, str) else merge
        if first not in ids or second not in ids or first + second not in ids:
            raise _UnknownSetting(f"its merge {first} {second} names a token that its vocabulary lacks")
        found[ids[first], ids[second]] = rank, ids[first + second]
    return found


def _read_added_tokens(tokens: list[Any], ids: Mapping[str, int], composes: bool) -> tuple[AddedToken, ...]:
    """Read the added tokens of a tokenizer.json.

    _UnknownSetting if ``tokenizers`` would treat any of these tokens differently from the kernel.

    tokens: entries of the file's key ``added_tokens``.
    ids: id of each token of the model.
    composes: True if the normaliser is NFC.
    """
    contents = [token["content"] for token in tokens]
    if len(set(contents)) < len(contents):
        raise _UnknownSetting("two of its added tokens have one text")
    added: list[AddedToken] = []
    for token, expected in zip(tokens, number_added_tokens(contents, ids), strict=True):
        content, normalized = token["content"], token["normalized"]
        # ``tokenizers`` ignores the ids of added tokens in the file and numbers these tokens by itself. If
        # the file states other ids than ``tokenizers`` gives, the class LibraryTokenizer runs the file and
        # reports the error.
        if not content or token["id"] != expected:
            raise _UnknownSetting(f"its added token {content!r} has another id than the library gives it")
        added.append(
            AddedToken(
                id=expected,
                # ``tokenizers`` searches for a token with the flag "normalized" in the normalised text. It
                # therefore also normalises the text of the token.
                content=composition.compose(content)[0] if normalized and composes else content,
                lstrip=token["lstrip"],
                rstrip=token["rstrip"],
                single_word=token["single_word"],
                normalized=normalized,
            )
        )
    # If two tokens have the same text, ``tokenizers`` sometimes finds the first and sometimes the second.
    normalized_texts = [token.content for token in added if token.normalized]
    if len(set(normalized_texts)) < len(normalized_texts):
        raise _UnknownSetting("two of its added tokens have one text once normalised")
    if len({token.id for token in added}) < len(added):
        raise _UnknownSetting("two of its added tokens have one id")
    # In the text "<a> <b>", both the token "<a>" with the flag rstrip and a token " <b>" that begins with a
    # blank could take the blank. The kernel does not reproduce which of them ``tokenizers`` chooses.
    if any(token.rstrip for token in added) and any(token.content[0].isspace() for token in added):
        raise _UnknownSetting("one of its added tokens takes the white space that another begins with")
    return tuple(added)
