"""What all collectives of several workers share: buckets, JSON as bytes, and noticing lost workers."""

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from trainer.collectives import Collective
from trainer.collectives.watch import Watch
from trainer.devices import Device

_IN_FLIGHT = 4
"""Buckets under way at once; more would only take memory."""


class Workers(Collective, ABC):
    """Made of three operations on flat tensors."""

    def __init__(self, rank: int, size: int, device: Device) -> None:
        self.rank = rank
        self.size = size
        self._device = device
        self._watch: Watch | None = None

    def watch(self, meeting_point: str, patience: float) -> None:
        """Begin to look after one another; meeting_point: a host that all workers can reach."""
        self._watch = Watch(self.rank, self.size, meeting_point, self.gather, patience)

    @torch.no_grad()
    def broadcast(self, tensors: Iterable[torch.Tensor]) -> None:
        with self._noticing_losses():
            for bucket in _buckets(tensors, self._device.bucket_mb):
                flat = _pack(bucket)
                self._broadcast(flat.view(torch.uint8))
                _unpack(flat, bucket)

    def broadcast_object(self, value: Any) -> Any:
        return self.gather(value if self.rank == 0 else None)[0]

    @torch.no_grad()
    def average(self, tensors: Iterable[torch.Tensor], dtype: torch.dtype | None = None) -> None:
        with self._noticing_losses():
            under_way: deque[tuple[list[torch.Tensor], torch.Tensor, Callable[[], object]]] = deque()
            for number, bucket in enumerate(_buckets(tensors, self._device.bucket_mb)):
                # Divided first: the sum of 16-bit numbers must not overflow.
                flat = _pack(bucket).div_(self.size)
                flat = flat.to(dtype) if dtype is not None else flat
                under_way.append((bucket, flat, self._start_sum(flat, number)))
                if len(under_way) == _IN_FLIGHT:
                    _finish(*under_way.popleft())
            while under_way:
                _finish(*under_way.popleft())

    def sum_numbers(self, numbers: list[float]) -> list[float]:
        # By rank, on each worker: float64 wherever the device has none, and the same bits everywhere.
        return [sum(column) for column in zip(*self.gather(numbers), strict=True)]

    def gather(self, value: Any) -> list[Any]:
        data = bytearray(json.dumps(value), "ascii")
        place = self._device.torch_device
        with self._noticing_losses():
            length = torch.tensor([len(data)], dtype=torch.int64, device=place)
            lengths = [int(other) for other in self._gather(length)]
            padded = data.ljust(max(lengths))
            texts = self._gather(torch.frombuffer(padded, dtype=torch.uint8).to(place))
            return [
                json.loads(text[:length].cpu().numpy().tobytes())
                for text, length in zip(texts, lengths, strict=True)
            ]

    def barrier(self) -> None:
        self.gather(None)

    def close(self) -> None:
        self.barrier()
        if self._watch:
            self._watch.close()
        self._shut_down()

    @abstractmethod
    def _broadcast(self, flat: torch.Tensor) -> None:
        """Overwrite the bytes by those of rank 0."""

    @abstractmethod
    def _start_sum(self, flat: torch.Tensor, number: int) -> Callable[[], object]:
        """Begin to overwrite by the sum over the workers; the result is called to wait for its end.

        number: of those that may be under way together.
        """

    @abstractmethod
    def _gather(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Every worker's tensor, by rank; of one length."""

    @abstractmethod
    def _shut_down(self) -> None:
        """Let go of what the library holds."""

    @contextmanager
    def _noticing_losses(self) -> Iterator[None]:
        if self._watch:
            self._watch.check()
        try:
            yield
        except RuntimeError as error:
            if self._watch:
                self._watch.explain(error)
            raise


def _buckets(tensors: Iterable[torch.Tensor], megabytes: int) -> Iterator[list[torch.Tensor]]:
    """The tensors in their order, in runs of one type and place and at most that size, or of one tensor."""
    bucket: list[torch.Tensor] = []
    room, kind = 0, None
    for tensor in tensors:
        if tensor.numel() == 0:
            continue
        if bucket and (tensor.nbytes > room or (tensor.dtype, tensor.device) != kind):
            yield bucket
            bucket = []
        if not bucket:
            room, kind = megabytes * 2**20, (tensor.dtype, tensor.device)
        bucket.append(tensor)
        room -= tensor.nbytes
    if bucket:
        yield bucket


def _pack(bucket: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in bucket])


def _unpack(flat: torch.Tensor, bucket: list[torch.Tensor]) -> None:
    parts = torch.split(flat, [tensor.numel() for tensor in bucket])
    shaped = [part.view(tensor.shape) for part, tensor in zip(parts, bucket, strict=True)]
    torch._foreach_copy_(bucket, shaped)


def _finish(bucket: list[torch.Tensor], flat: torch.Tensor, wait: Callable[[], object]) -> None:
    wait()
    _unpack(flat, bucket)
