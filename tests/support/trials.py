"""Trials that several connected processes run. Usage, by ``run_trials``: ``trials.py TRIALS DIRECTORY``.

A trial is any picklable object with a method ``train(workers)``. TRIALS is a file of pickled trials by name.
Each process writes its result of a trial to NAME-RANK.
"""

import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tests.support.launching import launch
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.workers.torch_distributed import TorchDistributed


def run_trials(trials: Mapping[str, Any], processes: int, place: Path) -> dict[str, list[Any]]:
    """Run the trials in this many processes. Returns the results of each trial by rank."""
    (place / "trials").write_bytes(pickle.dumps(trials))
    outcome = launch("torchrun", processes, Path(__file__), place / "trials", place, seconds=240)
    assert outcome.status == 0, outcome.err
    ranks = range(processes)
    return {name: [pickle.loads((place / f"{name}-{r}").read_bytes()) for r in ranks] for name in trials}


def _work(trials: Path, place: Path) -> None:
    """Run one process's part of all trials."""
    torch.set_num_threads(1)
    Cpu.bucket_mb = 1  # as in the bandwidth measurement; larger than all weights
    workers = TorchDistributed(Cpu(Config.of()))
    for name, trial in pickle.loads(trials.read_bytes()).items():
        (place / f"{name}-{workers.rank}").write_bytes(pickle.dumps(trial.train(workers)))
    workers.close()


if __name__ == "__main__":
    _work(*map(Path, sys.argv[1:]))
