"""The settings that all objectives (types of pre-training examples) have.

Each objective adds settings in a derived class.
"""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar, get_type_hints

from bertdata.config.declared import setting
from bertdata.config.dialects import DIALECTS, Dialect, find_dialect
from bertdata.errors import SettingsError
from bertdata.io.foreign_text import MOST_DIGITS
from bertdata.records import ShardLayout

FORMATS = ("tfrecord", "hdf5", "parquet", "mds")
"""Names of the file formats that ``create`` writes. ``bertdata.shards.containers.CONTAINERS`` describes them.
"""
LONGEST_SEQUENCE = 65_535

SettingsKind = TypeVar("SettingsKind", bound="ExampleSettings")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleSettings:
    """Everything that decides a shard's bytes, except the text and the vocabulary.

    The manifest stores settings in several records (JSON objects), which ``bertdata.config.dataset_settings``
    describes. A setting is stored in the record ``objective`` unless its ``setting(record=...)`` names
    another record.
    """

    objective: str = setting("bert", "training objective of the examples; your own is package.module:NAME")
    dialect: str = setting(
        "mlperf",
        "program whose details of tokenizing and masking to follow: mlperf, google, nvidia or graphcore",
        tuple(DIALECTS),
        record="tokenizer",
    )
    max_seq_length: int = setting(512, "most token ids in an example, special tokens included")
    random_seed: int = setting(12345, "seed of all random draws; any integer")
    lower_case: bool = setting(True, "lower-case the text and strip accents", record="tokenizer")
    keep_accents: bool = setting(False, "keep the accents of lower-cased text", record="tokenizer")
    chinese_words: bool = setting(
        False, "find Chinese words with the segmenter jieba, for whole-word masking", record="tokenizer"
    )
    format: str = setting(
        "tfrecord",
        f"container of the shards: {', '.join(FORMATS[:-1])} or {FORMATS[-1]}",
        FORMATS,
        record="container",
    )
    bin_size: int = setting(
        0,
        "split each shard into files by length: examples of 1 to N ids, N + 1 to 2 N, ...; 0 (default): do "
        "not split",
        record="container",
    )

    def __post_init__(self) -> None:
        find_dialect(self.dialect)
        require(abs(self.random_seed) < 10**MOST_DIGITS, f"random_seed has more than {MOST_DIGITS} digits")
        require(
            5 <= self.max_seq_length <= LONGEST_SEQUENCE,
            f"max_seq_length is {self.max_seq_length}, expected 5 to {LONGEST_SEQUENCE}",
        )
        require(
            self.lower_case or not self.keep_accents,
            "keep_accents goes with lower_case: text that keeps its case keeps its accents",
        )
        require(self.format in FORMATS, f"format is {self.format!r}, expected one of {', '.join(FORMATS)}")
        require(
            0 <= self.bin_size < self.max_seq_length,
            f"bin_size is {self.bin_size}, expected 0 (no bins) to {self.max_seq_length - 1}, "
            "below max_seq_length",
        )

    @property
    def files_of_run(self) -> tuple[str, ...]:
        """Names of the files that the examples of all inputs are written to in turn, one example to each.

        It is empty if each shard contains the examples of a single input, which is the usual case.
        """
        return ()

    @property
    def rules(self) -> Dialect:
        """The rules by which text is read (the dialect), as in the program that ``create`` reproduces."""
        return find_dialect(self.dialect)

    @property
    def layout(self) -> ShardLayout:
        """The layout (lengths, columns and file format) of the records made with these settings."""
        return ShardLayout(objective=self.objective, max_seq_length=self.max_seq_length)

    def as_json(self) -> dict[str, Any]:
        """Return the settings by name.

        keep_accents, chinese_words and bin_size are left out if they have no effect, so that manifests have
        the same bytes as before these settings existed.
        """
        found = asdict(self)
        if not self.keep_accents:
            del found["keep_accents"]
        if not self.chinese_words:
            del found["chinese_words"]
        if not self.bin_size:
            del found["bin_size"]
        return found

    def with_changes(self: SettingsKind, **changes: Any) -> SettingsKind:
        """Return a checked copy of the settings with some fields changed.

        Raises SettingsError for an unknown name or an invalid value.
        """
        check_setting_names(type(self), changes)
        return replace(self, **changes)


def check_setting_names(kind: type[ExampleSettings], given: dict[str, Any]) -> None:
    """Raise SettingsError if the settings class has no setting of a given name.

    kind: the settings class.
    given: the given settings, by name.
    """
    known = {item.name: item.default for item in fields(kind)}
    unknown = sorted(set(given) - set(known))
    objective = given.get("objective", known["objective"])
    require(
        not unknown,
        f"unknown settings: {', '.join(unknown)}; the objective {objective} has none of that name",
    )


_KINDS = {int: "an integer", float: "a number", bool: "True or False", str: "a text"}


def convert_to_field_types(kind: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the given settings, with integers converted to floats for float fields of the settings class.

    kind: the settings class.
    given: the given settings, by name.

    Raises SettingsError for any other value that does not have the type of its field.
    """
    hints, values = get_type_hints(kind), dict(given)
    unlisted = {item.name for item in fields(kind) if not item.metadata.get("choices")}
    for name, value in given.items():
        wanted = hints[name]
        if name in unlisted and value is not None and wanted == str | None:
            wanted = str  # a setting with listed choices checks its value itself, and lists them
        if wanted is float and type(value) is int:
            values[name] = float(value)
        elif wanted in _KINDS and type(value) is not wanted:
            raise SettingsError(f"{name} is {value!r}, expected {_KINDS[wanted]}")
    return values


def require(holds: bool, message: str) -> None:
    """Raise SettingsError with this message unless ``holds`` is true."""
    if not holds:
        raise SettingsError(message)
