"""The groups in which the workers of a pipeline exchange tensors."""

from trainer.extensions.splitting.subgroups import Subgroup
from trainer.update.strategy import Worker


class StageGroups:
    """The groups of this worker. All workers make them together.

    pipeline: the stages of its copy, in their order. copies: the copies of its stage. tied: the first and
    the last stage of its copy, where it is one of them and both have the word embeddings; else empty.
    """

    def __init__(self, worker: Worker) -> None:
        division, megabytes = worker.division, worker.device.bucket_mb
        copies, stages = range(division.copies), range(division.stages)
        lines = [[stage * division.copies + copy for stage in stages] for copy in copies]
        columns = [[stage * division.copies + copy for copy in copies] for stage in stages]
        ends = [[line[0], line[-1]] for line in lines] if worker.model.ties_words else []
        self.pipeline = Subgroup(worker.workers, lines, megabytes)
        self.copies = Subgroup(worker.workers, columns if len(copies) > 1 else [], megabytes)
        self.tied = Subgroup(worker.workers, ends, megabytes)

    def close(self) -> None:
        """Leave the groups after the last exchange."""
        for group in (self.pipeline, self.copies, self.tied):
            group.close()
