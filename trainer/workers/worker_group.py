"""Base class of the collectives for several workers.

It collects tensors in buckets, sends JSON as numbers, and detects lost workers.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch

from bertdata.errors import SettingsError
from trainer.devices.device import Device
from trainer.workers.collective import Collective
from trainer.workers.heartbeat import Heartbeat
from trainer.workers.job_launchers import join_environment
from trainer.workers.launchers import VARIABLES, find_local_rank, is_in_job

LAUNCHERS = {"horovod": "horovodrun", "torch_distributed": "torchrun", "poprun": "poprun"}
"""For each collective, the program that starts its workers."""


class WorkerGroup(Collective, ABC):
    """Base class of collectives that build every exchange from one operation: the sum of a tensor over all
    workers.
    """

    @classmethod
    def check(cls, device: Device) -> None:
        """Raise SettingsError without the collective's launcher, or if the collective does not work with the
        device.
        """
        name = cls.name
        if name == "torch_distributed" and not os.environ.get("RANK") and is_in_job():
            join_environment()
        if missing := [variable for variable in VARIABLES[name] if not os.environ.get(variable)]:
            raise SettingsError(f"{name}: {missing[0]} is not set; start under {LAUNCHERS[name]}")
        if name not in device.collectives:
            raise SettingsError(
                f"{name}: not for device {device.name!r}; start the workers with "
                f"{LAUNCHERS[device.collectives[1]]}"
            )

    def __init__(self, rank: int, size: int, device: Device, address: str) -> None:
        """Start the heartbeats between the workers.

        rank: rank of this worker.
        size: number of workers.
        device: the device that has the tensors to exchange.
        address: address at which other workers reach this worker. Only rank 0's address is used.
        """
        self.rank = rank
        self.size = size
        self.local_rank = find_local_rank()
        self._device = device
        self._heartbeat = Heartbeat(rank, size)
        self.stopping = self._heartbeat.stopping
        self._heartbeat.start(address, self.broadcast_object)

    def broadcast(self, tensors: Iterable[torch.Tensor], source: int = 0) -> None:
        # To broadcast, sum the tensors of one rank and -0.0 from all others. Adding -0.0 keeps the bits of
        # every number, but adding 0.0 would turn -0.0 into 0.0.
        self._sum_buckets(tensors, lambda flat: flat if self.rank == source else torch.full_like(flat, -0.0))

    def average(self, tensors: Iterable[torch.Tensor], dtype: torch.dtype | None = None) -> None:
        # Divide before the sum, because a sum of 16-bit numbers could overflow.
        self._sum_buckets(tensors, lambda flat: flat.div_(self.size).to(dtype or flat.dtype))

    def start_average(
        self, flat: torch.Tensor, name: str, dtype: torch.dtype | None = None
    ) -> Callable[[], None]:
        with torch.no_grad(), self.naming_lost_workers():
            wait = self._start_sum(flat.div_(self.size).to(dtype or flat.dtype), name)

        def finish() -> None:
            with torch.no_grad(), self.naming_lost_workers():
                found = wait()
                if found.data_ptr() != flat.data_ptr():
                    flat.copy_(found)

        return finish

    def gather(self, value: Any) -> list[Any]:
        # Send the JSON text as a row of numbers. Exchange the lengths first, because the rows of all workers
        # must have the same width.
        text = json.dumps(value).encode("ascii")
        # Widths are powers of two. Some devices compile for each shape, and so get only a few shapes.
        width = 2 ** max(6, (max(self._exchange_rows([len(text)], 1))[0] - 1).bit_length())
        return [json.loads(bytes(row).rstrip(b"\0")) for row in self._exchange_rows(list(text), width)]

    def naming_lost_workers(self) -> AbstractContextManager[None]:
        return self._heartbeat.naming_lost_workers()

    def close(self) -> None:
        self.barrier()
        self._heartbeat.close()

    @abstractmethod
    def _start_sum(self, tensor: torch.Tensor, name: str) -> Callable[[], torch.Tensor]:
        """Start to sum a tensor over the workers. Return a function that waits for the sum and returns it.

        The tensor may be overwritten.
        name: name of this sum, unlike the names of all others that are not finished.
        """

    @torch.no_grad()
    def _sum_buckets(
        self, tensors: Iterable[torch.Tensor], term: Callable[[torch.Tensor], torch.Tensor]
    ) -> None:
        """Overwrite the tensors with sums over the workers.

        term: function that returns this worker's summand for a tensor with one dimension.
        """
        with self.naming_lost_workers():
            under_way = []
            # Start the sums of all buckets before waiting for the first, so that they are sent at the same
            # time.
            for number, bucket in enumerate(split_into_buckets(tensors, self._device.bucket_mb)):
                flat = term(torch.cat([tensor.reshape(-1) for tensor in bucket]))
                under_way.append((bucket, self._start_sum(flat, f"bucket.{number}")))
            for bucket, wait in under_way:
                parts = torch.split(wait(), [tensor.numel() for tensor in bucket])
                shaped = [part.view_as(tensor) for part, tensor in zip(parts, bucket, strict=True)]
                _overwrite_tensors(bucket, shaped)

    def _exchange_rows(self, row: list[int], width: int) -> list[list[int]]:
        """Return a list of the workers' rows of numbers, by rank.

        Each worker fills its row in a table of zeros. The sum of these tables has all rows.
        row: this worker's row.
        width: number of columns of the table. Shorter rows are padded with zeros.
        """
        table = torch.zeros(self.size, width, dtype=torch.int32)
        table[self.rank, : len(row)] = torch.tensor(row)
        with self.naming_lost_workers():
            rows: list[list[int]] = self._start_sum(table.to(self._device.torch_device), "table")().tolist()
        return rows


def split_into_buckets(tensors: Iterable[torch.Tensor], megabytes: int) -> Iterator[list[torch.Tensor]]:
    """Yield the tensors in order, grouped in buckets of one type with at most ``megabytes``.

    A tensor that is larger than that is a bucket of its own. Large buckets need few exchanges, and each
    exchange takes time even for a few bytes.
    """
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


def _overwrite_tensors(tensors: list[torch.Tensor], values: list[torch.Tensor]) -> None:
    """Copy the values into the tensors, for all tensors at once if torch can do that."""
    if hasattr(torch, "_foreach_copy_"):  # from torch 2.1 on, one call can copy all tensors
        torch._foreach_copy_(tensors, values)
        return
    for tensor, value in zip(tensors, values, strict=True):
        tensor.copy_(value)
