"""The C++ kernels, if they could be built; only step modules that have a kernel import this."""

from typing import Any, Literal

from bertdata.errors import UsageError

Engine = Literal["native", "python"]

kernels: Any
try:
    from bertdata._native import _kernels as kernels
except ImportError as _error:
    kernels = None
    why_missing: str | None = str(_error)
else:
    why_missing = None


def available() -> bool:
    """Whether the kernels can be used."""
    return kernels is not None


def default_engine() -> Engine:
    """Native where the kernels were built, else python."""
    return "native" if available() else "python"


def use_native(engine: Engine) -> bool:
    """True for "native", False for "python"; UsageError when native kernels are asked for but missing."""
    if engine == "python":
        return False
    if not available():
        raise UsageError(f"engine native: the kernels are not built ({why_missing}); use --engine python")
    return True
