"""Expansion of ``~`` where no shell has done it: ``--output-dir=~/run``, or ``"~/a+~/b"`` in a settings file.

A shell expands ``~`` only at the beginning of a word. The programs call these functions on their command
line, where ``~`` may follow ``=`` or stand in a list of paths, and on the values of their settings files.
"""

import re
from collections.abc import Sequence
from os.path import expanduser
from typing import Any

_HOME_AT_START = re.compile(r"(--?[\w-]+=|)(~[\w.-]*)(?=/)", re.ASCII)
"""Matches ``~/`` or ``~user/`` at the beginning of a word, or of the value in ``--flag=value``.

A ``~`` without a following ``/`` is not matched, because it may be a token or a separator.
"""

_HOME_IN_LIST = re.compile(r"([,+])(~[\w.-]*)(?=/)", re.ASCII)
"""Matches ``~/`` or ``~user/`` after ``,`` or ``+``, where the next path of a list begins."""


def expand_home(text: str) -> str:
    """Replace ``~`` by home directories wherever a path begins in the word.

    ``--train-data=~anna/a+~anna/b*0.3`` becomes ``--train-data=/home/anna/a+/home/anna/b*0.3``.

    A text with white space is not a list of paths, so only its beginning is expanded.
    """
    if "~" not in text:
        return text
    if begins := _HOME_AT_START.match(text):
        text = f"{begins[1]}{expanduser(begins[2])}{text[begins.end() :]}"
    if any(character.isspace() for character in text):
        return text
    return _HOME_IN_LIST.sub(lambda found: found[1] + expanduser(found[2]), text)


def expand_words(words: Sequence[str]) -> list[str]:
    """Expand ``~`` in each argument of a command line."""
    return [expand_home(word) for word in words]


def expand_values(value: Any) -> Any:
    """Expand ``~`` in all strings of a settings file's value, also inside lists and tables."""
    if isinstance(value, str):
        return expand_home(value)
    if isinstance(value, list):
        return [expand_values(item) for item in value]
    if isinstance(value, dict):
        return {name: expand_values(item) for name, item in value.items()}
    return value
