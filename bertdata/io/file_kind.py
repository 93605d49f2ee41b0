"""Recognition of files that are not plain UTF-8 text: compressed files, JSON, shards, other encodings.

Only the first bytes of a file are examined. Ordinary prose is never mistaken for another format: a signature
contains bytes with which no text begins, and JSON must be valid through all of the examined bytes.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import BinaryIO

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from bertdata.io.remedies import suggest_conversion, suggest_record_extraction, suggest_segment_command
from bertdata.io.signatures import FileKind, find_signature

HEAD_BYTES = 1 << 16
"""Number of bytes at the beginning of a file that are examined."""

TEXT = "plain text in UTF-8"

BOM = b"\xef\xbb\xbf"
"""UTF-8's byte-order mark."""

_JSON_SHARE = 0.9  # smallest share of the non-blank lines that must be JSON objects in a JSON-lines file
_JSON_TOKEN = re.compile(
    rb"""\s*(?:("[^"\\\n]*(?:\\.[^"\\\n]*)*")|([{}\[\],:])|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity)"""
)

_LETTERS = frozenset(range(0xC0, 0xFF)) - {0xD7, 0xF7}
"""Latin-1's letters outside ASCII, except the very rare 0xFF (y with diaeresis)."""
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_UTF8_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def refuse_other_kinds(data: bytes, name: str, expected: str = TEXT, *, json_remedy: str = "") -> None:
    """Raise InputError, with a remedy, if the data is clearly not text.

    data: a file's contents, or at least its first HEAD_BYTES + 1 bytes.
    name: the file's name, for the message.
    expected: words for what the caller reads, for the message.
    json_remedy: remedy to print for JSON input. Empty: the command that converts the file to text.
    """
    kind = find_kind(data[:HEAD_BYTES], name, whole=len(data) <= HEAD_BYTES)
    if kind is None:
        return
    remedy = json_remedy if json_remedy and kind.name.startswith("JSON") else kind.remedy
    raise InputError(f"{name}: looks like {kind.name}, expected {expected}; {remedy}")


def check_beginning(
    path: str,
    *,
    drops_bad_utf8: bool = False,
    expected: str = TEXT,
    json_remedy: str = "",
    open_input: Callable[[str], AbstractContextManager[BinaryIO]] = storage.open_input,
) -> None:
    """Read the first bytes of a file and raise InputError if they are not UTF-8 text.

    drops_bad_utf8: accept invalid UTF-8, because the caller drops the invalid bytes.
    expected: words for what the caller reads, for the message.
    json_remedy: remedy to print for JSON input. Empty: the command that converts the file to text.
    open_input: function that opens the file, for example one that also decompresses it.
    """
    with open_input(path) as file:
        head = file.read(HEAD_BYTES + 1)
    refuse_other_kinds(head, path, expected, json_remedy=json_remedy)
    if drops_bad_utf8:
        return
    try:
        head.decode()
    except UnicodeDecodeError as error:
        # In a longer file the last character may just be cut in two by the end of ``head``.
        if error.reason != "unexpected end of data" or len(head) <= HEAD_BYTES:
            raise InputError.not_utf8(path, head, error.start, suggest_utf8_remedy(head, path)) from None


def find_kind(head: bytes, name: str, *, whole: bool) -> FileKind | None:
    """Return the format that a file's first bytes show, or None for plain text.

    head: the file's first bytes.
    name: the file's name, for the remedy.
    whole: True if ``head`` is the complete file.
    """
    if (found := find_signature(head, name)) is not None:
        return found
    if encoding := _find_utf16(head):
        return FileKind(
            name=encoding, remedy=suggest_conversion("convert it", f"iconv -f {encoding} -t UTF-8 FILE", name)
        )
    return _find_json(head.removeprefix(BOM), name, whole)


def _find_utf16(head: bytes) -> str:
    """Return the encoding of the bytes: UTF-16LE, UTF-16BE, UTF-16 or UTF-32.

    The result is empty for any other.
    """
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "UTF-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    sample = head[: min(4096, len(head) & ~1)]
    for encoding, high, low in (
        ("UTF-16LE", sample[1::2], sample[::2]),
        ("UTF-16BE", sample[::2], sample[1::2]),
    ):
        if high.count(0) < max(4, len(high) / 100) or low.count(0) * 10 > high.count(0):
            continue
        # "Hi" is 48 00 69 00 in UTF-16LE: every second byte is the high byte of a character. In alphabets
        # (Latin, Greek, Cyrillic ...) high bytes are small numbers. Chinese and Japanese have large ones,
        # and are then recognised because their bytes are not valid UTF-8.
        if _count_control_bytes(high) < 0.6 * len(high) and _can_decode(sample, "utf-8"):
            continue
        if _count_control_bytes(low) < 0.2 * len(low) and _can_decode(sample, encoding):
            return encoding
    return ""


def _count_control_bytes(data: bytes) -> int:
    """Return the number of control bytes (below 32, the space character). They are rare in text."""
    return sum(byte < 32 for byte in data)


def _can_decode(sample: bytes, encoding: str) -> bool:
    """Return True if the sample is valid in the encoding.

    A character that is cut off at the end is ignored.
    """
    try:
        sample.decode(encoding)
    except UnicodeDecodeError as error:
        return error.start >= len(sample) - 4
    return True


def _find_json(head: bytes, name: str, whole: bool) -> FileKind | None:
    """Return the FileKind of JSON lines or of a single JSON value, or None for anything else."""
    # The text counts as JSON lines if at least two lines and 90 % of all lines are JSON objects. Prose may
    # contain a few such lines. If there is more of the file than ``head``, the last line may be cut, so it
    # does not count.
    lines = head.split(b"\n")
    full = [line.strip() for line in (lines if whole else lines[:-1])]
    full = [line for line in full if line]
    objects = sum(line.startswith(b"{") and line.endswith(b"}") for line in full)
    # First the cheap test of braces. Only if that succeeds, parse the lines.
    if objects > 1 and objects >= _JSON_SHARE * len(full):
        objects = sum(map(_is_json_object, full))
        if objects > 1 and objects >= _JSON_SHARE * len(full):
            first = next(line for line in full if _is_json_object(line))
            return _make_json_kind("JSON, one object a line", first, name)
    if head.lstrip().startswith((b"{", b"[")) and _begins_json_value(head, whole):
        return _make_json_kind("JSON", head, name)
    return None


def _is_json_object(line: bytes) -> bool:
    """Return True if the line is a JSON object that is not empty."""
    try:
        value = parse_json_text(line, any_number=True)
    except ValueError:
        return False
    return isinstance(value, dict) and bool(value)


def _begins_json_value(head: bytes, whole: bool) -> bool:
    """Return True if the bytes begin a JSON value that holds a string: an object with a key, a list with a
    string.

    head: a file's first bytes.
    whole: True if ``head`` is the complete file, so that the value must be complete too.
    """
    end, strings = 0, 0
    for token in _split_json(head):
        end = token.end()
        strings += token[1] is not None
    rest = head[end:].strip()
    if not strings and not rest.startswith(b'"'):
        return False
    if head.lstrip().startswith(b"{") and not re.match(rb'\s*\{\s*"[^"\\]*(?:\\.[^"\\]*)*"\s*:', head):
        return False
    # In a longer file, ``head`` may end inside a string, a number or a word such as ``true``.
    return not rest or (not whole and (rest.startswith(b'"') or len(rest) < 16))


def _split_json(head: bytes) -> Iterator[re.Match[bytes]]:
    """Yield a regular-expression match for each JSON token, up to the first bytes that are not JSON.

    Group 1 of a match is a string, group 2 a punctuation mark.
    """
    end = 0
    while token := _JSON_TOKEN.match(head, end):
        yield token
        end = token.end()


def _make_json_kind(kind: str, head: bytes, name: str) -> FileKind:
    """Return the FileKind for JSON input, with the command that converts this file to text."""
    return FileKind(name=kind, remedy=_make_json_remedy(head, name))


def _make_json_remedy(head: bytes, name: str) -> str:
    """Return a shell command that converts a JSON file to text files, for the error message.

    The text is taken from the member with the longest string. If the objects with this member are separate
    values or items of a top-level list, the command is ``bertdata segment``. If they are nested deeper, the
    command first extracts them with jq.
    """
    found = [(len(value), depth, key) for depth, key, value in islice(_read_members(head), 1000)]
    if not found:
        return suggest_segment_command(name)
    _, depth, quoted = max(found, key=lambda member: member[0])
    key = quoted[1:-1].decode(errors="replace")
    if depth == 1 or (depth == 2 and head.lstrip()[:1] == b"["):
        return suggest_segment_command(name, key)
    return suggest_record_extraction(
        name, f".. | objects | select(has({json.dumps(key, ensure_ascii=False)}))"
    )


def list_json_members(head: bytes) -> Iterator[tuple[int, str]]:
    """Yield the depth and the key of each member with a string value in the beginning of a JSON text.

    The text may end inside the last member's value.
    """
    for depth, quoted, _ in _read_members(head.removeprefix(BOM)):
        yield depth, quoted[1:-1].decode(errors="replace")


def _read_members(head: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the depth, the quoted key and the quoted value of each member with a string value.

    The bytes may end inside the last value, which is then yielded as far as it goes.
    """
    depth, key, before = 0, b"", b""
    end = 0
    for token in _split_json(head):
        end, text = token.end(), token[1] or token[2] or b""
        if before == b":" and token[1]:
            yield depth, key, text
        elif token[1]:
            key = text
        depth += (text in (b"{", b"[")) - (text in (b"}", b"]"))
        before = text
    if before == b":":
        yield depth, key, head[end:]


def suggest_utf8_remedy(data: bytes, name: str) -> str:
    """Return a remedy for data that is not valid UTF-8: conversion from Latin-1 if the data looks like
    Latin-1.
    """
    if looks_like_latin1(data):
        # A UTF-8 byte-order mark before Latin-1 text is not part of the text. tail cuts it off.
        command = "iconv -f WINDOWS-1252 -t UTF-8"
        command = f"tail -c +4 FILE | {command}" if data.startswith(BOM) else f"{command} FILE"
        return suggest_conversion("it looks like Latin-1", command, name)
    return suggest_conversion(
        "convert it from its encoding, or leave such bytes out", "iconv -c -f UTF-8 -t UTF-8 FILE", name
    )


def looks_like_latin1(data: bytes) -> bool:
    """Return True if the data looks like Latin-1.

    In Latin-1 text most non-ASCII bytes are letters between ASCII letters. So the function looks at the first
    thousand runs of non-ASCII bytes and counts two things:

    - runs that look like Latin-1: one or two bytes, all Latin-1 letters, with an ASCII letter next to them,
    - runs that do not: valid UTF-8, or longer than two bytes.

    The data looks like Latin-1 if the first number is at least ten times the second.
    """
    letters = others = 0
    for run in islice(_HIGH_RUN.finditer(data, len(BOM) if data.startswith(BOM) else 0), 1000):
        if _UTF8_SEQUENCE.search(run[0]):
            others += 1
        elif len(run[0]) <= 2 and _LETTERS.issuperset(run[0]) and _is_beside_letter(data, run):
            letters += 1
        elif len(run[0]) > 2:
            others += 1
    return letters > 0 and letters >= 10 * others


def _is_beside_letter(data: bytes, run: re.Match[bytes]) -> bool:
    """Return True if an ASCII letter comes right before or after the run of non-ASCII bytes."""
    start, end = run.span()
    return data[max(start - 1, 0) : start].isalpha() or data[end : end + 1].isalpha()
