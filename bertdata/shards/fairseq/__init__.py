"""fairseq's binarised text: token ids in ``.bin``, the sizes of lines in ``.idx``, and tokens in
``dict.txt``.
"""

from importlib import import_module

from bertdata.errors import MissingExtraError, install_extra

OBJECTIVE = "mlm"
"""The objective of examples that are read from a .bin. Each is a block of ids, and is masked during
training.
"""


def load_numpy() -> None:
    """Raise MissingExtraError if NumPy is not installed."""
    try:
        import_module("numpy")
    except ModuleNotFoundError:
        raise MissingExtraError(
            f"container fairseq needs the package numpy: {install_extra('numpy')}"
        ) from None
