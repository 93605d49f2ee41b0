"""Conversion of checkpoints to Hugging Face form and back."""

from pathlib import Path

from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.vocabulary import known_vocabulary
from bertdata.errors import DataError, DatasetError, MissingInputError
from bertdata.io.assets import find_vocabulary
from bertdata.records import Vocabulary
from bertdata.tokens.load import load_vocabulary
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.opening import PADDING_TOKENS, split_paths
from trainer.model.bert import new_model
from trainer.model.huggingface import export_model, import_weights, read_config
from trainer.model.tokenizer_files import export_tokenizer
from trainer.run.checkpoint import STATE, State, choose_checkpoint, new_state, read_state, write_checkpoint
from trainer.run.runtime import read_weights_into

_REMEDY = "give --vocab, and --train-data where the data has moved"


def convert(
    source: str,
    target: str,
    *,
    vocabulary: str | None = None,
    train_data: str | None = None,
    lower_case: bool | None = None,
) -> str:
    """Convert a checkpoint, or a run's newest, to Hugging Face form, or the reverse; returns a message.

    The form holds the tokeniser too. Its vocabulary is the given one (a file or a name), else the copy
    beside the run's training data, else a known one with its md5. Its casing is the given one, else that of
    the training data. train_data: where that is now; None: where it was.
    """
    if Path(target).exists() and any(Path(target).iterdir()):
        raise DatasetError(f"{target}: is in use; name a directory that does not exist yet")
    if (Path(source) / "checkpoints").is_dir():
        source = str(choose_checkpoint(source))
    if (Path(source) / STATE).is_file():
        state = read_state(Path(source))
        shape = ModelConfig.from_dict(state.model, source)
        found = find_tokenizer(state, shape, vocabulary, train_data, lower_case)
        model = new_model(shape)
        read_weights_into(model, source)
        export_model(model, target)
        lacks = f", without a tokeniser: the vocabulary is not at hand; {_REMEDY}"
        if found is not None:
            words, lower = found
            export_tokenizer(words, target, lower_case=lower, longest=shape.max_position_embeddings)
            lacks = ""
        return f"{target}: update {state.number} in Hugging Face form{lacks}"
    if not Path(source).exists():
        raise MissingInputError(f"{source}: no such file or directory")
    if not (Path(source) / "config.json").is_file():
        raise MissingInputError(f"{source}: holds neither {STATE} (a checkpoint) nor config.json")
    model = new_model(read_config(source))
    missing = import_weights(model, source)
    write_checkpoint(Path(target), new_state(Config.of(), model.config), model.state_dict(), {})
    lacks = f", without {len(missing)} tensors of the heads, which keep random values" if missing else ""
    return f"{target}: weights to start from (--start-from-ckpt){lacks}"


def find_tokenizer(
    state: State, shape: ModelConfig, vocabulary: str | None, train_data: str | None, lower_case: bool | None
) -> tuple[Vocabulary, bool] | None:
    """The vocabulary of a checkpoint and whether its text is lower-cased; None where it is not at hand.

    DataError where its size is not the model's.
    """
    dataset = find_training_data(train_data or state.config.get("train_data"), given=train_data is not None)
    if dataset is not None:
        found = known_vocabulary(vocabulary, dataset)
        plan = dataset.manifest.plan if dataset.manifest else None
        lower_case = plan.settings["lower_case"] if plan and lower_case is None else lower_case
    else:
        found = load_vocabulary(find_vocabulary(vocabulary), "google") if vocabulary else None
    if found is None:
        return None
    if not found.size <= shape.vocab_size <= found.size + PADDING_TOKENS:
        raise DataError(f"{found.name}: has {found.size} tokens, the model has vocab_size {shape.vocab_size}")
    return found, lower_case is not False


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
