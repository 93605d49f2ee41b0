"""Find calls and parameters in balanced braces, and split them at vertical bars."""

import re
from collections.abc import Iterator

_BRACES = re.compile(r"\{{2,}|\}{2,}")
_BRACES_AND_BRACKETS = re.compile(r"\{{2,}|\}{2,}|\[{2,}|\]{2,}")

CALL = 2
PARAMETER = 3
ANY = 0

Span = tuple[int, int]


def find_spans(text: str, braces: int) -> Iterator[Span]:
    """Yield the outermost spans that open with at least ``braces`` braces.

    braces: CALL (2), PARAMETER (3), or ANY for spans that open with two or more braces or brackets.

    Only runs of two or more equal characters count. If a span is never closed, neither this span nor anything
    after it is found.
    """
    if "{{" not in text and (braces or "[[" not in text):
        return
    # The stack holds the number of characters of each open run, negative for brackets.
    # "{{a|{{{1}}}}}": runs "{{" "{{{" "}}}}}"
    # -> [2] -> [2, 3] -> the closing run takes 3, then 2 -> [] : one span, which ends after the run
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
                # In "{{{a}}", fewer open braces remain than a span of this kind needs, so continue the search
                # after it.
                opening = None


def _close_braces(stack: list[int], length: int) -> int:
    """Match a run of closing braces with the open runs on the stack.

    Returns the number of closing braces left over. Open brackets in between are dropped. As in WikiExtractor,
    their number is added to the number of closing braces.
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
    """Match a run of closing brackets with the open brackets on top of the stack.

    Returns the number of closing brackets left over.
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
    """Split the text of a call at each vertical bar that is outside nested braces and brackets."""
    parts: list[str] = []
    begin = searched = 0
    for span_begin, span_end in [*find_spans(text, ANY), (len(text), len(text))]:
        while (bar := text.find("|", searched, span_begin)) >= 0:
            parts.append(text[begin:bar])
            begin = searched = bar + 1
        searched = span_end
    return [*parts, text[begin:]]
