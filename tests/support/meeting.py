"""Workers of one run as threads of this process.

They exchange values with each other, without any training.
"""

import json
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.errors import ReportedError
from trainer.tasks.choice import find_task
from trainer.update.worker import Runtime, hold_whole_model
from trainer.workers.collective import Collective, Stopping

_SECONDS = 20


class Meeting:
    """The place where the threads exchange values: each thread stores a value and reads the values of all."""

    def __init__(self, size: int) -> None:
        self.values: list[Any] = [None] * size
        self.barrier = threading.Barrier(size)
        self.size = size
        self.exchanges = 0

    def exchange(self, rank: int, value: Any) -> list[Any]:
        """Store this worker's value. Returns every worker's value, by rank."""
        self.values[rank] = value
        self.exchanges += self.barrier.wait(_SECONDS) == 0
        found = list(self.values)
        self.barrier.wait(_SECONDS)
        return found


class ThreadWorkers(Collective):
    """The collective of one thread. Each thread acts as the first worker of a separate machine."""

    name = "threads"

    def __init__(self, rank: int, meeting: Meeting, local_rank: int = 0) -> None:
        self.rank, self.size, self.local_rank = rank, meeting.size, local_rank
        self._meeting = meeting
        self.stopping = Stopping()

    def gather(self, value: Any) -> list[Any]:
        return [json.loads(text) for text in self._meeting.exchange(self.rank, json.dumps(value))]

    def broadcast(self, tensors: Iterable[torch.Tensor], source: int = 0) -> None:
        own = list(tensors)
        given = self._meeting.exchange(self.rank, own)[source]
        if self.rank != source:
            for tensor, values in zip(own, given, strict=True):
                tensor.copy_(values)
        self.barrier()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a worker ended: with a result, or with an exit status that all workers share."""

    result: Any = None
    status: int = 0


def meet(
    configs: list[Config], work: Callable[[Runtime], Any], local_ranks: list[int] | None = None
) -> list[Ended]:
    """Call ``work`` in a thread for each configuration.

    The test fails if a thread stops exchanging values before the others.
    """
    meeting = Meeting(len(configs))

    def run(rank: int) -> Ended:
        workers = ThreadWorkers(rank, meeting, local_ranks[rank] if local_ranks else 0)
        config = configs[rank].changed(device="cpu")
        runtime = Runtime(
            config=config,
            device=Cpu(config),
            collective=workers,
            model_share=hold_whole_model(workers),
            task=find_task("pretraining", config),
        )
        try:
            return Ended(result=work(runtime))
        except ReportedError as error:
            return Ended(status=error.exit_status)

    with ThreadPoolExecutor(len(configs)) as pool:
        return list(pool.map(run, range(len(configs))))
