"""Finds calls and parameters, which are enclosed in braces, and splits them at vertical bars."""

import re
from collections.abc import Iterator

_BRACES = re.compile(r"\{{2,}|\}{2,}")
_BRACES_AND_BRACKETS = re.compile(r"\{{2,}|\}{2,}|\[{2,}|\]{2,}")

CALL = 2
PARAMETER = 3
ANY = 0

Span = tuple[int, int]


def find_spans(text: str, braces: int) -> Iterator[Span]:
    """Yield the start and end of each outermost text that is enclosed in braces.

    braces: number of braces with which the text must open at least: CALL (2) or PARAMETER (3). ANY also finds
        texts that open with two or more brackets.

    Only two or more equal characters in a row count. If a text is never closed, this text is not found, and
    nothing after it is found.
    """
    if "{{" not in text and (braces or "[[" not in text):
        return
    # For each group of opening braces that is still open, the stack has the number of braces. For brackets,
    # the number is negative. For example, "{{a|{{{1}}}}}" has the groups "{{", "{{{" and "}}}}}". The first
    # two give the stack [2, 3]. The third closes three braces and then two, so the stack is empty. The whole
    # text is a single span.
    opening: int | None = None
    stack: list[int] = []
    for run in (_BRACES if braces else _BRACES_AND_BRACKETS).finditer(text):
        kind, length = run[0][0], run.end() - run.start()
        if opening is None:
            if kind in "{[" and length >= braces:
                opening = run.start()
                stack = [length if kind == "{" else -length]
        elif kind == "{":
            stack.append(length)
        elif kind == "[":
            stack.append(-length)
        else:
            left = _close_braces(stack, length) if kind == "}" else _close_brackets(stack, length)
            if not stack:
                yield opening, run.end() - left
                opening = None
            elif kind == "}" and len(stack) == 1 and 0 < stack[0] < braces:
                # The braces that are still open are fewer than a span needs, as in "{{{a}}" for a parameter.
                # Give up this span, and search on after it.
                opening = None


def _close_braces(stack: list[int], length: int) -> int:
    """Match a group of closing braces with the opening braces on the stack.

    stack: open groups of braces and brackets (see ``find_spans``). Brackets inside the closed braces are
        dropped. As in WikiExtractor, their number is then added to the number of closing braces.
    length: number of closing braces.

    Returns the number of closing braces that are left over.
    """
    while stack:
        open_braces = stack.pop()
        if length < open_braces:
            stack.append(open_braces - length)
            return 0
        length -= open_braces
        if open_braces and length <= 1:
            break
    return length


def _close_brackets(stack: list[int], length: int) -> int:
    """Match a group of closing brackets with the opening brackets at the end of the stack.

    stack: open groups of braces and brackets (see ``find_spans``).
    length: number of closing brackets.

    Returns the number of closing brackets that are left over.
    """
    while stack and stack[-1] < 0:
        open_brackets = -stack.pop()
        if length < open_brackets:
            stack.append(length - open_brackets)
            return 0
        length -= open_brackets
        if length <= 1:
            break
    return length


def split_parts(text: str) -> list[str]:
    """Split the text of a call at each vertical bar that is not inside nested braces or brackets."""
    parts: list[str] = []
    begin = searched = 0
    for span_begin, span_end in [*find_spans(text, ANY), (len(text), len(text))]:
        while (bar := text.find("|", searched, span_begin)) >= 0:
            parts.append(text[begin:bar])
            begin = searched = bar + 1
        searched = span_end
    return [*parts, text[begin:]]
