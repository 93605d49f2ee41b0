"""The flag ``--print-config``, which every command line of this project accepts."""

from collections.abc import Sequence

PRINT_CONFIG = "--print-config"


def remove_print_config_flag(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Return the command line without ``--print-config``, and True if the flag was there."""
    rest = [word for word in arguments if word.replace("_", "-") != PRINT_CONFIG]
    return rest, len(rest) < len(arguments)
