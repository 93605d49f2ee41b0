"""Access to the C++ kernels, if they are built. Imported only by modules that have a kernel."""

from importlib import import_module
from typing import Any, Literal

from bertdata.errors import UsageError

Engine = Literal["native", "python"]


def _load() -> tuple[Any, str | None]:
    """Return the extension module and None, or None and the reason why the import failed."""
    try:
        return import_module("bertdata._native._kernels"), None
    except ImportError as error:
        return None, str(error)


kernels, why_missing = _load()


def available() -> bool:
    """Return True if the kernels are built."""
    return kernels is not None


def default_engine() -> Engine:
    """Return "native" if the kernels are built, else "python"."""
    return "native" if available() else "python"


def use_native(engine: Engine) -> bool:
    """Return True for "native" and False for "python".

    Raises UsageError for "native" if the kernels are not built.
    """
    if engine == "python":
        return False
    if not available():
        raise UsageError(f"engine native: the kernels are not built ({why_missing}); use --engine python")
    return True
