"""The settings of a dataset as its manifest stores them: text, tokeniser, objective and container."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from bertdata.config.declared import OBJECTIVE_RECORD
from bertdata.config.settings import ExampleSettings, require
from bertdata.records import Vocabulary

SettingsRecord = dict[str, Any]
"""Settings by name, as JSON values."""

WORDPIECE = "wordpiece"
"""Value of ``tokenizer["kind"]`` for a WordPiece vocabulary file read by a dialect."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetSettings:
    """Everything that decides a dataset's bytes except the contents of its inputs.

    The settings are split into four records, which the manifest stores under these names:

    tokenizer: decides the ids of a sentence. Holds the kind of tokeniser, the vocabulary's md5 and its number
    of tokens. A WordPiece vocabulary adds dialect and lower_case. A tokenizer.json file adds its name, the
    tokens' roles and between, the text that joins two sentences.

    objective: decides which examples are made of the ids. Holds name, max_seq_length, random_seed and the
    objective's other settings. max_seq_length and random_seed are here because every objective needs them and
    neither the tokeniser nor the container does.

    container: decides the file format and how examples lie in it: format, order of a record's values
    (remask), length bins, packed rows, padding_id if it is not 0, shuffle and num_shards of a global shuffle,
    and dealt_files, the number of files that the examples of all inputs are dealt to.

    text: the sentence splitter. Holds punkt, the variant and tables of the splitter that the input parts'
    manifest names, or None. It is empty until the dataset is finished.

    A setting without effect is left out of its record. An example is bin_size if the dataset has no length
    bins.
    """

    tokenizer: SettingsRecord
    objective: SettingsRecord
    container: SettingsRecord
    text: SettingsRecord = field(default_factory=dict)

    @property
    def objective_name(self) -> str | None:
        """Name of the objective, which says how the examples were made.

        It is None if the manifest does not record it.
        """
        return self.objective.get("name")

    @property
    def vocabulary(self) -> dict[str, Any]:
        """The vocabulary's md5 and number of tokens, under the keys md5 and tokens."""
        found: dict[str, Any] = self.tokenizer["vocabulary"]
        return found

    @property
    def num_shards(self) -> int | None:
        """Number of shards of a global shuffle.

        It is None without a shuffle, where each input makes one shard.
        """
        return self.container.get("num_shards")

    @property
    def is_of_all_inputs(self) -> bool:
        """True if each shard holds examples of all inputs, not of a single input."""
        return self.num_shards is not None or "dealt_files" in self.container

    @property
    def by_name(self) -> SettingsRecord:
        """The settings that a user can choose, by flag name and without the vocabulary."""
        found: SettingsRecord = {} if self.objective_name is None else {"objective": self.objective_name}
        for record in (self.tokenizer, self.objective, self.container):
            found |= {name: value for name, value in record.items() if name not in _RESERVED}
        return found

    def as_json(self) -> dict[str, SettingsRecord]:
        """Return the four records by name, in the order in which the pipeline uses them."""
        return {
            "text": self.text,
            "tokenizer": self.tokenizer,
            "objective": self.objective,
            "container": self.container,
        }


_RESERVED = (
    "kind",
    "name",
    "vocabulary",
    "recipe",
    "inputs",
    "shuffle",
    "num_shards",
    "dataset_manifest",
)
"""Names that a setting of an objective must not have.

Either a record already uses the name for something else, or the name would occur twice in the flat mapping as
which the plans of two datasets are compared.
"""


def make_dataset_settings(
    settings: ExampleSettings,
    vocabulary: Vocabulary,
    num_shards: int | None = None,
    tokenizer: SettingsRecord | None = None,
) -> DatasetSettings:
    """Return the dataset settings for these example settings and this vocabulary.

    num_shards: number of shards of a global shuffle, or None.
    tokenizer: the tokeniser's record. None builds the record of a WordPiece vocabulary from ``settings``.

    Raises SettingsError if an objective's setting has a reserved name.
    """
    # An objective may declare a field of ExampleSettings again. Its record is then taken from
    # ExampleSettings.
    declared = _find_records(type(settings)) | _find_records(ExampleSettings)
    values = json.loads(json.dumps(settings.as_json()))  # tuples become lists, as JSON has them
    name = values.pop("objective")
    found: dict[str, SettingsRecord] = {
        "tokenizer": {"kind": WORDPIECE},
        OBJECTIVE_RECORD: {"name": name},
        "container": {},
    }
    for key, value in values.items():
        require(
            key not in _RESERVED, f"objective {name}: a setting cannot be called {key}; give it another name"
        )
        found[declared.get(key, OBJECTIVE_RECORD)][key] = value
    found["tokenizer"]["vocabulary"] = make_vocabulary_record(vocabulary)
    if tokenizer is not None:
        found["tokenizer"] = tokenizer
    if vocabulary.padding_id:
        found["container"]["padding_id"] = vocabulary.padding_id
    found["container"] |= make_shuffle_settings(num_shards)
    if settings.files_of_run:
        found["container"]["dealt_files"] = len(settings.files_of_run)
    return DatasetSettings(**found)


def _find_records(kind: type[ExampleSettings]) -> dict[str, str]:
    """Return the record that each setting of this settings class belongs to, by setting name."""
    return {item.name: item.metadata.get("record", OBJECTIVE_RECORD) for item in fields(kind)}


def make_vocabulary_record(vocabulary: Vocabulary) -> SettingsRecord:
    """Return the vocabulary's md5 and size as the tokeniser's record stores them."""
    return {"md5": vocabulary.md5, "tokens": vocabulary.tokens}


def drop_file_settings(container: Mapping[str, Any]) -> SettingsRecord:
    """Return container settings without padding_id and dealt_files.

    These two describe the present files. They do not carry over when the same examples are written to another
    container.
    """
    return {name: value for name, value in container.items() if name not in ("padding_id", "dealt_files")}


def make_shuffle_settings(num_shards: int | None) -> SettingsRecord:
    """Return the container settings of a global shuffle into num_shards shards, or no settings for None."""
    return {} if num_shards is None else {"shuffle": "global", "num_shards": num_shards}
