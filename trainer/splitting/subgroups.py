"""Groups in which some of the workers exchange tensors by torch.distributed."""

from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist

from trainer.update.worker import Worker
from trainer.workers.collective import Collective
from trainer.workers.worker_group import split_into_buckets


class Subgroup:
    """The workers of one part of a partition: the one in which this worker is.

    All workers must make it at the same time, with the same partition; the workers of one part must make
    each call together, with tensors of the same shapes, and while lost workers are named.
    """

    def __init__(self, workers: Collective, partition: Iterable[Sequence[int]], megabytes: int) -> None:
        """partition: ranks of each part. Those in none of them have a group of size 0. megabytes: reduced
        in one call."""
        self._megabytes = megabytes
        self.ranks: Sequence[int] = ()
        self.group: dist.ProcessGroup | None = None
        with workers.naming_lost_workers():
            for ranks in partition:
                group = dist.new_group(list(ranks))
                if workers.rank in ranks:
                    self.ranks, self.group = ranks, group

    @property
    def size(self) -> int:
        return len(self.ranks)

    @torch.no_grad()
    def average(self, tensors: Iterable[torch.Tensor], dtype: torch.dtype | None = None) -> None:
        """Overwrite the tensors with their means over the group. dtype: the type to add up in."""
        if self.size > 1:
            for bucket in split_into_buckets(tensors, self._megabytes):
                flat = torch.cat([tensor.reshape(-1) for tensor in bucket]).div_(self.size)
                flat = flat.to(dtype or flat.dtype)
                self.sum(flat)
                parts = torch.split(flat, [tensor.numel() for tensor in bucket])
                for tensor, part in zip(bucket, parts, strict=True):
                    tensor.copy_(part.view_as(tensor))

    @torch.no_grad()
    def sum(self, tensor: torch.Tensor) -> None:
        """Overwrite the tensor with its sum over the group."""
        if self.size > 1:
            dist.all_reduce(tensor, group=self.group)

    def send(self, tensor: torch.Tensor, place: int) -> None:
        """Send the tensor to the worker at that place of the group, which must receive as many values."""
        dist.send(tensor, self.ranks[place], group=self.group)

    def receive(self, tensor: torch.Tensor, place: int) -> None:
        """Overwrite the tensor with the one that the worker at that place sends."""
        dist.recv(tensor, self.ranks[place], group=self.group)

    def close(self) -> None:
        """Leave the group after the last call."""
        if self.group is not None:
            dist.destroy_process_group(self.group)
            self.group = None


class StageGroups:
    """The groups of a worker in a pipeline. All workers make them together.

    pipeline: the stages of its copy, in their order. copies: the copies of its stage. tied: the first and
    the last stage of its copy, where it is one of them and both have the word embeddings; else empty.
    """

    def __init__(self, worker: Worker) -> None:
        division, megabytes = worker.division, worker.device.bucket_mb
        copies, stages = range(division.copies), range(division.stages)
        lines = [[stage * division.copies + copy for stage in stages] for copy in copies]
        columns = list(zip(*lines, strict=True)) if len(copies) > 1 else []
        ends = [[line[0], line[-1]] for line in lines] if worker.model.ties_words else []
        self.pipeline = Subgroup(worker.workers, lines, megabytes)
        self.copies = Subgroup(worker.workers, columns, megabytes)
        self.tied = Subgroup(worker.workers, ends, megabytes)

    def close(self) -> None:
        """Leave the groups after the last exchange."""
        for group in (self.pipeline, self.copies, self.tied):
            group.close()
