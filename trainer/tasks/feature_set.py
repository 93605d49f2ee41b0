"""Datasets of a task's features: a shard and a manifest, which are made once, and later
verified and used again.
"""

import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from bertdata.config.dataset_settings import SettingsRecord, make_dataset_settings
from bertdata.config.settings import ExampleSettings
from bertdata.dataset.manifest import DatasetPlan, InputEntry, Manifest, ShardEntry
from bertdata.dataset.shard_group import write_shard_group
from bertdata.dataset.writer import Dataset
from bertdata.io.file_check import HashingSink, compute_md5
from bertdata.records import ROLES, ExampleBatch, Vocabulary
from bertdata.shards.containers import make_writer
from bertdata.shards.protocol import ShardWriter
from bertdata.shards.write import BATCH, CountingWriter
from bertdata.tokens.files import TokenizerJson
from bertdata.tokens.tokenizer import Tokenizer
from bertdata.tokens.vocabulary import WordPieceVocabulary
from trainer.tasks.data_file import DataFile

Settings = TypeVar("Settings", bound=ExampleSettings)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SourceExamples:
    """The examples that were made from a source file.

    documents: number of documents in the source file, for the manifest.
    sentences: number of sentences in the source file, for the manifest.
    values: the same features as dictionaries, which can be written as text for checks by eye.
    count: number of the examples as text, for messages.
    """

    examples: Sequence[Any]
    batch_type: type[ExampleBatch]
    documents: int
    sentences: int
    warnings: Sequence[str]
    values: Iterable[Mapping[str, Any]]
    count: str


MakeExamples = Callable[[DataFile, Tokenizer, Settings], SourceExamples]


@dataclass(frozen=True, kw_only=True, slots=True)
class FeatureSet:
    """A finished dataset of features.

    kept: whether the dataset already existed, and was used again.
    warnings: warnings that the manifest lists, from the run that made the dataset.
    """

    directory: str
    manifest: Manifest
    kept: bool
    warnings: Sequence[str] = ()

    @property
    def examples(self) -> int:
        """Number of features in the dataset."""
        return sum(shard.examples for shard in self.manifest.shards)


def make_feature_set_name(source: DataFile, vocabulary: Vocabulary, settings: ExampleSettings) -> str:
    """Return a directory name for these features: their objective, and a digest of everything
    that determines them.

    The digest includes the source file's name, so that two files with equal content have
    separate directories.
    """
    value: list[Any] = [source.name, source.md5, vocabulary.md5, settings.as_json()]
    if separators := _record_separators(vocabulary):
        value.append(separators)
    return f"{settings.objective}-{compute_md5(json.dumps(value, sort_keys=True).encode())[:16]}"


def make_feature_set(
    directory: str,
    source: DataFile,
    tokenizer: Tokenizer,
    settings: Settings,
    make: MakeExamples[Settings],
) -> FeatureSet:
    """Make a dataset of features in a directory, or use an existing dataset of the same source and settings.

    The tokeniser's file is copied next to the shard.
    make: function that makes the examples. It is called only if there is no such dataset.
    Raises DatasetError if the directory has a dataset with other settings or other content.
    """
    vocabulary = tokenizer.vocabulary
    records = make_dataset_settings(settings, vocabulary, tokenizer=_make_tokenizer_record(vocabulary))
    plan = DatasetPlan(
        recipe=None,
        phase=None,
        settings=replace(records, objective=records.objective | _record_separators(vocabulary)),
        inputs=(source.name,),
    )
    dataset = Dataset(directory, plan)
    shard = f"features.{settings.format}"
    entries, manifest = dataset.find_finished_entry(shard, source.md5), dataset.read_manifest()
    # Write nothing if the dataset exists, because the disk may be read-only.
    kept = entries is not None and manifest is not None
    if not kept:
        with dataset.run():
            made = make(source, tokenizer, settings)
            entries = entries or _write_features(dataset, shard, source, made, settings, vocabulary)
            warnings = [warning.removeprefix(f"{source.path}: ") for warning in made.warnings]
            manifest = dataset.finish(
                [entries[0]], [entries[1]], vocabulary=vocabulary.name, warnings=warnings
            )
    assert manifest is not None
    # The manifest stores warnings without the source file's path, because the file may be moved. Add the
    # file's present path.
    warnings = [f"{source.path}: {warning}" for warning in manifest.warnings]
    return FeatureSet(directory=directory, manifest=manifest, kept=kept, warnings=warnings)


def pad_columns(ids: list[int], first_length: int, length: int, padding_id: int) -> dict[str, Any]:
    """Return ids, mask and segments, padded to ``length``. They have the names of the original programs.

    first_length: number of ids in segment 0.
    """
    padding = [0] * (length - len(ids))
    return {
        "input_ids": ids + [padding_id] * len(padding),
        "input_mask": [1] * len(ids) + padding,
        "segment_ids": [0] * first_length + [1] * (len(ids) - first_length) + padding,
    }


def format_json_line(value: Any) -> str:
    """Return the value as one line of JSON, with sorted keys and without blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n"


def _make_tokenizer_record(vocabulary: Vocabulary) -> SettingsRecord | None:
    """Return the manifest's record about a tokenizer.json.

    None for a WordPiece vocabulary, which the settings of the dataset describe.
    """
    if isinstance(vocabulary, WordPieceVocabulary):
        return None
    ids = {role: getattr(vocabulary, role) for role in ROLES}
    roles = tuple((role, vocabulary.words[number]) for role, number in ids.items() if number is not None)
    return TokenizerJson(path=vocabulary.name, roles=roles).record(vocabulary)


def _record_separators(vocabulary: Vocabulary) -> SettingsRecord:
    """Return the manifest's setting pair_separators: the number of separator tokens between
    the texts of a pair.

    The record is empty if the number is 1, as in BERT.
    """
    count = vocabulary.pair_separators
    return {} if count == 1 else {"pair_separators": count}


def _write_features(
    dataset: Dataset,
    shard: str,
    source: DataFile,
    made: SourceExamples,
    settings: ExampleSettings,
    vocabulary: Vocabulary,
) -> tuple[InputEntry, ShardEntry]:
    """Write the shard of features, and add the shard and its source file to the dataset's manifest."""
    layout = replace(settings.layout, padding_id=vocabulary.padding_id)

    def make(number: int, sink: HashingSink) -> ShardWriter:
        return make_writer(settings.format, sink, layout, None)

    def write(writers: Sequence[CountingWriter]) -> None:
        for first in range(0, len(made.examples), BATCH):
            examples = made.examples[first : first + BATCH]
            writers[0].write(made.batch_type.of(examples, wide=vocabulary.wide))

    (shard_entry,) = write_shard_group(dataset, [shard], layout, make, write, source=source.name)
    unknown = None
    if vocabulary.unk is not None:
        unknown = sum(array("I", example.ids).count(vocabulary.unk) for example in made.examples)
    input_entry = InputEntry(
        name=source.name,
        bytes=len(source.data),
        md5=source.md5,
        documents=made.documents,
        sentences=made.sentences,
        tokens=shard_entry.tokens,
        unknown_tokens=unknown,
    )
    dataset.record(input_entry, shard_entry)
    return input_entry, shard_entry
