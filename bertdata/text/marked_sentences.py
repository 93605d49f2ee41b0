"""Split text at end marks, for languages whose abbreviations contain none, or into lines.

Chinese and Japanese have no spaces between words. A run of marks such as ``。 ！ ？ …`` ends a sentence,
together with the closing quotes and brackets after it. The other marks depend on what is next to them:

- ``!`` and ``?`` end a sentence, unless a Latin letter or a digit follows (as in a URL).
- ``．`` ends a sentence, unless a Latin letter or a digit is on either side (as in a number).
- ``"`` and ``'`` do not close a sentence, since they also open quotes.

In Korean, the marks ``. ? !`` end a sentence if white space follows, together with the closing marks after
them. But a period after a Latin letter, a digit or another period does not end a sentence: it may be an
initial, a date such as ``2019. 3. 1.`` or an ellipsis.

No sentence starts with an end mark. The end of a line always ends a sentence.
"""

import re

from bertdata.errors import InputError

_CLOSING = "”’」』）】》〉〕］｝〗〙»)\\]}"
_WIDE = "。｡！？…‥"
_MARKS = f"{_WIDE}!?．"
_LATIN = "0-9A-Za-z０-９Ａ-Ｚａ-ｚ"
# The set of end marks comes first and the look-around conditions after it, because the module re finds a
# character of a set quickly.
_END_MARK = rf"[{_MARKS}](?!(?<=[!?．])[{_LATIN}])(?<![{_LATIN}]．)"
_WITHOUT_BLANKS = re.compile(
    rf"{_END_MARK}(?<=[^\s{_MARKS}].)(?:{_END_MARK})*[{_CLOSING}]*[^\S\n]*(?=[^\s{_MARKS}{_CLOSING}])"
)
_WITH_BLANKS = re.compile(
    rf"(?:[.。](?<=[^\s.…{_LATIN}].)|[?!？！](?<=[^\s?!？！].)[?!？！]*)[{_CLOSING}\"']*[^\S\n]+(?=\S)"
)
_ENDS = {"ja": _WITHOUT_BLANKS, "zh": _WITHOUT_BLANKS, "ko": _WITH_BLANKS}


class MarkSplitter:
    """Sentence splitter that cuts lines at the end marks of Chinese (zh), Japanese (ja) or Korean (ko).

    For any other language, each line is a sentence.
    """

    def __init__(self, code: str) -> None:
        self._ends = _ENDS.get(code)

    def segment_lines(self, data: bytes, name: str = "text", *, keeps_indent: bool = False) -> bytes:
        r"""Split UTF-8 lines into sentences, one per line. Empty lines stay, lines of white space disappear.

        A closing quote belongs to the sentence before it:

        >>> MarkSplitter("zh").segment_lines("他说：“好。”然后走了！ 再见\n".encode()).decode()
        '他说：“好。”\n然后走了！\n再见\n'
        """
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise InputError.not_utf8(name, data, error.start) from None
        strip = str.rstrip if keeps_indent else str.strip
        lines = text.removesuffix("\n").split("\n") if text else []
        kept = [strip(line) for line in lines if not line or not line.isspace()]
        joined = "".join(f"{line}\n" for line in kept)
        return (joined if self._ends is None else self._ends.sub(_end_line, joined)).encode()


def _end_line(end: re.Match[str]) -> str:
    """Return the end of a sentence with a newline in place of the white space after it."""
    return end.group().rstrip() + "\n"
