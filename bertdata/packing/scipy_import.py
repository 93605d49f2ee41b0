"""SciPy, imported when a plan needs it."""

from importlib import import_module
from typing import Any

from bertdata.errors import MissingExtraError, install_extra


def load_scipy(module: str) -> Any:
    """A module of SciPy. MissingExtraError where it is not installed."""
    try:
        return import_module(f"scipy.{module}")
    except ImportError as error:
        raise MissingExtraError(
            f"a plan of packed rows needs the package scipy ({error}): {install_extra('pack')}, "
            "or use --method lpfhp"
        ) from None
