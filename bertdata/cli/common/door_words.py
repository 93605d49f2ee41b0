"""Words of ours on another program's command line (``like``): ``--print-config``, and flags behind ``--``."""

from collections.abc import Sequence

PRINT_CONFIG = "--print-config"


def take_print_config(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments without the flag, and whether it was there."""
    rest = [word for word in arguments if word.replace("_", "-") != PRINT_CONFIG]
    return rest, len(rest) < len(arguments)


def divide(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The program's arguments, and ours behind the first ``--``."""
    place = words.index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])
