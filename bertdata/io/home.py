"""The home directory in words that no shell has expanded: ``--output-dir=~/run``, ``"~/a+~/b"`` in a file.

A shell expands ``~`` at the beginning of a word alone, so that the programs do it behind ``=`` and in lists
of paths. They do it in one place each, with their words and with the values of their files of settings.
"""

import re
from collections.abc import Sequence
from os.path import expanduser
from typing import Any

_FIRST = re.compile(r"(--?[\w-]+=|)(~[\w.-]*)(?=/)", re.ASCII)
"""``~/`` or ``~user/`` where a word or a flag's value begins. A lone ``~`` may be a token, or a separator."""

_LATER = re.compile(r"([,+])(~[\w.-]*)(?=/)", re.ASCII)
"""The same where another path of a list begins."""


def expand_home(text: str) -> str:
    """Return the word with home directories in place of ``~``, where a path begins.

    >>> expand_home("--train-data=~root/a+~root/b*0.3")
    '--train-data=/root/a+/root/b*0.3'

    A text with blanks is no list of paths: only its beginning is looked at.
    """
    if "~" not in text:
        return text
    if begins := _FIRST.match(text):
        text = f"{begins[1]}{expanduser(begins[2])}{text[begins.end() :]}"
    if any(character.isspace() for character in text):
        return text
    return _LATER.sub(lambda found: found[1] + expanduser(found[2]), text)


def expand_words(words: Sequence[str]) -> list[str]:
    """Return a command line's words, each with home directories in place of ``~``."""
    return [expand_home(word) for word in words]


def expand_values(value: Any) -> Any:
    """Return the value of a file of settings with home directories in place of ``~`` in each text."""
    if isinstance(value, str):
        return expand_home(value)
    if isinstance(value, list):
        return [expand_values(item) for item in value]
    if isinstance(value, dict):
        return {name: expand_values(item) for name, item in value.items()}
    return value
