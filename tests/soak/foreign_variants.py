"""Variants of JSON, TOML and tables for tests.soak.hostile_files: retyped, deep, huge, damaged, not UTF-8."""

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.soak.retyped_states import ODD, changed, places

Variant = tuple[str, bytes]
"""The variant in words, and its bytes."""

_DEEP = 100_000
_DIGITS = "9" * 5_000
_NUMBERS = ("NaN", "-Infinity", "1e999", _DIGITS, f"-{_DIGITS}", "1e308", "5e-324", "18446744073709551616")
_BYTES = (b"\xff", b"\xed\xa0\x80", b"\0", b"\x80", "\u202e".encode())
_MARK = "@@here@@"


def json_variants(data: bytes, stream: random.Random) -> Iterator[Variant]:
    """Yield variants of a JSON file: a value replaced, removed or nested deeply, and damaged bytes."""
    value = json.loads(data)
    found = [*places(value)]
    for place in stream.sample(found, min(len(found), 25)):
        yield f"without {place}", _dumped(changed(value, place, None, remove=True))
        for odd in (
            *ODD,
            "\ud800",
            "x" * 100_000,
            "\0",
            "../x",
            [[[]]],
            [None],
            {"": None},
            -1,
            1e308,
            1 << 64,
        ):
            yield f"{place} = {odd!r:.40}", _dumped(changed(value, place, odd))
        for number in _NUMBERS:
            yield f"{place} = {number[:30]}", _with_text(value, place, number)
        deep = "[" * _DEEP + "]" * _DEEP
        yield f"{place} is deep", _with_text(value, place, deep)
        yield f"{place} is deep within objects", _with_text(value, place, '{"a":' * _DEEP + "1" + "}" * _DEEP)
    yield from _whole(data, stream)
    yield "brackets alone", b"[" * _DEEP
    yield "another type", b'["x"]'
    yield "null", b"null"
    yield "UTF-16", data.decode().encode("utf-16")


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def _with_text(value: Any, place: tuple[Any, ...], text: str) -> bytes:
    """The JSON with a text of any form in the place of a value."""
    return json.dumps(changed(value, place, _MARK)).replace(f'"{_MARK}"', text).encode()


def toml_variants(data: bytes, stream: random.Random) -> Iterator[Variant]:
    """Yield variants of a TOML file: a line's value replaced, lines repeated, and damaged bytes."""
    lines = data.decode().splitlines()
    odd = (
        "true",
        "-5",
        "1e999",
        "nan",
        f"0x{'f' * 400}",
        _DIGITS,
        '"x"',
        "[]",
        "[1]",
        "{}",
        "{a = 1}",
        "''",
        "2020-01-01",
        "[" * _DEEP,
        "[[[[1]]]]",
        '"\\u0000"',
    )
    for number, line in enumerate(lines):
        if "=" in line:
            for value in odd:
                new = f"{line.partition('=')[0]}= {value}"
                yield f"{new:.60}", "\n".join([*lines[:number], new, *lines[number + 1 :]]).encode()
        yield f"line {number} twice", "\n".join([*lines[:number], line, *lines[number:]]).encode()
        keys = "".join(f"key{count} = 1\n" for count in range(3_000))
        yield f"3,000 keys before line {number}", "\n".join([*lines[:number], keys, *lines[number:]]).encode()
    yield "a key of many dots", data + b"\n" + b"a." * 50_000 + b"a = 1\n"
    yield from _whole(data, stream)


def table_variants(data: bytes, stream: random.Random) -> Iterator[Variant]:
    """Yield variants of a table: cells replaced, added and lost, columns twice, and damaged bytes."""
    lines = data.split(b"\n")
    mark = b"\t" if b"\t" in lines[0] else b","
    for number in {0, 1, stream.randrange(len(lines)), len(lines) - 2} & set(range(len(lines))):
        cells = lines[number].split(mark)

        def line_of(*new: bytes, number: int = number) -> bytes:
            return b"\n".join([*lines[:number], mark.join(new), *lines[number + 1 :]])

        yield f"line {number} has a cell more", line_of(*cells, b"1")
        yield f"line {number} has a cell less", line_of(*cells[:-1])
        yield f"line {number} is empty", line_of(b"")
        yield f"line {number} has a million cells", line_of(*[b"1"] * 1_000_000)
        for place in {0, stream.randrange(len(cells)), len(cells) - 1}:
            for odd in (
                b"",
                b"x",
                b"nan",
                b"-inf",
                b"1e999",
                b"-1",
                b"1.5",
                b"1e308",
                _DIGITS.encode(),
                b'"',
                b"'",
                b"[" * _DEEP,
                "\u0663".encode(),
                b"9" * 30,
                b"x" * 200_000,
                cells[0],
                *_BYTES,
            ):
                new = [*cells[:place], odd, *cells[place + 1 :]]
                yield f"line {number}, cell {place} = {odd[:20]!r}", line_of(*new)
    yield from _whole(data, stream)


def lines_variants(data: bytes, stream: random.Random) -> Iterator[Variant]:
    """Yield variants of a file of lines, some of JSON, and damaged bytes."""
    lines = data.split(b"\n")
    for number in {0, stream.randrange(len(lines)), max(len(lines) - 2, 0)}:
        line = lines[number]
        begin = line.index(b"{") if b"{" in line else len(line)
        if begin < len(line):
            made = ((what, line[:begin] + new) for what, new in json_variants(line[begin:], stream))
        else:
            odd = (
                b"",
                b"x" * 200_000,
                b"a 1 2 3",
                b"-1",
                _DIGITS.encode(),
                b"a " + _DIGITS.encode(),
                *_BYTES,
            )
            made = ((repr(new[:30]), new) for new in odd)
        for what, new in made:
            yield f"line {number}: {what}", b"\n".join([*lines[:number], new, *lines[number + 1 :]])
    yield from _whole(data, stream)


def _whole(data: bytes, stream: random.Random) -> Iterator[Variant]:
    """Yield variants that any file may have."""
    yield "empty", b""
    yield "blank", b"\n\n"
    yield "a byte-order mark", b"\xef\xbb\xbf" + data
    yield "bytes that are no text", bytes(range(256)) * 20
    for _ in range(6):
        at = stream.randrange(len(data))
        yield f"cut at {at}", data[:at]
        for new in _BYTES:
            yield f"{new!r} at {at}", data[:at] + new + data[at + 1 :]
