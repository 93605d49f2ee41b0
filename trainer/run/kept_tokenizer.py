"""The tokeniser that a run keeps beside its checkpoints: it works from any directory, without its data.

::

    output_dir/vocab.txt                a token a line, by id
    output_dir/tokenizer_config.json    {"do_lower_case": true}
    output_dir/tokenizer.json           in place of both, that of the dataset
"""

import json

from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.vocabulary import known_vocabulary
from bertdata.errors import DatasetError, MissingInputError
from bertdata.io import storage
from bertdata.records import Vocabulary
from bertdata.tokens.files import TOKENIZER_NAME
from bertdata.tokens.fit import casing_warnings
from trainer.config.data import split_paths
from trainer.config.settings import Config
from trainer.data.opening import training_paths

VOCABULARY, CASING = "vocab.txt", "tokenizer_config.json"


def keep_tokenizer(config: Config) -> None:
    """Write vocabulary and casing of the training data into output_dir, as far as they are at hand."""
    dataset = find_training_data(training_paths(config), given=False)
    if dataset is None:
        return
    plan = dataset.manifest.plan if dataset.manifest else None
    vocabulary = known_vocabulary(None if plan else config.masking.vocab, dataset)
    if vocabulary is None or (plan and "file" in plan.settings.tokenizer):
        return
    folder = str(config.run.output_dir)
    if plan and "file" in plan.settings.tokenizer:
        _write_bytes(storage.join(folder, TOKENIZER_NAME), storage.read_bytes(vocabulary.name))
        return
    lower_case = plan.settings.tokenizer["lower_case"] if plan else not casing_warnings(vocabulary, True)
    write_vocabulary(vocabulary, folder)
    _write(storage.join(folder, CASING), json.dumps({"do_lower_case": lower_case}) + "\n")


def write_vocabulary(words: Vocabulary, folder: str) -> None:
    """Write vocab.txt, a token a line."""
    _write(storage.join(folder, VOCABULARY), "".join(f"{word}\n" for word in words.words))


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


def _write(path: str, text: str) -> None:
    _write_bytes(path, text.encode())


def _write_bytes(path: str, data: bytes) -> None:
    """Write a file, whole, unless it says the same already: other runs may read it."""
    if not storage.exists(path) or storage.read_bytes(path) != data:
        with storage.open_output(path) as file:
            file.write(data)
