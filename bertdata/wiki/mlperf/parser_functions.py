"""Evaluate parser functions such as ``{{#if: ...}}`` and ``{{lc: ...}}``."""

import re
from collections.abc import Callable
from typing import Protocol
from urllib.parse import quote

from bertdata.unicode.characters import lower, upper
from bertdata.wiki.mlperf.characters import parse_integer
from bertdata.wiki.mlperf.work import FUNCTION_FRAMES, TooDeepError, Work

_ERROR = re.compile(r'<(?:strong|span|p|div)\s(?:[^>]*\s)?class="(?:[^">]*\s)?error(?:\s[^">]*)?"')


class PageExpansion(Protocol):
    """The parts of Expander that parser functions use."""

    def expand(self, text: str) -> str: ...

    def compute(self, function: str, arguments: list[str]) -> str: ...

    def invoke(self, module: str, function: str, parts: list[str]) -> str: ...


Function = Callable[[PageExpansion, str, list[str]], str]
"""Type of a parser function.

Its arguments are the page, the first argument (expanded), and the other arguments (not expanded).
"""


def call_function(page: PageExpansion, work: Work, name: str, first: str, others: list[str]) -> str:
    """Call a parser function and return its value.

    name: name of the function, such as ``#if``.
    first, others: first argument, expanded, and the other arguments, not expanded.

    The value is empty for an unknown function, too few arguments, bad arguments, and too deep nesting.
    """
    function = _FUNCTIONS.get(name)
    if function is None:
        return ""
    try:
        with work.enter_frames(FUNCTION_FRAMES):
            return function(page, first, others)
    except (ValueError, IndexError, OverflowError, TooDeepError):
        return ""


def _expand_argument(page: PageExpansion, arguments: list[str], number: int) -> str:
    """Expand one of the arguments and return it. The result is empty if the call has fewer arguments.

    arguments: arguments of the call except the first.
    number: index in ``arguments``.
    """
    return page.expand(arguments[number].strip()) if number < len(arguments) else ""


def _evaluate_if(page: PageExpansion, first: str, others: list[str]) -> str:
    if not others:
        return ""
    return _expand_argument(page, others, 0 if first else 1)


def _evaluate_ifeq(page: PageExpansion, first: str, others: list[str]) -> str:
    right = others[0].strip() if len(others) > 1 else ""
    if not right:
        return ""
    return _expand_argument(page, others, 1 if first == right else 2)


def _evaluate_iferror(page: PageExpansion, first: str, others: list[str]) -> str:
    if _ERROR.match(first):
        return _expand_argument(page, others, 0)
    return _expand_argument(page, others, 1) if len(others) > 1 else first


def _evaluate_switch(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of the first matching case.

    Unlike in MediaWiki, a last case without ``=`` is not the default.
    """
    # "a | b = x | c = y": a case without "=" shares the value of the next case with "=", so "a" gives x.
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


def _evaluate_ifexist(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``#ifexist`` for a missing page, because the extractor knows of no pages."""
    return page.expand(others[1]) if len(others) == 2 else ""


def _evaluate_expr(page: PageExpansion, first: str, others: list[str]) -> str:
    return "" if others else page.compute("expr", [page.expand(first)])


def _invoke_module(page: PageExpansion, first: str, others: list[str]) -> str:
    return page.invoke(first, others[0].strip(), others[1:])


def _convert_to_lower(page: PageExpansion, first: str, others: list[str]) -> str:
    return lower(first)


def _convert_to_upper(page: PageExpansion, first: str, others: list[str]) -> str:
    return upper(first)


def _convert_first_to_lower(page: PageExpansion, first: str, others: list[str]) -> str:
    return lower(first[:1]) + first[1:]


def _convert_first_to_upper(page: PageExpansion, first: str, others: list[str]) -> str:
    return upper(first[:1]) + first[1:]


def _encode_url(page: PageExpansion, first: str, others: list[str]) -> str:
    return quote(first.encode("utf-8"), safe="/~")


def _format_integer(page: PageExpansion, first: str, others: list[str]) -> str:
    return str(parse_integer(first))


_FUNCTIONS: dict[str, Function] = {
    "#if": _evaluate_if,
    "#ifeq": _evaluate_ifeq,
    "#iferror": _evaluate_iferror,
    "#switch": _evaluate_switch,
    "#ifexist": _evaluate_ifexist,
    "#expr": _evaluate_expr,
    "#invoke": _invoke_module,
    "lc": _convert_to_lower,
    "uc": _convert_to_upper,
    "lcfirst": _convert_first_to_lower,
    "ucfirst": _convert_first_to_upper,
    "urlencode": _encode_url,
    "int": _format_integer,
}
