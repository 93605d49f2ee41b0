"""Trials by several processes that are connected: trials.py TRIALS DIRECTORY, started by ``run_trials``.

A trial is any object that can be pickled and has a method ``train(workers)``. TRIALS is a file of pickled
trials, by name; each process writes its results as NAME-RANK.
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
    """The results of each process by rank, of each trial."""
    (place / "trials").write_bytes(pickle.dumps(trials))
    outcome = launch("torchrun", processes, Path(__file__), place / "trials", place, seconds=240)
    assert outcome.status == 0, outcome.err
    ranks = range(processes)
    return {name: [pickle.loads((place / f"{name}-{r}").read_bytes()) for r in ranks] for name in trials}


def _work(trials: Path, place: Path) -> None:
    """One process's part of all trials."""
    torch.set_num_threads(1)
    Cpu.bucket_mb = 1  # what bandwidth is measured with; more than all weights
    workers = TorchDistributed(Cpu(Config.of()))
    for name, trial in pickle.loads(trials.read_bytes()).items():
        (place / f"{name}-{workers.rank}").write_bytes(pickle.dumps(trial.train(workers)))
    workers.close()


if __name__ == "__main__":
    _work(*map(Path, sys.argv[1:]))
