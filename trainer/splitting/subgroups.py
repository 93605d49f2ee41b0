"""Groups of workers that exchange tensors among themselves with torch.distributed."""

from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist

from trainer.update.worker import Worker
from trainer.workers.collective import Collective
from trainer.workers.worker_group import split_into_buckets


class Subgroup:
    """A group of workers that exchange tensors: the part of a partition of all workers that
    this worker belongs to.

    All workers must create the object at the same time, with the same partition. The workers of a group must
    call each method together, with tensors of the same shape. They must do so inside the context
    ``Collective.naming_lost_workers``, which turns a lost worker into an error.
    """

    def __init__(self, workers: Collective, partition: Iterable[Sequence[int]], megabytes: int) -> None:
        """Create the process groups of all parts of the partition.

        partition: the ranks of each part. A worker that is in no part gets a group of size 0.
        megabytes: the largest amount of data that one call of torch.distributed sums up.
        """
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
        """Number of workers in the group."""
        return len(self.ranks)

    @torch.no_grad()
    def average(self, tensors: Iterable[torch.Tensor], dtype: torch.dtype | None = None) -> None:
        """Replace each tensor with its mean over the workers of the group.

        dtype: type in which the tensors are added up. None means the type of the tensors.
        """
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
        """Replace the tensor with its sum over the workers of the group."""
        if self.size > 1:
            dist.all_reduce(tensor, group=self.group)

    def send(self, tensor: torch.Tensor, place: int) -> None:
        """Send the tensor to a worker of the group, which must receive the same number of values.

        place: index of that worker in the group.
        """
        dist.send(tensor, self.ranks[place], group=self.group)

    def receive(self, tensor: torch.Tensor, place: int) -> None:
        """Overwrite the tensor with the tensor that a worker of the group sends.

        place: index of that worker in the group.
        """
        dist.recv(tensor, self.ranks[place], group=self.group)

    def close(self) -> None:
        """Destroy the process group. Call this after the last exchange."""
        if self.group is not None:
            dist.destroy_process_group(self.group)
            self.group = None


class StageGroups:
    """The three groups that a worker of a pipeline belongs to.

    All workers must create this object at the same time.

    pipeline: the workers with the stages of this worker's copy of the model, in the order of the stages.
    copies: the workers that have a copy of this worker's stage.
    tied: the two workers with the first and the last stage of this worker's copy, if this worker is one of
        them and both stages have the word embeddings. Otherwise the group is empty.
    """

    def __init__(self, worker: Worker) -> None:
        division, megabytes = worker.model_share, worker.device.bucket_mb
        copies, stages = range(division.copies), range(division.stages)
        # The worker of rank r has copy r % copies of stage r // copies. With 2 copies and 3 stages, the
        # pipelines are [[0, 2, 4], [1, 3, 5]], the workers with equal stages are [(0, 1), (2, 3), (4, 5)],
        # and the first and last stages are on [[0, 4], [1, 5]].
        lines = [[stage * division.copies + copy for stage in stages] for copy in copies]
        columns = list(zip(*lines, strict=True)) if len(copies) > 1 else []
        ends = [[line[0], line[-1]] for line in lines] if worker.model.ties_words else []
        self.pipeline = Subgroup(worker.collective, lines, megabytes)
        self.copies = Subgroup(worker.collective, columns, megabytes)
        self.tied = Subgroup(worker.collective, ends, megabytes)

    def close(self) -> None:
        """Destroy all three groups. Call this after the last exchange."""
        for group in (self.pipeline, self.copies, self.tied):
            group.close()
