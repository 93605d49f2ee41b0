"""A worker of tests of sharded models: sharded_worker.py TRIALS DIRECTORY.

TRIALS is a file of pickled trials, by name; the results are written as NAME-RANK.pt.
"""

import pickle
import sys
from pathlib import Path

import torch

from tests.support.sharded_training import train
from trainer.collectives.torch_distributed import TorchDistributed
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu

if __name__ == "__main__":
    torch.set_num_threads(1)
    trials = pickle.loads(Path(sys.argv[1]).read_bytes())
    workers = TorchDistributed(Cpu(Config.of()))
    for name, trial in trials.items():
        (Path(sys.argv[2]) / f"{name}-{workers.rank}").write_bytes(
            pickle.dumps(train(trial, workers, "auto" if "plan" in trial.settings else "sharded"))
        )
    workers.close()
