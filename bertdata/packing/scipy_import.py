"""Import SciPy only if a packing plan needs it."""

from importlib import import_module
from typing import Any

from bertdata.errors import MissingExtraError, install_extra


def load_scipy(module: str) -> Any:
    """Return the SciPy module with this name. Raises MissingExtraError if SciPy is not installed."""
    try:
        return import_module(f"scipy.{module}")
    except ImportError as error:
        raise MissingExtraError(
            f"a plan of packed rows needs the package scipy ({error}): {install_extra('pack')}, "
            "or use --method lpfhp"
        ) from None
