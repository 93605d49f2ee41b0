"""The words of the shell script demo_bert in the order that a parser takes: the sub-command first."""

import os
from collections.abc import Sequence

COMMANDS = ("pretraining", "finetuning")
_WITH_VALUE = ("-d", "--dtype", "-m", "--model", "-o", "--output-dir")
_HOROVOD = ("-v", "--use_horovod")


def is_of_shell(words: Sequence[str]) -> bool:
    """True for a command line of the script: a sub-command by its name, and no -c or --command."""
    names_it = any(word.startswith(("-c", "--co")) for word in words)
    return not names_it and any(word in COMMANDS for word in words)


def ordered(words: Sequence[str]) -> list[str]:
    """The sub-command, then the flags; -v without a number has the script's 8, or NUM_WORKERS_PER_HLS."""
    flags, rest = list[str](), list[str]()
    place = 0
    while place < len(words):
        word = words[place]
        following = words[place + 1 : place + 2]
        if word in _HOROVOD:
            has_number = bool(following) and following[0].lstrip("-").isdecimal()
            flags += [word, following[0] if has_number else os.environ.get("NUM_WORKERS_PER_HLS", "8")]
            place += 1 + has_number
        elif word in _WITH_VALUE:
            flags += [word, *following]
            place += 2
        else:
            rest.append(word)
            place += 1
    return [rest[0], *flags, *rest[1:]] if rest else []
