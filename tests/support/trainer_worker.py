"""The trainer with planned accidents, for test_pretrain.py. Usage: ``trainer_worker.py ARGUMENTS``.

TRAINER_ACCIDENT is JSON: {"what": "kill", "term", "nan", "other weights" or "full", "rank": R, "update": N}.
- With "micro_batch": M too, all workers wait in the update's forward pass number M (from 1) until they have
  agreed to stop.
- With "full", the disk is full from this update on. In the next update, all workers wait until they have
  agreed to stop.

TRAINER_CHECKS_AFTER is "N RUN": data files are compared with their md5s only after N updates of the run.

TRAINER_STORE_LOG is a file to which the store at ``slow://`` writes what was read (benchmarks.slow_store).

TRAINER_SEEN is a directory where each worker writes, for each update, which examples it received.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from hashlib import md5
from pathlib import Path
from typing import Any

import torch

from benchmarks.slow_store import SlowStore, register_slow_store
from tests.support.flat import examples_of
from tests.support.held_checks import count_updates, hold_checks
from trainer.__main__ import main
from trainer.checkpoints import checkpoint as checkpoints
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.data import file_checks
from trainer.data.batches import Batch
from trainer.data.loader import Update
from trainer.devices.cpu import Cpu
from trainer.run.training_state import Training
from trainer.workers.collective import Collective
from trainer.workers.launchers import find_rank

WAIT_SECONDS = 60
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM}
update_as_it_is = Training.update


def update_with_accidents(self: Training, updates: Sequence[Update]) -> list[torch.Tensor]:
    accident = json.loads(os.environ.get("TRAINER_ACCIDENT", "{}"))
    rank, number = find_rank()[0], self.state.step + 1
    if "TRAINER_SEEN" in os.environ:
        note(Path(os.environ["TRAINER_SEEN"]) / f"{self.state.phase}-{rank}.txt", number, updates[0].batches)
    if "micro_batch" in accident:
        if number == accident["update"]:
            self.model.register_forward_pre_hook(TermInMicroBatch(self, accident))
    elif [rank, number] == [accident.get("rank"), accident.get("update")]:
        if accident["what"] == "full":
            checkpoints.write_safetensors = no_space
        elif accident["what"] == "other weights":
            next(self.model.parameters()).data[0].add_(0.5)
        elif accident["what"] == "nan":
            next(self.model.parameters()).data.fill_(float("nan"))  # on this worker alone
        else:
            wait_for_checkpoint(self)
            os.kill(os.getpid(), SIGNALS[accident["what"]])
    if accident.get("what") == "full" and number == accident["update"] + 1:
        wait_for_agreement(self.runtime.collective)
    return update_as_it_is(self, updates)


def no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


def wait_for_agreement(workers: Collective) -> None:
    """Wait until all workers have agreed to stop."""
    stopping = workers.stopping
    with stopping._changed:
        assert stopping._changed.wait_for(lambda: stopping.is_agreed, WAIT_SECONDS)


def wait_for_checkpoint(training: Training) -> None:
    """Wait until the last checkpoint is on disk, so that a kill cannot interrupt its writing."""
    config, deadline = training.runtime.config, time.monotonic() + WAIT_SECONDS
    number = training.state.step // config.run.checkpoint_every * config.run.checkpoint_every
    while number and number not in find_checkpoints(config.run.output_dir):
        assert time.monotonic() < deadline
        time.sleep(0.01)


class TermInMicroBatch:
    """A hook that sends SIGTERM to a worker in a micro-batch, then waits until all agree to stop."""

    def __init__(self, training: Training, accident: dict[str, Any]) -> None:
        self._workers, self._accident = training.runtime.collective, accident
        self._passes = 0

    def __call__(self, *_: object) -> None:
        self._passes += 1
        if self._passes < self._accident["micro_batch"]:
            return
        assert self._passes == self._accident["micro_batch"], "computed after the agreement"
        if self._workers.rank == self._accident["rank"]:
            os.kill(os.getpid(), signal.SIGTERM)
        wait_for_agreement(self._workers)


def note(path: Path, number: int, batches: Sequence[Batch]) -> None:
    """Append a line for each example: the update, and a digest of ids, masked positions and labels."""
    with path.open("a", encoding="utf-8") as file:
        for batch in batches:
            for example in examples_of(batch):
                file.write(f"{number} {md5(repr(example).encode()).hexdigest()}\n")


if __name__ == "__main__":
    Cpu.bucket_mb = 1  # as in the bandwidth measurement
    Training.update = update_with_accidents  # type: ignore[method-assign]
    if "TRAINER_STORE_LOG" in os.environ:
        register_slow_store()
        SlowStore.log = Path(os.environ["TRAINER_STORE_LOG"])
    if "TRAINER_CHECKS_AFTER" in os.environ:
        count, run = os.environ["TRAINER_CHECKS_AFTER"].split(" ", 1)
        file_checks.compute_file_md5s = hold_checks(lambda: count_updates(Path(run)) == int(count))
    sys.exit(main())
