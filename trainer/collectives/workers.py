"""What all collectives of several workers share: buckets, JSON as numbers, and noticing lost workers."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from trainer.collectives import Collective, find_local_rank
from trainer.collectives.watch import Watch
from trainer.devices import Device


class Workers(Collective, ABC):
    """Made of one operation, the sum of flat tensors."""

    def __init__(self, rank: int, size: int, device: Device, address: str) -> None:
        """address: under which the others can reach this worker; only rank 0's counts."""
        self.rank, self.size, self.local_rank = rank, size, find_local_rank()
        self._device = device
        self._watch = Watch(rank, size)
        self._watch.begin(address, self.broadcast_object)

    def broadcast(self, tensors: Iterable[torch.Tensor]) -> None:
        # Whatever is added to -0.0 keeps its bits; 0.0 would not let -0.0 through.
        self._sum(tensors, lambda flat: flat if self.rank == 0 else torch.full_like(flat, -0.0))

    def broadcast_object(self, value: Any) -> Any:
        return self.gather(value if self.rank == 0 else None)[0]

    def average(self, tensors: Iterable[torch.Tensor], dtype: torch.dtype | None = None) -> None:
        # Divided first: the sum of 16-bit numbers must not overflow.
        self._sum(tensors, lambda flat: flat.div_(self.size).to(dtype or flat.dtype))

    def sum_numbers(self, numbers: list[float]) -> list[float]:
        # By rank, on each worker: float64 wherever the device has none, and the same bits everywhere.
        return [sum(column) for column in zip(*self.gather(numbers), strict=True)]

    def gather(self, value: Any) -> list[Any]:
        text = json.dumps(value).encode("ascii")
        # A power of two, at least: devices that compile for each shape see but a few.
        width = 2 ** max(6, (max(self._rows([len(text)], 1))[0] - 1).bit_length())
        return [json.loads(bytes(row).rstrip(b"\0")) for row in self._rows(list(text), width)]

    def barrier(self) -> None:
        self.gather(None)

    def close(self) -> None:
        self.barrier()
        self._watch.close()

    @abstractmethod
    def _start_sum(self, tensor: torch.Tensor, name: str) -> Callable[[], torch.Tensor]:
        """Begin to add up over the workers; the result is called to wait for the sum.

        The tensor may be overwritten. name: its own among those under way together.
        """

    @torch.no_grad()
    def _sum(self, tensors: Iterable[torch.Tensor], term: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Overwrite the tensors by the sum over the workers of the terms that each makes of them."""
        with self._watch.naming_losses():
            under_way = []
            for number, bucket in enumerate(_buckets(tensors, self._device.bucket_mb)):
                flat = term(torch.cat([tensor.reshape(-1) for tensor in bucket]))
                under_way.append((bucket, self._start_sum(flat, f"bucket.{number}")))
            for bucket, wait in under_way:
                parts = torch.split(wait(), [tensor.numel() for tensor in bucket])
                shaped = [part.view_as(tensor) for part, tensor in zip(parts, bucket, strict=True)]
                _overwrite(bucket, shaped)

    def _rows(self, row: list[int], width: int) -> list[list[int]]:
        """Every worker's row, by rank, filled up with zeros: each adds its own to a table of zeros."""
        table = torch.zeros(self.size, width, dtype=torch.int32)
        table[self.rank, : len(row)] = torch.tensor(row)
        with self._watch.naming_losses():
            rows: list[list[int]] = self._start_sum(table.to(self._device.torch_device), "table")().tolist()
        return rows


def _overwrite(tensors: list[torch.Tensor], values: list[torch.Tensor]) -> None:
    if hasattr(torch, "_foreach_copy_"):  # all at one go, from torch 2.1 on
        torch._foreach_copy_(tensors, values)
        return
    for tensor, value in zip(tensors, values, strict=True):
        tensor.copy_(value)


def _buckets(tensors: Iterable[torch.Tensor], megabytes: int) -> Iterator[list[torch.Tensor]]:
    """The tensors in their order, in runs of one type and at most that size, or of one tensor."""
    bucket: list[torch.Tensor] = []
    room = 0
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        if bucket and (size > room or tensor.dtype != bucket[0].dtype):
            yield bucket
            bucket = []
        room = (room if bucket else megabytes * 2**20) - size
        bucket.append(tensor)
    if bucket:
        yield bucket
