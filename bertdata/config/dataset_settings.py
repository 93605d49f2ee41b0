"""The settings of a dataset in four records: text, tokeniser, objective, container."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from bertdata.config.declared import OBJECTIVE_RECORD
from bertdata.config.settings import ExampleSettings, check
from bertdata.records import Vocabulary

SettingsRecord = dict[str, Any]
"""Settings by name, as JSON values."""

WORDPIECE = "wordpiece"
"""The kind of tokeniser that a vocabulary file and a dialect make."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetSettings:
    """Everything, besides the inputs themselves, that decides a dataset's bytes, as its manifest holds it.

    tokenizer: which ids a sentence has: kind, the vocabulary's md5 and number of tokens, and of a WordPiece
    vocabulary dialect and lower_case, of a tokenizer.json file (its name here), roles and between (the text
    between two sentences).

    objective: which examples are made of the ids: name, max_seq_length, random_seed and its own settings.
    Every objective has a length and a seed, but neither tokeniser nor container asks for them: the length is
    that of the text which an example takes, the seed that of the draws which make it.

    container: which file an example is in and how it lies there: format, order of a record's values (remask),
    bins, packed rows, padding_id (the id in empty places) where it is not 0, shuffle and num_shards of a
    global shuffle, dealt_files where the examples of all inputs are dealt to so many files.

    text: which sentences there are: punkt, the variant and tables of the splitter that the parts' manifest
    names, else None. Known when the dataset is finished; before, the record is empty.

    A setting that is not used (bin_size without bins) is in no record.
    """

    tokenizer: SettingsRecord
    objective: SettingsRecord
    container: SettingsRecord
    text: SettingsRecord = field(default_factory=dict)

    @property
    def objective_name(self) -> str | None:
        """The objective of the examples. None in a manifest that does not say."""
        return self.objective.get("name")

    @property
    def vocabulary(self) -> dict[str, Any]:
        """The vocabulary's md5 and number of tokens."""
        found: dict[str, Any] = self.tokenizer["vocabulary"]
        return found

    @property
    def num_shards(self) -> int | None:
        """Shards of documents mixed over the whole corpus. None: one shard for each input."""
        return self.container.get("num_shards")

    @property
    def is_of_all_inputs(self) -> bool:
        """True where each shard is made of all inputs together."""
        return self.num_shards is not None or "dealt_files" in self.container

    @property
    def by_name(self) -> SettingsRecord:
        """The settings that a person may choose, by the names of their flags, but for the vocabulary."""
        found: SettingsRecord = {} if self.objective_name is None else {"objective": self.objective_name}
        for record in (self.tokenizer, self.objective, self.container):
            found |= {name: value for name, value in record.items() if name not in _RESERVED}
        return found

    def as_json(self) -> dict[str, SettingsRecord]:
        """The records in the order of a dataset's making."""
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
"""Names that mean something else in a record, or where the plans of two datasets are compared."""


def records_of(
    settings: ExampleSettings,
    vocabulary: Vocabulary,
    num_shards: int | None = None,
    tokenizer: SettingsRecord | None = None,
) -> DatasetSettings:
    """The records of a dataset of these settings. num_shards: of a global shuffle.

    tokenizer: the tokeniser's record, where it is not that of a WordPiece vocabulary as the settings read it.

    SettingsError for a setting of a name that means something else.
    """
    declared = _declared(type(settings)) | _declared(ExampleSettings)  # a field with another default stays
    values = json.loads(json.dumps(settings.as_json()))  # lists for tuples, as they are read again
    name = values.pop("objective")
    found: dict[str, SettingsRecord] = {
        "tokenizer": {"kind": WORDPIECE},
        OBJECTIVE_RECORD: {"name": name},
        "container": {},
    }
    for key, value in values.items():
        check(
            key not in _RESERVED, f"objective {name}: a setting cannot be called {key}; give it another name"
        )
        found[declared.get(key, OBJECTIVE_RECORD)][key] = value
    found["tokenizer"]["vocabulary"] = vocabulary_record(vocabulary)
    if tokenizer is not None:
        found["tokenizer"] = tokenizer
    if vocabulary.padding_id:
        found["container"]["padding_id"] = vocabulary.padding_id
    found["container"] |= shuffled_into(num_shards)
    if settings.files_of_run:
        found["container"]["dealt_files"] = len(settings.files_of_run)
    return DatasetSettings(**found)


def _declared(kind: type[ExampleSettings]) -> dict[str, str]:
    """The record of each setting of that kind."""
    return {item.name: item.metadata.get("record", OBJECTIVE_RECORD) for item in fields(kind)}


def vocabulary_record(vocabulary: Vocabulary) -> SettingsRecord:
    """The vocabulary as a record of the tokeniser has it."""
    return {"md5": vocabulary.md5, "tokens": vocabulary.tokens}


def without_padding(container: Mapping[str, Any]) -> SettingsRecord:
    """A container's settings without those that other containers of its examples do not have.

    These are the id in empty places, and the number of files that the examples were dealt to.
    """
    return {name: value for name, value in container.items() if name not in ("padding_id", "dealt_files")}


def shuffled_into(num_shards: int | None) -> SettingsRecord:
    """The settings of the container that tell a global shuffle. None: there is none."""
    return {} if num_shards is None else {"shuffle": "global", "num_shards": num_shards}
