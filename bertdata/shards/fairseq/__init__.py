"""fairseq's binarised text: ids in ``.bin``, the sizes of lines in ``.idx``, tokens in ``dict.txt``."""

from importlib import import_module

from bertdata.errors import MissingExtraError, install_extra

OBJECTIVE = "mlm"
"""Objective of examples read from a .bin: each is a block of ids whose masks are drawn during training."""


def load_numpy() -> None:
    """Raise MissingExtraError if NumPy is not installed."""
    try:
        import_module("numpy")
    except ModuleNotFoundError:
        raise MissingExtraError(
            f"container fairseq needs the package numpy: {install_extra('numpy')}"
        ) from None
