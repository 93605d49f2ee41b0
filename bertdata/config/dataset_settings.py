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
"""Value of ``tokenizer["kind"]`` in a manifest for a WordPiece vocabulary file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetSettings:
    """Everything that decides a dataset's bytes, except the contents of its inputs.

    The settings are divided into four records (JSON objects), which the manifest stores under these names:

    tokenizer: settings that decide the ids of a sentence. It contains the kind of tokeniser, and the md5 and
        number of tokens of the vocabulary. For a WordPiece vocabulary it also contains dialect and
        lower_case. For a tokenizer.json it also contains the file's name, the roles of special tokens, and
        ``between``, which is the text that joins two sentences.

    objective: settings that decide which examples are made from the ids. It contains the objective's name,
        max_seq_length, random_seed and the objective's other settings. max_seq_length and random_seed are
        part of this record because every objective needs them, and neither the tokeniser nor the file format
        does.

    container: settings that decide the file format and the order of the examples in it. It contains the
        format, the order of a record's values (remask), length bins, packed rows, padding_id if it is not 0,
        and for a global shuffle shuffle and num_shards. It also contains dealt_files, which is the number of
        files that the examples of all inputs are written to in turn.

    text: the sentence splitter. It contains punkt, the variant and tables of the splitter that the manifest
        of the input parts names, or None. The record is empty until the dataset is finished.

    A setting that has no effect is left out of its record. For example, bin_size is left out if the dataset
    has no length bins.
    """

    tokenizer: SettingsRecord
    objective: SettingsRecord
    container: SettingsRecord
    text: SettingsRecord = field(default_factory=dict)

    @property
    def objective_name(self) -> str | None:
        """Name of the objective, which is the type of the examples.

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

        It is None if there is no global shuffle. There is then one shard for each input.
        """
        return self.container.get("num_shards")

    @property
    def is_of_all_inputs(self) -> bool:
        """True if each shard holds examples of all inputs, not of a single input."""
        return self.num_shards is not None or "dealt_files" in self.container

    @property
    def by_name(self) -> SettingsRecord:
        """The settings that a user can choose, under the names of their flags.

        The vocabulary is not among them.
        """
        found: SettingsRecord = {} if self.objective_name is None else {"objective": self.objective_name}
        for record in (self.tokenizer, self.objective, self.container):
            found |= {name: value for name, value in record.items() if name not in _RESERVED}
        return found

    def as_json(self) -> dict[str, SettingsRecord]:
        """Return the four records by name.

        Their order is the order in which the pipeline uses them.
        """
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

Some of them already have another meaning in a record. The others would occur twice when the four records are
merged into one dictionary, which is done to compare two datasets' settings.
"""


def make_dataset_settings(
    settings: ExampleSettings,
    vocabulary: Vocabulary,
    num_shards: int | None = None,
    tokenizer: SettingsRecord | None = None,
) -> DatasetSettings:
    """Return the dataset settings that correspond to these example settings and this vocabulary.

    num_shards: number of shards of a global shuffle. None if there is no global shuffle.
    tokenizer: the record ``tokenizer``. None makes the record of a WordPiece vocabulary from ``settings``.

    Raises SettingsError if a setting of an objective has a reserved name.
    """
    # An objective may declare a field of ExampleSettings again. The record that the field belongs to is then
    # the one that ExampleSettings declares.
    declared = _find_records(type(settings)) | _find_records(ExampleSettings)
    # converts tuples to lists, as they are read from JSON
    values = json.loads(json.dumps(settings.as_json()))
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
    """Return the name of the manifest's record (JSON object) that stores each setting, by setting name."""
    return {item.name: item.metadata.get("record", OBJECTIVE_RECORD) for item in fields(kind)}


def make_vocabulary_record(vocabulary: Vocabulary) -> SettingsRecord:
    """Return the md5 and the number of tokens of a vocabulary, as the record ``tokenizer`` stores them."""
    return {"md5": vocabulary.md5, "tokens": vocabulary.tokens}


def drop_file_settings(container: Mapping[str, Any]) -> SettingsRecord:
    """Return the settings of a file format without padding_id and dealt_files.

    These two settings describe the files in which the examples are stored now. They do not apply if the
    examples are written to new files.
    """
    return {name: value for name, value in container.items() if name not in ("padding_id", "dealt_files")}


def make_shuffle_settings(num_shards: int | None) -> SettingsRecord:
    """Return the settings that the record ``container`` stores for a global shuffle.

    num_shards: number of shards. None if there is no global shuffle. The result is then empty.
    """
    return {} if num_shards is None else {"shuffle": "global", "num_shards": num_shards}
