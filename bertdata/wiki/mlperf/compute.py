"""Evaluate arithmetic and regular expressions in wikitext, with limits. The C++ kernel calls this too."""

import re
import warnings

from bertdata.wiki.mlperf.expressions import ExpressionError, evaluate

MAX_PATTERN = 200
MAX_STEPS = 10_000_000
MAX_RESULT = 64 << 20

_SINGLE_EQUALS = re.compile("(?<![!<>])=")
_REPEATED_GROUP = re.compile(r"\)[*+?{]")
_CHOICE = re.compile(r"[*+?{|]")


def compute(function: str, arguments: list[str]) -> str:
    """Call one of three functions and return its value.

    expr(text): value of the arithmetic expression. If it is not valid, an error element with the text.
    find(source, pattern): empty if the regular expression matches somewhere in the source, else ``0``.
    replace(source, pattern, replacement, count): source with the first ``count`` matches replaced (0: all).

    The value is empty for a regular expression that Python refuses or that may take long: one that repeats a
    group, is longer than MAX_PATTERN, or has so many choices for the length of the source that a search may
    take MAX_STEPS.
    """
    if function == "expr":
        return _compute_expression(*arguments)
    if function == "find":
        return _search_pattern(*arguments)
    return _replace_pattern(*arguments)


def _compute_expression(text: str) -> str:
    text = _SINGLE_EQUALS.sub("==", text).replace("mod", "%")
    try:
        return evaluate(text)
    except ExpressionError:
        return f'<span class="error">{text}</span>'


def _search_pattern(source: str, pattern: str) -> str:
    compiled = _compile_pattern(pattern, source)
    return "" if compiled is None or compiled.search(source) else "0"


def _replace_pattern(source: str, pattern: str, replacement: str, count: str) -> str:
    compiled = _compile_pattern(pattern, source)
    if compiled is None or (len(source) + 1) * (len(replacement) + 1) > MAX_RESULT:
        return ""
    try:
        return compiled.sub(replacement, source, int(count))
    # the replacement refers to a group that the pattern does not have
    except (re.error, IndexError, OverflowError):
        return ""


def _compile_pattern(pattern: str, source: str) -> "re.Pattern[str] | None":
    """Compile a regular expression.

    Returns None if Python refuses it, or a search in the source might take long.
    """
    # Backtracking takes at most about length ** (choices + 1) steps: "a*b*c" has two choices.
    choices = len(_CHOICE.findall(pattern))
    if len(pattern) > MAX_PATTERN or _REPEATED_GROUP.search(pattern):
        return None
    if (len(source) + 1) ** (choices + 1) > MAX_STEPS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None
