"""The tokeniser of a checkpoint: its vocabulary and casing, from its training data or from beside it."""

from pathlib import Path

from bertdata.config.value_check import read_object
from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.vocabulary import known_vocabulary
from bertdata.errors import DataError, DatasetError, MissingInputError
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.records import Vocabulary
from bertdata.tokens.load import load_vocabulary
from trainer.config.model import ModelConfig
from trainer.data.opening import PADDING_TOKENS, split_paths
from trainer.model.checkpoints.checkpoint import Checkpoint
from trainer.run.checkpoint import read_state
from trainer.run.checkpoint_source import OURS

VOCABULARY = "vocab.txt"

_DIALECT = "google"


def find_tokenizer(
    checkpoint: Checkpoint,
    shape: ModelConfig,
    vocabulary: str | None,
    train_data: str | None,
    lower_case: bool | None,
) -> tuple[Vocabulary, bool] | None:
    """The vocabulary of a checkpoint and whether its text is lower-cased; None where it is not at hand.

    The vocabulary is the given one (a file or a name), else that of the training data, else the file
    beside another program's weights. train_data: where that is now; None: where a run says that it was, or
    of features within the run, which may have been moved with it. DataError where the vocabulary's size is
    not the model's.
    """
    settings = read_state(Path(checkpoint.path)).config if checkpoint.kind == OURS else {}
    dataset = find_training_data(train_data or settings.get("train_data"), given=train_data is not None)
    if dataset is None and settings.get("train_data"):
        dataset = find_training_data(_moved_features(checkpoint, settings["train_data"]), given=False)
    if dataset is not None:
        found = known_vocabulary(vocabulary, dataset)
        plan = dataset.manifest.plan if dataset.manifest else None
        lower_case = plan.settings["lower_case"] if plan and lower_case is None else lower_case
    else:
        path = find_vocabulary(vocabulary) if vocabulary else beside(checkpoint, VOCABULARY)
        found = load_vocabulary(path, _DIALECT) if path else None
        config = beside(checkpoint, "tokenizer_config.json")
        if lower_case is None and config is not None:
            lower_case = read_object(config).get("do_lower_case") is not False
        elif lower_case is None:
            lower_case = settings.get("lower_case")
    if found is None:
        return None
    if not found.size <= shape.vocab_size <= found.size + PADDING_TOKENS:
        raise DataError(f"{found.name}: has {found.size} tokens, the model has vocab_size {shape.vocab_size}")
    return found, lower_case is not False


def _moved_features(checkpoint: Checkpoint, train_data: str) -> str:
    """The place of a run's features within the run."""
    return str(Path(checkpoint.path).parent.parent / "features" / storage.base_name(train_data))


def beside(checkpoint: Checkpoint, name: str) -> str | None:
    """The path of a file beside another program's weights; None where there is none."""
    folder = checkpoint.path
    if not storage.is_directory(folder):
        folder = storage.parent(folder)
    path = storage.join(folder, name)
    return path if storage.exists(path) else None


def find_training_data(paths: str | None, *, given: bool) -> FoundDataset | None:
    """The first of the datasets at the paths; None where it is gone, unless it was given just now."""
    if paths is None:
        return None
    try:
        return next(iter(find_datasets(split_paths(paths)[0])), None)
    except (MissingInputError, DatasetError):
        if given:
            raise
        return None
