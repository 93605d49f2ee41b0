"""Record of the calls to the stand-ins of vendors' packages: a line each, in order, a file per worker.

The file is that of the environment variable BERTDATA_STAND_IN_RECORD, with the worker's rank appended
(``.0`` for the first); without the variable nothing is written.
"""

import os
from pathlib import Path
from typing import Any

import torch


def record(line: str) -> None:
    """Append the line; it is in the file when this returns."""
    if place := os.environ.get("BERTDATA_STAND_IN_RECORD"):
        rank = os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK", "0")
        with Path(f"{place}.{rank}").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def mark(heading: str) -> None:
    """Begin a part of the run: an empty line and ``# heading``."""
    record("")
    record(f"# {heading}")


def call(name: str, *values: Any, **options: Any) -> None:
    """Record a call as it could be written: ``name(1, "text", key=torch.bfloat16)``."""
    parts = [spelt(value) for value in values]
    parts += [f"{key}={spelt(value)}" for key, value in options.items()]
    record(f"{name}({', '.join(parts)})")


def spelt(value: Any) -> str:
    """The value as a reader would write it: tensors by type and shape, modules and functions by name."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, torch.nn.Module):
        return type(value).__name__
    if isinstance(value, list | tuple):
        inner = ", ".join(map(spelt, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{spelt(key)}: {spelt(item)}" for key, item in value.items()) + "}"
    return str(getattr(value, "__qualname__", value))
