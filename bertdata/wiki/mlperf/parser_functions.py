"""Evaluates parser functions, which are calls such as ``{{#if: ...}}`` and ``{{lc: ...}}``."""

import re
from collections.abc import Callable
from typing import Protocol
from urllib.parse import quote

from bertdata.unicode.characters import lower, upper
from bertdata.wiki.mlperf.characters import parse_integer
from bertdata.wiki.mlperf.work import FUNCTION_FRAMES, TooDeepError, Work

_ERROR = re.compile(r'<(?:strong|span|p|div)\s(?:[^>]*\s)?class="(?:[^">]*\s)?error(?:\s[^">]*)?"')


class PageExpansion(Protocol):
    """Interface of the methods of ``Expander`` that parser functions use."""

    def expand(self, text: str) -> str: ...

    def compute(self, function: str, arguments: list[str]) -> str: ...

    def invoke(self, module: str, function: str, parts: list[str]) -> str: ...


Function = Callable[[PageExpansion, str, list[str]], str]
"""Type of a parser function.

Its arguments are the expander of the page, the first argument of the call (expanded), and the other arguments
(not expanded).
"""


def call_function(page: PageExpansion, work: Work, name: str, first: str, others: list[str]) -> str:
    """Call a parser function, and return its value.

    The value is empty if the function is unknown, if the arguments are too few or bad, or if calls are nested
    too deeply.

    page: expander of the page.
    work: counter of the work on the page.
    name: name of the function, such as ``#if``.
    first: first argument of the call, expanded.
    others: other arguments of the call, not expanded.
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
    """Return an argument of a call, expanded. The result is empty if the call has fewer arguments.

    arguments: arguments of the call except the first.
    number: index of the argument in ``arguments``.
    """
    return page.expand(arguments[number].strip()) if number < len(arguments) else ""


def _evaluate_if(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``{{#if: text | value if not empty | value if empty}}``."""
    if not others:
        return ""
    return _expand_argument(page, others, 0 if first else 1)


def _evaluate_ifeq(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``{{#ifeq: left | right | value if equal | value if not}}``."""
    right = others[0].strip() if len(others) > 1 else ""
    if not right:
        return ""
    return _expand_argument(page, others, 1 if first == right else 2)


def _evaluate_iferror(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``{{#iferror: text | value for an error | value otherwise}}``."""
    if _ERROR.match(first):
        return _expand_argument(page, others, 0)
    return _expand_argument(page, others, 1) if len(others) > 1 else first


def _evaluate_switch(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``{{#switch: text | case = value | ...}}``: the value of the first case that equals
    the text.

    Unlike in MediaWiki, a last case without ``=`` is not the default.
    """
    # A case without "=" has the value of the next case with "=". For example, in "a | b = x | c = y" the
    # value of both a and b is x.
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
    """Return the value of ``#ifexist`` for a page that does not exist.

    The extractor does not know which pages exist, so all pages count as missing.
    """
    return page.expand(others[1]) if len(others) == 2 else ""


def _evaluate_expr(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``{{#expr: arithmetic expression}}``."""
    return "" if others else page.compute("expr", [page.expand(first)])


def _invoke_module(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``{{#invoke: module | function | ...}}``."""
    return page.invoke(first, others[0].strip(), others[1:])


def _convert_to_lower(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``{{lc: text}}``."""
    return lower(first)


def _convert_to_upper(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``{{uc: text}}``."""
    return upper(first)


def _convert_first_to_lower(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``{{lcfirst: text}}``."""
    return lower(first[:1]) + first[1:]


def _convert_first_to_upper(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``{{ucfirst: text}}``."""
    return upper(first[:1]) + first[1:]


def _encode_url(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``{{urlencode: text}}``."""
    return quote(first.encode("utf-8"), safe="/~")


def _format_integer(page: PageExpansion, first: str, others: list[str]) -> str:
    """Return the value of ``{{int: text}}``: the integer in the text, in ASCII digits."""
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
