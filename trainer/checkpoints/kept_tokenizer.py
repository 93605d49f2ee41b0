"""The tokeniser that a run keeps beside its checkpoints: it works from any directory, without its data.

::

    output_dir/vocab.txt                a token a line, by id
    output_dir/tokenizer_config.json    {"do_lower_case": true}

Of a tokenizer.json that file, and in tokenizer_config.json the tokens with a role.
"""

from dataclasses import replace

from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.mixture.weights import split_paths
from bertdata.dataset.vocabulary import known_tokenizer
from bertdata.errors import DatasetError, MissingInputError
from bertdata.tokens.files import TokenizerFile, VocabularyFile
from bertdata.tokens.fit import casing_warnings
from bertdata.tokens.kept_files import keep_files
from bertdata.tokens.load import vocabulary_of
from trainer.config.settings import Config
from trainer.data.opening import training_paths


def keep_tokenizer(config: Config) -> None:
    """Write the tokeniser of the training data into output_dir, as far as it is at hand."""
    if (file := tokenizer_of_data(config)) is not None:
        keep_files(file, str(config.run.output_dir))


def tokenizer_of_data(config: Config) -> TokenizerFile | None:
    """The tokeniser of the training data. Where no manifest tells the casing, it is the vocabulary's own."""
    dataset = find_training_data(training_paths(config), given=False)
    if dataset is None or dataset.manifest:
        return None if dataset is None else known_tokenizer(None, dataset)
    file = known_tokenizer(config.masking.vocab, dataset)
    if isinstance(file, VocabularyFile):
        file = replace(file, lower_case=not casing_warnings(vocabulary_of(file), True))
    return file


def find_training_data(paths: str | None, *, given: bool) -> FoundDataset | None:
    """The first of the datasets at the paths, or None where it is gone and was not given just now."""
    if paths is None:
        return None
    try:
        return next(iter(find_datasets(split_paths(paths)[0])), None)
    except (MissingInputError, DatasetError):
        if given:
            raise
        return None
