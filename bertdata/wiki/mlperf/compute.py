"""Evaluates arithmetic and regular expressions in wikitext, with limits.

The C++ kernel calls these functions too.
"""

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
    """Call one of three functions, and return its value as text.

    function: name of the function, with these arguments:

    - expr(text): value of the arithmetic expression. If the text is not an expression, an error element with
      the text.
    - find(source, pattern): empty if the regular expression matches somewhere in the source, otherwise ``0``.
    - replace(source, pattern, replacement, count): the source with the first ``count`` matches replaced. If
      the count is 0, all matches are replaced.

    The value is empty if Python refuses the regular expression, or if a search may take long. This is the
    case if the expression repeats a group or is longer than MAX_PATTERN, or if it leaves so many choices for
    a source of this length that a search may take MAX_STEPS steps.
    """
    if function == "expr":
        return _compute_expression(*arguments)
    if function == "find":
        return _search_pattern(*arguments)
    return _replace_pattern(*arguments)


def _compute_expression(text: str) -> str:
    """Return the value of an arithmetic expression, or an error element if the text is not an expression."""
    text = _SINGLE_EQUALS.sub("==", text).replace("mod", "%")
    try:
        return evaluate(text)
    except ExpressionError:
        return f'<span class="error">{text}</span>'


def _search_pattern(source: str, pattern: str) -> str:
    """Return an empty text if the regular expression matches somewhere in the source, otherwise "0"."""
    compiled = _compile_pattern(pattern, source)
    return "" if compiled is None or compiled.search(source) else "0"


def _replace_pattern(source: str, pattern: str, replacement: str, count: str) -> str:
    """Return the source with the first ``count`` matches of a regular expression replaced."""
    compiled = _compile_pattern(pattern, source)
    if compiled is None or (len(source) + 1) * (len(replacement) + 1) > MAX_RESULT:
        return ""
    try:
        return compiled.sub(replacement, source, int(count))
    # For example, the replacement refers to a group that the pattern does not have.
    except (re.error, IndexError, OverflowError):
        return ""


def _compile_pattern(pattern: str, source: str) -> "re.Pattern[str] | None":
    """Compile a regular expression.

    Returns None if Python refuses the expression, or if a search in this source may take long.
    """
    # Each repetition in a pattern is a choice: "a*b*c" has two. With backtracking, a search takes about
    # length ** (choices + 1) steps at most.
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
