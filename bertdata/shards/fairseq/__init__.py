"""fairseq's binarised text: lines of ids in ``.bin``, their sizes in ``.idx``, symbols in ``dict.txt``."""

from importlib import import_module

from bertdata.errors import MissingExtraError, install_extra

OBJECTIVE = "mlm"
"""The objective of lines as blocks that are masked at load."""


def load_numpy() -> None:
    """MissingExtraError where NumPy is not installed."""
    try:
        import_module("numpy")
    except ModuleNotFoundError:
        remedy = install_extra("numpy")
        raise MissingExtraError(f"container fairseq needs the package numpy: {remedy}") from None
