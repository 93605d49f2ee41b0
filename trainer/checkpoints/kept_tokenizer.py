"""The copy of the tokeniser that a run stores next to its checkpoints. With it, a trained model can be used
when the training data are gone.

::

    output_dir/vocab.txt                a token per line, in the order of ids
    output_dir/tokenizer_config.json    {"do_lower_case": true}

For a tokenizer.json, that file is copied, and tokenizer_config.json lists the special tokens.
"""

from dataclasses import replace

from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.mixture.weights import split_paths
from bertdata.dataset.vocabulary import load_dataset_tokenizer
from bertdata.errors import DatasetError, MissingInputError
from bertdata.tokens.files import TokenizerFile, VocabularyFile
from bertdata.tokens.fit import warn_of_casing
from bertdata.tokens.kept_files import write_tokenizer_files
from bertdata.tokens.load import vocabulary_of
from trainer.config.settings import Config
from trainer.data.opening import find_training_paths


def keep_tokenizer(config: Config) -> None:
    """Copy the training data's tokeniser, if it is known, into the run's output_dir."""
    if (file := find_data_tokenizer(config)) is not None:
        write_tokenizer_files(file, str(config.run.output_dir))


def find_data_tokenizer(config: Config) -> TokenizerFile | None:
    """Return the training data's tokeniser, or None if unknown.

    Without a manifest, the casing is guessed from the vocabulary.
    """
    dataset = find_training_data(find_training_paths(config), given=False)
    if dataset is None or dataset.manifest:
        return None if dataset is None else load_dataset_tokenizer(None, dataset)
    file = load_dataset_tokenizer(config.masking.vocab, dataset)
    if isinstance(file, VocabularyFile):
        file = replace(file, lower_case=not warn_of_casing(vocabulary_of(file), True))
    return file


def find_training_data(paths: str | None, *, given: bool) -> FoundDataset | None:
    """Return the first dataset at these paths, or None if it no longer exists.

    given: whether the user named the paths in this command. If so, a missing dataset is an error.
    """
    if paths is None:
        return None
    try:
        return next(iter(find_datasets(split_paths(paths)[0])), None)
    except (MissingInputError, DatasetError):
        if given:
            raise
        return None
