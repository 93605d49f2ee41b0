"""The word of ours that every command line may have: ``--print-config``."""

from collections.abc import Sequence

PRINT_CONFIG = "--print-config"


def take_print_config(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Return the arguments without the flag, and whether it was there."""
    rest = [word for word in arguments if word.replace("_", "-") != PRINT_CONFIG]
    return rest, len(rest) < len(arguments)
