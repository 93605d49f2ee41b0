"""The C++ kernels, if they were built. Only modules of a step that has a kernel import this."""

from importlib import import_module
from typing import Any, Literal

from bertdata.errors import UsageError

Engine = Literal["native", "python"]


def _load() -> tuple[Any, str | None]:
    """The extension module, or None, and the reason that it is missing."""
    try:
        return import_module("bertdata._native._kernels"), None
    except ImportError as error:
        return None, str(error)


kernels, why_missing = _load()


def available() -> bool:
    """True where the kernels were built."""
    return kernels is not None


def default_engine() -> Engine:
    """Native where the kernels were built, else python."""
    return "native" if available() else "python"


def use_native(engine: Engine) -> bool:
    """True for "native", False for "python". UsageError when native kernels are asked for but missing."""
    if engine == "python":
        return False
    if not available():
        raise UsageError(f"engine native: the kernels are not built ({why_missing}); use --engine python")
    return True
