"""Features as a dataset of the toolkit: a shard and a manifest, made once, found again and verified."""

import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from bertdata.config.dataset_settings import SettingsRecord, records_of
from bertdata.config.settings import ExampleSettings
from bertdata.dataset.manifest import DatasetPlan, InputEntry, Manifest, ShardEntry
from bertdata.dataset.shard_group import write_shard_group
from bertdata.dataset.writer import Dataset
from bertdata.io.file_check import HashingSink, md5_of
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
    """The examples of a source. documents, sentences: counts for the manifest. warnings: for a person.

    values: the same features for audits, each as a dictionary. count: their number in words.
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
    """A finished dataset of features. kept: an earlier run had made it.

    warnings: of the run that made it, which its manifest keeps.
    """

    directory: str
    manifest: Manifest
    kept: bool
    warnings: Sequence[str] = ()

    @property
    def examples(self) -> int:
        """The number of features."""
        return sum(shard.examples for shard in self.manifest.shards)


def feature_set_name(source: DataFile, vocabulary: Vocabulary, settings: ExampleSettings) -> str:
    """A directory's name for these features: the objective, and a digest of all that its manifest tells.

    The file's name is among it: two files with the same bytes have a directory each.
    """
    value: list[Any] = [source.name, source.md5, vocabulary.md5, settings.as_json()]
    if separators := _separators(vocabulary):
        value.append(separators)
    return f"{settings.objective}-{md5_of(json.dumps(value, sort_keys=True).encode())[:16]}"


def make_feature_set(
    directory: str,
    source: DataFile,
    tokenizer: Tokenizer,
    settings: Settings,
    make: MakeExamples[Settings],
) -> FeatureSet:
    """The dataset in the directory, made by the commit protocol, or kept where it fits source and settings.

    make is called only where it has to be made. The tokeniser's file is copied beside the shard.
    DatasetError for a directory of other settings or of something else.
    """
    vocabulary = tokenizer.vocabulary
    records = records_of(settings, vocabulary, tokenizer=_record(vocabulary))
    plan = DatasetPlan(
        recipe=None,
        phase=None,
        settings=replace(records, objective=records.objective | _separators(vocabulary)),
        inputs=(source.name,),
    )
    dataset = Dataset(directory, plan)
    shard = f"features.{settings.format}"
    entries, manifest = dataset.finished_entry(shard, source.md5), dataset.found_manifest()
    kept = entries is not None and manifest is not None  # nothing is written: it may be read-only
    if not kept:
        with dataset.run():
            made = make(source, tokenizer, settings)
            entries = entries or _write(dataset, shard, source, made, settings, vocabulary)
            warnings = [warning.removeprefix(f"{source.path}: ") for warning in made.warnings]
            manifest = dataset.finish(
                [entries[0]], [entries[1]], vocabulary=vocabulary.name, warnings=warnings
            )
    assert manifest is not None
    # The warnings have the path that the source has now.
    warnings = [f"{source.path}: {warning}" for warning in manifest.warnings]
    return FeatureSet(directory=directory, manifest=manifest, kept=kept, warnings=warnings)


def padded_columns(ids: list[int], first_length: int, length: int, padding_id: int) -> dict[str, Any]:
    """The ids, mask and segments of an example, padded to ``length``, under the names of the originals."""
    padding = [0] * (length - len(ids))
    return {
        "input_ids": ids + [padding_id] * len(padding),
        "input_mask": [1] * len(ids) + padding,
        "segment_ids": [0] * first_length + [1] * (len(ids) - first_length) + padding,
    }


def json_line(value: Any) -> str:
    """A line of JSON: keys sorted, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n"


def _record(vocabulary: Vocabulary) -> SettingsRecord | None:
    """The record of a tokenizer.json by its vocabulary. None for a WordPiece vocabulary, told by settings."""
    if isinstance(vocabulary, WordPieceVocabulary):
        return None
    ids = {role: getattr(vocabulary, role) for role in ROLES}
    roles = tuple((role, vocabulary.words[number]) for role, number in ids.items() if number is not None)
    return TokenizerJson(path=vocabulary.name, roles=roles).record(vocabulary)


def _separators(vocabulary: Vocabulary) -> SettingsRecord:
    """The number of separators of a pair, as a setting of the objective. None where it is 1, the usual."""
    count = vocabulary.pair_separators
    return {} if count == 1 else {"pair_separators": count}


def _write(
    dataset: Dataset,
    shard: str,
    source: DataFile,
    made: SourceExamples,
    settings: ExampleSettings,
    vocabulary: Vocabulary,
) -> tuple[InputEntry, ShardEntry]:
    """Write the shard and its lengths, and note it as finished."""
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
