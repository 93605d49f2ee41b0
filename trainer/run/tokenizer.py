"""The tokeniser of a checkpoint: its vocabulary and casing, from its run, its data or beside its weights."""

from pathlib import Path
from typing import Any

from bertdata.config.value_check import read_object
from bertdata.dataset.vocabulary import known_vocabulary
from bertdata.errors import DataError, UsageError
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.records import Vocabulary
from bertdata.tokens.fit import casing_warnings
from bertdata.tokens.load import load_vocabulary
from trainer.checkpoint.reading import read_state
from trainer.checkpoint.source import OURS
from trainer.checkpoint.stored import Checkpoint
from trainer.config.model import ModelConfig
from trainer.data.opening import PADDING_TOKENS
from trainer.run.kept_tokenizer import CASING, VOCABULARY, find_training_data

_DIALECT = "google"


def find_tokenizer(
    checkpoint: Checkpoint,
    shape: ModelConfig,
    vocabulary: str | None,
    train_data: str | None,
    lower_case: bool | None,
) -> tuple[Vocabulary, bool] | None:
    """The vocabulary of a checkpoint and whether its text is lower-cased, or None where it is not at hand.

    The vocabulary is the given one (a file or a name), else that of the given training data, else the one
    that its run keeps, or that lies beside another program's weights; else that of the training data where a
    run of an older version says that it was. DataError where the vocabulary's size is not the model's,
    UsageError where it is another than the run's.
    """
    words = _of_files(checkpoint, vocabulary) if train_data is None else None
    casing: bool | None = None
    if words is None:
        words, casing = _of_data(checkpoint, vocabulary, train_data)
    if words is None and vocabulary is not None:
        words = load_vocabulary(find_vocabulary(vocabulary), _DIALECT)
    if words is None:
        return None
    if not words.size <= shape.vocab_size <= words.size + PADDING_TOKENS:
        raise DataError(f"{words.name}: has {words.size} tokens, the model has vocab_size {shape.vocab_size}")
    for known in (casing, _casing(checkpoint)):
        lower_case = known if lower_case is None else lower_case
    if lower_case is None:  # nobody tells: as the vocabulary itself is
        lower_case = not casing_warnings(words, True)
    return words, lower_case


def _of_files(checkpoint: Checkpoint, given: str | None) -> Vocabulary | None:
    """The vocabulary in the run, or beside another program's weights."""
    path = beside(checkpoint, VOCABULARY)
    if path is None:
        return None
    words = load_vocabulary(path, _DIALECT)
    if given is not None:
        own, words = words, load_vocabulary(find_vocabulary(given), _DIALECT)
        if checkpoint.kind == OURS and words.words != own.words:
            raise UsageError(f"{words.name}: is another vocabulary than the run was trained with, {path}")
    return words


def _of_data(
    checkpoint: Checkpoint, given: str | None, train_data: str | None
) -> tuple[Vocabulary | None, bool | None]:
    """The vocabulary and casing of the training data: where that is now, or was, or within a moved run."""
    recorded = _settings(checkpoint).get("train_data")
    dataset = find_training_data(train_data or recorded, given=train_data is not None)
    if dataset is None and recorded:
        features = storage.join(_run_of(checkpoint.path), f"features/{storage.base_name(recorded)}")
        dataset = find_training_data(features, given=False)
    if dataset is None:
        return None, None
    words = known_vocabulary(given, dataset)
    return words, dataset.manifest.plan.settings.tokenizer.get("lower_case") if dataset.manifest else None


def _casing(checkpoint: Checkpoint) -> bool | None:
    """The casing in the checkpoint's configuration, or in the file beside another program's checkpoint."""
    config = beside(checkpoint, CASING)
    if config is None:
        known: bool | None = _settings(checkpoint).get("lower_case")
        return known
    return read_object(config).get("do_lower_case") is not False  # True unless it says otherwise


def _settings(checkpoint: Checkpoint) -> dict[str, Any]:
    return read_state(Path(checkpoint.path)).config if checkpoint.kind == OURS else {}


def beside(checkpoint: Checkpoint, name: str) -> str | None:
    """The path of a file of a run, or beside another program's weights, or None where there is none."""
    folder = _run_of(checkpoint.path) if checkpoint.kind == OURS else checkpoint.path
    if not storage.is_directory(folder):
        folder = storage.parent(folder)
    path = storage.join(folder, name)
    return path if storage.exists(path) else None


def _run_of(checkpoint: str) -> str:
    """The directory of the run that the checkpoint belongs to, or its own where it is of no run."""
    path = Path(checkpoint)
    return str(path.parent.parent if path.parent.name == "checkpoints" else path)
