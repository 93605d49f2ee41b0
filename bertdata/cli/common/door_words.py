"""The flag ``--print-config``, which every command line of this project accepts."""

from collections.abc import Sequence

PRINT_CONFIG = "--print-config"


def take_print_config(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Remove ``--print-config`` from a command line.

    Return the other words, and True if the flag was among them.
    """
    rest = [word for word in arguments if word.replace("_", "-") != PRINT_CONFIG]
    return rest, len(rest) < len(arguments)
