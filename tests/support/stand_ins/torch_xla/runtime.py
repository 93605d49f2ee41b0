"""A stand-in for torch_xla.runtime 2.9.0."""

import logging
import os
from typing import NoReturn

from recording import call

_open: list[str] = []


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"torch_xla.runtime.{name} is not in the interface, or its stand-in does not know it"
    )


def device_type() -> str | None:
    call("runtime.device_type")
    return os.environ.get("PJRT_DEVICE")


def initialize_cache(path: str, readonly: bool = False) -> None:
    assert not _open, "Computation cache has already been initialized"
    call("runtime.initialize_cache", path, readonly=readonly)


def open_hardware() -> None:
    """Open the device, as the first computation does. Not part of torch_xla's interface."""
    if os.environ["PJRT_DEVICE"] == "TPU":
        raise OSError("libtpu not found")
    if os.environ["PJRT_DEVICE"] != "CPU":
        raise RuntimeError(f"No PjRtPlugin registered for: {os.environ['PJRT_DEVICE']}.")
    _open.append(os.environ["PJRT_DEVICE"])


if "PJRT_DEVICE" not in os.environ:
    logging.warning("Defaulting to PJRT_DEVICE=CPU")
    os.environ["PJRT_DEVICE"] = "CPU"
