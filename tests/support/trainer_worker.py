"""The trainer as test_pretrain.py starts it, with accidents: trainer_worker.py ARGUMENTS.

TRAINER_ACCIDENT is JSON: {"what": "kill", "term" or "nan", "rank": R, "update": N}; TRAINER_SEEN names a
directory where each worker notes, by update, which examples it was given.
"""

import json
import os
import signal
import sys
from collections.abc import Sequence
from hashlib import md5
from pathlib import Path

import torch

from trainer.__main__ import main
from trainer.collectives.launchers import find_rank
from trainer.data.batches import RowBatch
from trainer.data.loader import Update
from trainer.run.training import Training

SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM}
update_as_it_is = Training.update


def update_with_accidents(self: Training, updates: Sequence[Update]) -> list[torch.Tensor]:
    accident = json.loads(os.environ.get("TRAINER_ACCIDENT", "{}"))
    rank, number = find_rank()[0], self.state.step + 1
    if "TRAINER_SEEN" in os.environ:
        note(Path(os.environ["TRAINER_SEEN"]) / f"{self.state.phase}-{rank}.txt", number, updates[0].batches)
    if [rank, number] == [accident.get("rank"), accident.get("update")]:
        if accident["what"] == "nan":
            next(self._model.parameters()).data.fill_(float("nan"))  # on this worker alone
        else:
            os.kill(os.getpid(), SIGNALS[accident["what"]])
    return update_as_it_is(self, updates)


def note(path: Path, number: int, batches: Sequence[RowBatch]) -> None:
    """Append a line for each example: update and a digest of its ids, positions and labels."""
    with path.open("a", encoding="utf-8") as file:
        for batch in batches:
            parts = (
                batch.input_ids,
                batch.masked_lm_positions,
                batch.masked_lm_ids * batch.masked_lm_weights,
            )
            for row in torch.cat([part.int() for part in parts], dim=1):
                file.write(f"{number} {md5(row.numpy().tobytes()).hexdigest()}\n")


if __name__ == "__main__":
    Training.update = update_with_accidents  # type: ignore[method-assign]
    sys.exit(main())
