"""Finding the tokeniser of a checkpoint: in its run, in its data or next to its weights."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from bertdata.config.value_check import read_object
from bertdata.dataset.vocabulary import load_dataset_tokenizer
from bertdata.errors import DataError, UsageError
from bertdata.io import storage
from bertdata.tokens.files import (
    TOKENIZER_NAME,
    VOCABULARY_NAME,
    TokenizerFile,
    TokenizerJson,
    VocabularyFile,
)
from bertdata.tokens.fit import warn_of_casing
from bertdata.tokens.kept_files import CONFIGURATION_NAME
from bertdata.tokens.load import vocabulary_of
from bertdata.tokens.tokenizer_json import holds_tokenizer, read_model_casing, read_tokenizer_json
from trainer.checkpoints.any_checkpoint import OURS, Checkpoint
from trainer.checkpoints.kept_tokenizer import find_training_data
from trainer.checkpoints.reading import read_state
from trainer.config.model import ModelConfig
from trainer.data.named_tokenizer import change_casing, find_named_tokenizer
from trainer.data.opening import PADDING_TOKENS


def find_tokenizer(
    checkpoint: Checkpoint,
    shape: ModelConfig,
    vocabulary: str | None,
    train_data: str | None,
    lower_case: bool | None,
) -> TokenizerFile | None:
    """Return the checkpoint's tokeniser, or None if it cannot be found.

    The listed places are searched from top to bottom, and the first tokeniser is returned:
    1. ``vocabulary``, which is a name or a path (see ``find_named_tokenizer``)
    2. the dataset at ``train_data``
    3. the run's copy, or the directory of another program's weights
    4. the run's training data, for runs of earlier versions, which kept no copy

    shape: the model. DataError if the vocabulary has another size than the model expects.
    lower_case: whether a vocabulary's tokeniser lower-cases text. None: the files say so. UsageError for a
    value if the tokeniser is a tokenizer.json, which determines the casing itself.
    UsageError if the vocabulary differs from the run's.
    """
    file = _find_in_files(checkpoint, vocabulary) if train_data is None else None
    casing: bool | None = None
    if file is None:
        file, casing = _find_in_data(checkpoint, vocabulary, train_data)
    if file is None and vocabulary is not None:
        file = find_named_tokenizer(vocabulary)
    if file is None:
        return None
    words = vocabulary_of(file)
    if not words.size <= shape.vocab_size <= words.size + PADDING_TOKENS:
        raise DataError(f"{words.name}: has {words.size} tokens, the model has vocab_size {shape.vocab_size}")
    if isinstance(file, TokenizerJson):
        return change_casing(file, lower_case)
    if vocabulary is not None and storage.is_directory(vocabulary):
        casing = read_model_casing(vocabulary)
    for known in (casing, find_casing(checkpoint)):
        lower_case = known if lower_case is None else lower_case
    # no file says whether the tokeniser lower-cases, so guess it from the vocabulary's words
    if lower_case is None:
        lower_case = not warn_of_casing(words, True)
    return replace(file, lower_case=lower_case)


def _find_in_files(checkpoint: Checkpoint, given: str | None) -> TokenizerFile | None:
    """Return the tokeniser that the user names, or without a name the copy in the run or next to the weights.

    None if there is neither. UsageError if both exist and differ.
    given: the user's name or path, or None.
    """
    if given is not None and checkpoint.kind != OURS:
        return find_named_tokenizer(given)
    own = find_stored_tokenizer(checkpoint)
    if own is None or given is None:
        return own
    file = find_named_tokenizer(given)
    if not is_same_tokenizer(file, own):
        raise UsageError(
            f"{file.path}: is another {_name_tokenizer(own)} than the run was trained with, {own.path}"
        )
    return file


def find_stored_tokenizer(checkpoint: Checkpoint) -> TokenizerFile | None:
    """Return the tokeniser in the run, or next to another program's weights. None if there is none.

    Another program's directory is read as transformers' AutoTokenizer reads it.
    """
    if checkpoint.kind == OURS:
        path = find_stored_file(checkpoint, VOCABULARY_NAME) or find_stored_file(checkpoint, TOKENIZER_NAME)
        return None if path is None else find_named_tokenizer(path)
    folder = _find_folder(checkpoint)
    return find_named_tokenizer(folder) if holds_tokenizer(folder) else None


def is_same_tokenizer(file: TokenizerFile, other: TokenizerFile) -> bool:
    """Return whether two vocabularies are equal, or two tokenizer.json files split text in the same way.

    Their templates of special tokens may differ, since an export may change the template.
    """
    ours, theirs = vocabulary_of(file), vocabulary_of(other)
    if isinstance(file, VocabularyFile) and isinstance(other, VocabularyFile):
        return ours.words == theirs.words
    if isinstance(file, VocabularyFile) or isinstance(other, VocabularyFile):
        return False
    return ours.md5 == theirs.md5 or _select_splitting_parts(file) == _select_splitting_parts(other)


def _select_splitting_parts(file: TokenizerJson) -> dict[str, Any]:
    """Return the parts of a tokenizer.json that determine how text is split."""
    parsed = read_tokenizer_json(file)[0]
    return {name: parsed[name] for name in ("added_tokens", "normalizer", "pre_tokenizer", "model")}


def _name_tokenizer(file: TokenizerFile) -> str:
    """Return what a message calls the tokeniser: "vocabulary" for a vocab.txt, else "tokeniser"."""
    return "vocabulary" if isinstance(file, VocabularyFile) else "tokeniser"


def _find_in_data(
    checkpoint: Checkpoint, given: str | None, train_data: str | None
) -> tuple[TokenizerFile | None, bool | None]:
    """Return the training data's tokeniser and its casing, each None if unknown.

    given: the vocabulary that the user names, or None.
    train_data: where the training data are now. None: where they were during training.
    """
    recorded = _read_settings(checkpoint).get("train_data")
    dataset = find_training_data(train_data or recorded, given=train_data is not None)
    if dataset is None and recorded:
        features = storage.join(
            _find_run_folder(checkpoint.path), f"features/{storage.get_base_name(recorded)}"
        )
        dataset = find_training_data(features, given=False)
    if dataset is None:
        return None, None
    file = load_dataset_tokenizer(given, dataset)
    return file, dataset.manifest.plan.settings.tokenizer.get("lower_case") if dataset.manifest else None


def find_casing(checkpoint: Checkpoint) -> bool | None:
    """Return whether the checkpoint's tokeniser lower-cases, or None if unknown.

    The answer is stored in the checkpoint's run, or next to another program's weights.
    """
    if checkpoint.kind != OURS:
        return read_model_casing(_find_folder(checkpoint))
    config = find_stored_file(checkpoint, CONFIGURATION_NAME)
    if config is None:
        return _read_settings(checkpoint).get("lower_case")
    # a missing key means True, as in transformers
    return read_object(config).get("do_lower_case") is not False


def _read_settings(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the configuration stored in a checkpoint of this trainer. Empty for other programs."""
    return read_state(Path(checkpoint.path)).config if checkpoint.kind == OURS else {}


def find_stored_file(checkpoint: Checkpoint, name: str) -> str | None:
    """Return the path of a file in the checkpoint's run, or next to another program's weights.

    Return None if there is no such file.
    """
    path = storage.join(_find_folder(checkpoint), name)
    return path if storage.exists(path) else None


def _find_folder(checkpoint: Checkpoint) -> str:
    """Return the directory of the run, or of another program's weights."""
    folder = _find_run_folder(checkpoint.path) if checkpoint.kind == OURS else checkpoint.path
    return folder if storage.is_directory(folder) else storage.get_parent(folder)


def _find_run_folder(checkpoint: str) -> str:
    """Return the directory of the checkpoint's run, or the checkpoint's directory if it belongs to no run."""
    path = Path(checkpoint)
    return str(path.parent.parent if path.parent.name == "checkpoints" else path)
