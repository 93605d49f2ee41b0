"""Warnings about evaluation data whose casing or vocabulary differs from what the model was trained on."""

from contextlib import suppress

from bertdata.dataset.mixture.opening import open_weighted
from bertdata.dataset.reader import OpenedDataset
from bertdata.dataset.shared_shards import format_shared_warning, make_shared_warnings
from bertdata.dataset.vocabulary import load_dataset_tokenizer
from bertdata.errors import BertDataError, DataError
from bertdata.tokens.files import TokenizerFile, VocabularyFile
from bertdata.tokens.load import vocabulary_of
from trainer.checkpoints.kept_tokenizer import find_training_data
from trainer.checkpoints.reading import read_state
from trainer.checkpoints.source import find_trainer_checkpoint, open_checkpoint
from trainer.checkpoints.tokenizer import find_tokenizer, is_same_tokenizer
from trainer.config.settings import Config
from trainer.data.opening import find_data_warnings, find_training_paths, find_verified
from trainer.data.trained_length import find_length_warnings

_CASING = {True: "is lower-cased", False: "keeps its case"}
_REMEDY = {True: "without --no-lower-case", False: "with --no-lower-case"}


def find_model_warnings(config: Config, path: str, data: OpenedDataset) -> list[str]:
    """Return warnings about evaluation data that do not suit the checkpoint, or that have faults.

    path: path of the checkpoint.
    data: the opened evaluation data.
    """
    about_data, tokenizer = find_data_warnings(config, config.data.eval_data), None
    about_data += _find_trained_on_warnings(path, data)
    checkpoint = open_checkpoint(path, model_config=config.model.model_config, with_moments=False)
    about_data += find_length_warnings(data.name, data.layout.max_seq_length, path, checkpoint.longest)
    if checkpoint.config is not None:
        # a vocabulary file in the checkpoint's directory may belong to another model
        with suppress(DataError):
            tokenizer = find_tokenizer(checkpoint, checkpoint.config, None, None, None)
    return [*checkpoint.warnings, *about_data, *_compare_tokenizers(config, tokenizer, path)]


def _find_trained_on_warnings(path: str, data: OpenedDataset) -> list[str]:
    """Return a warning if the checkpoint was trained on the evaluation data.

    This is found by the digest of the training data, which the checkpoint contains. If the digests differ and
    the training data still exist, their files are compared one by one.
    """
    if (own := find_trainer_checkpoint(path)) is None:
        return []
    state = read_state(own)
    trained = state.config.get("train_data")
    if not trained:
        return []
    if state.data == data.digest:
        return [format_shared_warning(data.name, trained, "it is the")]
    with suppress(BertDataError):  # the training data may have been moved or deleted
        return make_shared_warnings(
            open_weighted(trained, unverified=bool(state.config.get("unverified")), split="training"), data
        )
    return []


def find_training_warnings(config: Config) -> list[str]:
    """Return warnings about evaluation data that do not suit the configured training data."""
    trained = find_training_data(find_training_paths(config), given=False)
    if trained is None or trained.manifest is None or (file := load_dataset_tokenizer(None, trained)) is None:
        return []
    return _compare_tokenizers(config, file, trained.path)


def _compare_tokenizers(config: Config, tokenizer: TokenizerFile | None, source: str) -> list[str]:
    """Return a warning for each evaluation dataset whose casing or tokeniser differs from the model's.

    tokenizer: the model's tokeniser, or None if it is not known.
    source: dataset or file in which the model's tokeniser was found.
    """
    if tokenizer is None:
        return []
    found = []
    for dataset in find_verified(config, config.data.eval_data):
        if dataset.manifest is None:
            continue
        casing = dataset.manifest.plan.settings.tokenizer.get("lower_case")
        if isinstance(tokenizer, VocabularyFile) and casing not in (None, lower_case := tokenizer.lower_case):
            found.append(
                f"{dataset.path}: its text {_CASING[casing]}, that of {source} {_CASING[lower_case]}: its "
                f"words are not written as the model knows them; make the shards {_REMEDY[lower_case]}"
            )
        own = load_dataset_tokenizer(None, dataset)
        if own is not None and not is_same_tokenizer(own, tokenizer):
            found.append(
                f"{dataset.path}: was made with another {_describe_tokenizers(own, tokenizer, source)}: "
                "its ids mean other words to the model"
            )
    return found


def _describe_tokenizers(own: TokenizerFile, tokenizer: TokenizerFile, source: str) -> str:
    """Return the end of a warning about two tokenisers that differ.

    If both are vocabularies, it only says so. Otherwise it shows the md5s of both files.
    own: tokeniser of the evaluation data.
    tokenizer: tokeniser of the model.
    source: dataset or file in which the model's tokeniser was found.
    """
    if isinstance(own, VocabularyFile) and isinstance(tokenizer, VocabularyFile):
        return f"vocabulary than {source}"
    ours, theirs = vocabulary_of(own).md5, vocabulary_of(tokenizer).md5
    return f"tokeniser (md5 {ours}) than {source} (md5 {theirs})"
