"""Files that are no plain UTF-8 text, recognised by their bytes: compressed, JSON, shards, other encodings.

Prose is never taken for one of them because of a line or a word: a signature holds bytes that no text
begins with, and JSON must go through the whole beginning of the file.
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
from bertdata.io.remedies import convert_in_place, make_parts_of, take_records_out
from bertdata.io.signatures import FileKind, find_signature

HEAD_BYTES = 1 << 16
"""The beginning of a file, from which its kind is told."""

TEXT = "plain text in UTF-8"

BOM = b"\xef\xbb\xbf"
"""The byte-order mark of UTF-8."""

_JSON_SHARE = 0.9  # of the lines that are not blank
_JSON_TOKEN = re.compile(
    rb"""\s*(?:("[^"\\\n]*(?:\\.[^"\\\n]*)*")|([{}\[\],:])|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity)"""
)

_LETTERS = frozenset(range(0xC0, 0xFF)) - {0xD7, 0xF7}
"""Latin-1's letters outside ASCII, but for its last (y with diaeresis, 0xFF), which hardly occurs."""
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_UTF8_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def refuse_other_kinds(data: bytes, name: str, expected: str = TEXT, *, json_remedy: str = "") -> None:
    """InputError where the data, or the beginning of a file, is plainly not text. It says what to do.

    json_remedy: for JSON, in place of the command that makes parts of it.
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
    """The check of a file that is not read yet, by its first bytes: InputError as for the whole file.

    open_input: opens it; another one may unpack what is compressed.
    """
    with open_input(path) as file:
        head = file.read(HEAD_BYTES + 1)
    refuse_other_kinds(head, path, expected, json_remedy=json_remedy)
    if drops_bad_utf8:
        return
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data" or len(head) <= HEAD_BYTES:
            raise InputError.not_utf8(path, head, error.start, utf8_remedy(head, path)) from None


def find_kind(head: bytes, name: str, *, whole: bool) -> FileKind | None:
    """The kind of the file that begins with ``head``, None for text. whole: the file ends there too."""
    if (found := find_signature(head, name)) is not None:
        return found
    if encoding := _find_utf16(head):
        return FileKind(
            name=encoding, remedy=convert_in_place("convert it", f"iconv -f {encoding} -t UTF-8 FILE", name)
        )
    return _find_json(head.removeprefix(BOM), name, whole)


def _find_utf16(head: bytes) -> str:
    """The encoding where the bytes are UTF-16 or UTF-32, with a byte-order mark or without, else empty."""
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
        # An alphabet's high bytes are small; other scripts' text is no UTF-8.
        if _small(high) < 0.6 * len(high) and _decodes(sample, "utf-8"):
            continue
        if _small(low) < 0.2 * len(low) and _decodes(sample, encoding):
            return encoding
    return ""


def _small(data: bytes) -> int:
    """Number of bytes below the blank."""
    return sum(byte < 32 for byte in data)


def _decodes(sample: bytes, encoding: str) -> bool:
    """True for a beginning of text in the encoding. A character may be cut."""
    try:
        sample.decode(encoding)
    except UnicodeDecodeError as error:
        return error.start >= len(sample) - 4
    return True


def _find_json(head: bytes, name: str, whole: bool) -> FileKind | None:
    lines = head.split(b"\n")
    full = [line.strip() for line in (lines if whole else lines[:-1])]
    full = [line for line in full if line]
    objects = sum(line.startswith(b"{") and line.endswith(b"}") for line in full)
    if objects > 1 and objects >= _JSON_SHARE * len(full):
        objects = sum(map(_is_object, full))
        if objects > 1 and objects >= _JSON_SHARE * len(full):
            first = next(line for line in full if _is_object(line))
            return _json_kind("JSON, one object a line", first, name)
    if head.lstrip().startswith((b"{", b"[")) and _is_json(head, whole):
        return _json_kind("JSON", head, name)
    return None


def _is_object(line: bytes) -> bool:
    try:
        value = parse_json_text(line, any_number=True)
    except ValueError:
        return False
    return isinstance(value, dict) and bool(value)


def _is_json(head: bytes, whole: bool) -> bool:
    """True where nothing but JSON is there, with at least one member or one string in a list."""
    end, strings = 0, 0
    for token in _json_tokens(head):
        end = token.end()
        strings += token[1] is not None
    rest = head[end:].strip()
    if not strings and not rest.startswith(b'"'):
        return False
    if head.lstrip().startswith(b"{") and not re.match(rb'\s*\{\s*"[^"\\]*(?:\\.[^"\\]*)*"\s*:', head):
        return False
    # The beginning of a longer file may end within a string, a number or a word.
    return not rest or (not whole and (rest.startswith(b'"') or len(rest) < 16))


def _json_tokens(head: bytes) -> Iterator[re.Match[bytes]]:
    """The tokens of JSON, strings in group 1 and marks in group 2, up to the first thing that is none."""
    end = 0
    while token := _JSON_TOKEN.match(head, end):
        yield token
        end = token.end()


def _json_kind(kind: str, head: bytes, name: str) -> FileKind:
    return FileKind(name=kind, remedy=_json_remedy(head, name))


def _json_remedy(head: bytes, name: str) -> str:
    """Return the command that makes parts of the longest text in the JSON, wherever it is.

    Records are objects, one after another or in a list. Those further within are taken out with jq first.
    """
    found = [(len(value), depth, key) for depth, key, value in islice(_members(head), 1000)]
    if not found:
        return make_parts_of(name)
    _, depth, quoted = max(found, key=lambda member: member[0])
    key = quoted[1:-1].decode(errors="replace")
    if depth == 1 or (depth == 2 and head.lstrip()[:1] == b"["):
        return make_parts_of(name, key)
    return take_records_out(name, f".. | objects | select(has({json.dumps(key, ensure_ascii=False)}))")


def json_members(head: bytes) -> Iterator[tuple[int, str]]:
    """Depth and key of each member that is a string in the beginning of JSON. The last value may be cut."""
    for depth, quoted, _ in _members(head.removeprefix(BOM)):
        yield depth, quoted[1:-1].decode(errors="replace")


def _members(head: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Depth, quoted key and quoted value of each member that is a string. The last value may be cut."""
    depth, key, before = 0, b"", b""
    end = 0
    for token in _json_tokens(head):
        end, text = token.end(), token[1] or token[2] or b""
        if before == b":" and token[1]:
            yield depth, key, text
        elif token[1]:
            key = text
        depth += (text in (b"{", b"[")) - (text in (b"}", b"]"))
        before = text
    if before == b":":
        yield depth, key, head[end:]


def utf8_remedy(data: bytes, name: str) -> str:
    """Return the remedy for data with bytes that are not UTF-8, by what these are.

    A byte-order mark of UTF-8 in front of another encoding is none of its characters: it is cut off.
    """
    if looks_like_latin1(data):
        command = "iconv -f WINDOWS-1252 -t UTF-8"
        command = f"tail -c +4 FILE | {command}" if data.startswith(BOM) else f"{command} FILE"
        return convert_in_place("it looks like Latin-1", command, name)
    return convert_in_place(
        "convert it from its encoding, or leave such bytes out", "iconv -c -f UTF-8 -t UTF-8 FILE", name
    )


def looks_like_latin1(data: bytes) -> bool:
    """True where the bytes outside ASCII are single letters of Latin-1 beside letters of ASCII.

    Judged by the first thousand runs of them; one that is UTF-8 speaks against it.
    """
    letters = others = 0
    for run in islice(_HIGH_RUN.finditer(data, len(BOM) if data.startswith(BOM) else 0), 1000):
        if _UTF8_SEQUENCE.search(run[0]):
            others += 1
        elif len(run[0]) <= 2 and _LETTERS.issuperset(run[0]) and _beside_letter(data, run):
            letters += 1
        elif len(run[0]) > 2:
            others += 1
    return letters > 0 and letters >= 10 * others


def _beside_letter(data: bytes, run: re.Match[bytes]) -> bool:
    start, end = run.span()
    return data[max(start - 1, 0) : start].isalpha() or data[end : end + 1].isalpha()
