"""The functions of Lua modules that WikiExtractor implements, such as ``{{#invoke:String|len|...}}``."""

from collections.abc import Callable

from bertdata.wiki.mlperf.characters import format_repr, parse_float, parse_integer
from bertdata.wiki.mlperf.work import Work, check_text_size, count_bytes

Arguments = dict[str, str]
"""Arguments of a call: values by name, in the order in which the names first occur.

An argument without a name gets a number as its name: ``1``, ``2`` and so on.
"""

_NUMERALS = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
_MAX_ROMAN = 4999
_FIRST_COUNT, _LAST_COUNT = -(1 << 63), (1 << 63) - 1
"""Smallest and largest count that Python's ``str.replace`` accepts.

With other counts, the result is empty.
"""


def invoke_function(module: str, function: str, arguments: Arguments, work: Work) -> str:
    """Call a function of a Lua module, and return its value. The value is empty if the function is unknown.

    work: counter of the work on the page.

    Raises ValueError or IndexError for bad arguments.
    """
    if module == "String" and function in _STRING:
        names, call = _STRING[function]
        return call(work, *_take_arguments(names, arguments))
    if module in ("Roman", "Numero romano") and function == "main":
        return _format_roman(arguments)
    if module == "If empty" and function == "main":
        return _format_arguments(work, arguments)
    return ""


def _take_arguments(names: tuple[str, ...], arguments: Arguments) -> list[str]:
    """Return the argument for each parameter of a function.

    names: names of the parameters. A parameter for which there is no argument with this name gets the next
        unnamed argument, or an empty text if there is no more.
    """
    # For example, the parameters may be ("s", "i", "j"), and the call "sub|abc|i=2|3". The arguments are
    # {"1": "abc", "i": "2", "2": "3"}. Then s is "abc" (the first unnamed argument), i is "2", and j is "3"
    # (the second unnamed argument).
    taken = []
    number = 1
    for name in names:
        if name in arguments:
            taken.append(arguments[name])
        else:
            taken.append(arguments.get(str(number), ""))
            number += 1
    return taken


def _compute_length(work: Work, text: str) -> str:
    """Return the number of characters of a text, as text."""
    return str(len(text))


def _cut_substring(work: Work, text: str, first: str, last: str) -> str:
    """Return the characters of a text from the position ``first`` to the position ``last``, both included."""
    # Lua counts characters from 1, and includes the last character. Negative numbers count from the end. For
    # example, ("abcdef", "2", "3") gives text[1:3] = "bc", and ("abcdef", "-3", "-1") gives text[-3:6] =
    # "def".
    begin = parse_integer(first or "1")
    end = parse_integer(last or "-1")
    if begin > 0:
        begin -= 1
    if end < 0:
        end += 1
        if end == 0:
            end = len(text)
    return text[begin:end]


def _cut_by_length(work: Work, text: str, first: str, length: str) -> str:
    """Return ``length`` characters of a text from the position ``first`` on, which counts from 1."""
    begin = parse_integer(first or "1") - 1
    return text[begin : begin + parse_integer(length or "1")]


def _get_character(work: Work, text: str, place: str) -> str:
    """Return a single character of a text. ``place`` counts from 1, or from the end if it is negative."""
    number = parse_integer(place or "1")
    return text[number - 1 if number > 0 else number]


def _find_target(work: Work, source: str, target: str, start: str, plain: str) -> str:
    """Return where a text occurs in another text, counted from 1. The result is "0" if it does not occur.

    plain: "1" for a plain text, otherwise the target is a regular expression.
    """
    if not source or not target:
        return "0"
    begin, is_plain = parse_integer("0" + start), parse_integer("0" + plain)
    if is_plain:
        return str(source.find(target, begin - 1) + 1)
    return work.compute("find", [source, target])


def _replace_text(work: Work, source: str, pattern: str, replacement: str, count: str, plain: str) -> str:
    """Replace a plain text or a regular expression in a text.

    count: how often it is replaced. Empty or "0" means always.
    plain: "0" for a regular expression, otherwise the pattern is a plain text.
    """
    times = parse_integer(count or "0")
    if parse_integer(plain or "1"):
        if not _FIRST_COUNT <= times <= _LAST_COUNT:
            return ""
        found = source.count(pattern)
        number = min(times, found) if times > 0 else found
        check_text_size(count_bytes(source) + number * (count_bytes(replacement) - count_bytes(pattern)))
        work.spend(count_bytes(source) + number * (count_bytes(replacement) + 1))
        return source.replace(pattern, replacement, times or -1)
    return work.compute("replace", [source, pattern, replacement, str(times)])


def _repeat(work: Work, text: str, count: str) -> str:
    """Return an empty text.

    The function of WikiExtractor always fails, because it multiplies a string by a string.
    """
    return ""


_STRING: dict[str, tuple[tuple[str, ...], Callable[..., str]]] = {
    "len": (("s",), _compute_length),
    "sub": (("s", "i", "j"), _cut_substring),
    "sublength": (("s", "i", "len"), _cut_by_length),
    "pos": (("target", "pos"), _get_character),
    "find": (("source", "target", "start", "plain"), _find_target),
    "replace": (("source", "pattern", "replace", "count", "plain"), _replace_text),
    "rep": (("s", "count"), _repeat),
}


def _format_roman(arguments: Arguments) -> str:
    """Format a number as a Roman numeral.

    If it is out of range, return the second argument, or "N/A" without one.
    """
    number = int(parse_float(arguments.get("1", "")))
    if not 0 <= number <= _MAX_ROMAN:
        return arguments.get("2", "N/A")
    numeral = ""
    for value, letters in _NUMERALS:
        times, number = divmod(number, value)
        numeral += letters * times
    return numeral


def _format_arguments(work: Work, arguments: Arguments) -> str:
    """Format the arguments like Python's ``str`` formats a dict."""
    work.spend(sum(count_bytes(name) + count_bytes(value) for name, value in arguments.items()))
    pairs = (f"{format_repr(name)}: {format_repr(value)}" for name, value in arguments.items())
    value = "{" + ", ".join(pairs) + "}"
    check_text_size(count_bytes(value))
    return value
