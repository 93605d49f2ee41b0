"""Parser functions: ``{{#if: ...}}``, ``{{lc: ...}}`` and their kin."""

import re
from collections.abc import Callable
from typing import Protocol
from urllib.parse import quote

from bertdata.unicode.characters import lower, upper
from bertdata.wiki.mlperf.characters import parse_integer
from bertdata.wiki.mlperf.work import FUNCTION_FRAMES, TooDeepError, Work

_ERROR = re.compile(r'<(?:strong|span|p|div)\s(?:[^>]*\s)?class="(?:[^">]*\s)?error(?:\s[^">]*)?"')


class PageExpansion(Protocol):
    """The expansion that calls a function, as far as functions need it."""

    def expand(self, text: str) -> str: ...

    def compute(self, function: str, arguments: list[str]) -> str: ...

    def invoke(self, module: str, function: str, parts: list[str]) -> str: ...


Function = Callable[[PageExpansion, str, list[str]], str]
"""The value for the first argument, which is evaluated, and the others, which are not."""


def call_function(page: PageExpansion, work: Work, name: str, first: str, others: list[str]) -> str:
    """The function's value. Empty for unknown ones, too few arguments, bad ones, and too deep a nesting."""
    function = _FUNCTIONS.get(name)
    if function is None:
        return ""
    try:
        with work.frames(FUNCTION_FRAMES):
            return function(page, first, others)
    except (ValueError, IndexError, OverflowError, TooDeepError):
        return ""


def _evaluate(page: PageExpansion, arguments: list[str], number: int) -> str:
    """The argument of that number, the second being 0, expanded. Empty where there is none."""
    return page.expand(arguments[number].strip()) if number < len(arguments) else ""


def _if(page: PageExpansion, first: str, others: list[str]) -> str:
    if not others:
        return ""
    return _evaluate(page, others, 0 if first else 1)


def _ifeq(page: PageExpansion, first: str, others: list[str]) -> str:
    right = others[0].strip() if len(others) > 1 else ""
    if not right:
        return ""
    return _evaluate(page, others, 1 if first == right else 2)


def _iferror(page: PageExpansion, first: str, others: list[str]) -> str:
    if _ERROR.match(first):
        return _evaluate(page, others, 0)
    return _evaluate(page, others, 1) if len(others) > 1 else first


def _switch(page: PageExpansion, first: str, others: list[str]) -> str:
    """The value of the first case that fits. A last case without ``=`` is no default."""
    matched = False
    default = ""
    for case in others:
        left, equals, right = case.partition("=")
        label = page.expand(left.strip())
        if not equals:
            matched = matched or label == first
            continue
        value = page.expand(right.strip())
        if matched or first in [piece.strip() for piece in label.split("|")]:
            return value
        if label == "#default":
            default = value
    return default


def _ifexist(page: PageExpansion, first: str, others: list[str]) -> str:
    """The else branch: no page exists."""
    return page.expand(others[1]) if len(others) == 2 else ""


def _expr(page: PageExpansion, first: str, others: list[str]) -> str:
    return "" if others else page.compute("expr", [page.expand(first)])


def _invoke(page: PageExpansion, first: str, others: list[str]) -> str:
    return page.invoke(first, others[0].strip(), others[1:])


def _lower(page: PageExpansion, first: str, others: list[str]) -> str:
    return lower(first)


def _upper(page: PageExpansion, first: str, others: list[str]) -> str:
    return upper(first)


def _lower_first(page: PageExpansion, first: str, others: list[str]) -> str:
    return lower(first[:1]) + first[1:]


def _upper_first(page: PageExpansion, first: str, others: list[str]) -> str:
    return upper(first[:1]) + first[1:]


def _urlencode(page: PageExpansion, first: str, others: list[str]) -> str:
    return quote(first.encode("utf-8"), safe="/~")


def _integer(page: PageExpansion, first: str, others: list[str]) -> str:
    return str(parse_integer(first))


_FUNCTIONS: dict[str, Function] = {
    "#if": _if,
    "#ifeq": _ifeq,
    "#iferror": _iferror,
    "#switch": _switch,
    "#ifexist": _ifexist,
    "#expr": _expr,
    "#invoke": _invoke,
    "lc": _lower,
    "uc": _upper,
    "lcfirst": _lower_first,
    "ucfirst": _upper_first,
    "urlencode": _urlencode,
    "int": _integer,
}
