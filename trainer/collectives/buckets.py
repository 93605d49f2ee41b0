"""Groups of tensors that are reduced in one call."""

from collections.abc import Iterable, Iterator

import torch


def split_into_buckets(tensors: Iterable[torch.Tensor], megabytes: int) -> Iterator[list[torch.Tensor]]:
    """The tensors in order, grouped by type up to that size. A larger tensor is a bucket of its own."""
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
