"""Warnings about evaluation data of another casing, or another vocabulary, than the model was trained on."""

from contextlib import suppress

from bertdata.dataset.vocabulary import known_vocabulary
from bertdata.errors import DataError
from bertdata.records import Vocabulary
from trainer.checkpoint.source import open_checkpoint
from trainer.config.settings import Config
from trainer.data.opening import data_warnings, find_verified, training_paths
from trainer.run.kept_tokenizer import find_training_data
from trainer.run.tokenizer import find_tokenizer

Tokenizer = tuple[Vocabulary, bool | None]
"""A vocabulary, and whether text is lower-cased; None where the tokeniser's file says that itself."""

_CASING = {True: "is lower-cased", False: "keeps its case"}
_REMEDY = {True: "without --no-lower-case", False: "with --no-lower-case"}


def warnings_of_model(config: Config, path: str) -> list[str]:
    """Warnings about the evaluation data beside the checkpoint, and about the data themselves."""
    about_data, tokenizer = data_warnings(config, config.data.eval_data), None
    checkpoint = open_checkpoint(path, with_moments=False)
    if checkpoint.config is not None:
        with suppress(DataError):  # the vocabulary beside the weights is another model's
            tokenizer = find_tokenizer(checkpoint, checkpoint.config, None, None, None)
    return about_data + _differences(config, tokenizer, path)


def warnings_of_training(config: Config) -> list[str]:
    """Warnings about the evaluation data beside the training data."""
    trained = find_training_data(training_paths(config), given=False)
    if trained is None or trained.manifest is None or (words := known_vocabulary(None, trained)) is None:
        return []
    tokenizer = words, trained.manifest.plan.settings.tokenizer.get("lower_case")
    return _differences(config, tokenizer, trained.path)


def _differences(config: Config, tokenizer: Tokenizer | None, source: str) -> list[str]:
    """A warning for each evaluation dataset of another casing or vocabulary.

    source: the tokeniser's dataset or file.
    """
    if tokenizer is None:
        return []
    words, lower_case = tokenizer
    found = []
    for dataset in find_verified(config, config.data.eval_data):
        if dataset.manifest is None:
            continue
        casing = dataset.manifest.plan.settings.tokenizer.get("lower_case")
        if casing is not None and lower_case is not None and casing != lower_case:
            found.append(
                f"{dataset.path}: its text {_CASING[casing]}, that of {source} {_CASING[lower_case]}: its "
                f"words are not written as the model knows them; make the shards {_REMEDY[lower_case]}"
            )
        own = known_vocabulary(None, dataset)
        if own is not None and own.words != words.words:
            found.append(
                f"{dataset.path}: was made with another vocabulary than {source}: its ids mean other words "
                "to the model"
            )
    return found
