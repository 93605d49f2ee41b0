"""The data that a checkpoint was trained on, from whose labels the baselines of an evaluation follow."""

from contextlib import suppress
from pathlib import Path

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import BertDataError
from trainer.checkpoints.reading import read_state
from trainer.checkpoints.source import find_trainer_checkpoint
from trainer.tasks.task_files import FEATURES
from trainer.update.worker import Runtime


def open_trained_data(runtime: Runtime, path: str, tokens: int | None) -> OpenedDataset | None:
    """Open the data that a checkpoint was trained on, so that its evaluation has the run's own baselines.

    Return None for another program's checkpoint, and if the data no longer exist, have changed, or cannot be
    read by every worker.
    path: path of the checkpoint.
    tokens: number of tokens in the model's vocabulary, or None if it is not known.
    """
    digest, candidates = runtime.on_rank_0(lambda: _find_trained_paths(path))
    for candidate in candidates:
        found = None
        with suppress(BertDataError):
            found = runtime.task.open(runtime.config, candidate, tokens)
        if all(runtime.collective.gather(found is not None and found.digest == digest)):
            return found
    return None


def _find_trained_paths(path: str) -> tuple[str, list[str]]:
    """Return the digest of the data that a checkpoint was trained on, and the paths where the data may be.

    The list is empty for another program's checkpoint.
    """
    own = find_trainer_checkpoint(path)
    if own is None:
        return "", []
    state = read_state(own)
    trained = state.config.get("train_data")
    if not trained:
        return state.data, []
    # A fine-tuned run keeps the features of its training file, also after it was moved.
    moved = own.parent.parent / FEATURES / Path(trained).name
    return state.data, [trained, str(moved)]
