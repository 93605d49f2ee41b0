"""Compiling in tests: graphs are captured, but run as they are. Making kernels would take half a minute."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch._dynamo.utils import counters

from trainer.devices.device import Device


@contextmanager
def capturing(backend: Any = "eager") -> Iterator[None]:
    """Context in which devices compile with another backend. PyTorch's counts start at 0."""

    def compile_part(_: Device, function: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = torch.compile(function, backend=backend, dynamic=False)
        return compiled

    torch._dynamo.reset()
    counters.clear()
    with patch.object(Device, "compile_part", compile_part):
        yield
    torch._dynamo.reset()


def count_graphs() -> int:
    """Return the number of graphs captured so far. No function may be in several graphs."""
    assert not counters["graph_break"]
    return counters["stats"]["unique_graphs"]
