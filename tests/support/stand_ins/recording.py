"""A record of the calls to the stand-ins of vendors' packages: one line per call, one file per worker.

The environment variable BERTDATA_STAND_IN_RECORD is the file's path, to which the worker's rank is appended
(``.0`` for the first worker). Without the variable nothing is recorded.
"""

import os
from pathlib import Path
from typing import Any

import torch


def record(line: str) -> None:
    """Append a line to the record. It is in the file when this function returns."""
    if place := os.environ.get("BERTDATA_STAND_IN_RECORD"):
        rank = os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK", "0")
        with Path(f"{place}.{rank}").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def mark(heading: str) -> None:
    """Begin a new part of the record with an empty line and ``# heading``."""
    record("")
    record(f"# {heading}")


def call(name: str, *values: Any, **options: Any) -> None:
    """Record a call in the form of Python code, such as ``name(1, "text", key=torch.bfloat16)``."""
    parts = [spelt(value) for value in values]
    parts += [f"{key}={spelt(value)}" for key, value in options.items()]
    record(f"{name}({', '.join(parts)})")


def spelt(value: Any) -> str:
    """Return a text for a value: a tensor's type and shape, a function's or module's name, else its repr."""
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
