"""The dataset to be packed: its examples, settings, provenance and the lengths of its examples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bertdata.config.dataset_settings import (
    WORDPIECE,
    DatasetSettings,
    SettingsRecord,
    make_vocabulary_record,
)
from bertdata.dataset import reader
from bertdata.dataset.discover import find_datasets
from bertdata.dataset.manifest import InputEntry, Manifest, SkippedEntry
from bertdata.dataset.provenance import NO_PROVENANCE, Provenance, read_packed_provenance
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.dataset.vocabulary import find_dataset_vocabulary_path
from bertdata.errors import AssetError, DatasetError, SettingsError
from bertdata.examples.columns import Array, compute_lengths
from bertdata.examples.groups import MASKS, get_masks, has_group
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.io.file_identity import FileIdentity, identify_file
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.packing.pack_plan import Histogram, count_lengths
from bertdata.records import Vocabulary
from bertdata.shards.packed.layouts import Layout
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME, check_token_order
from bertdata.tokens.files import TokenizerFile, TokenizerJson, name_in_dataset, read_file_record
from bertdata.tokens.fit import warn_of_casing
from bertdata.tokens.load import find_tokenizer_file, vocabulary_of


@dataclass(frozen=True, kw_only=True, slots=True)
class InputDataset:
    """A dataset to be packed, or files of other programs.

    vocabulary: path of the vocabulary file, or None if the file is not available.
    inputs: the manifest's entries of the text files that the dataset was made from. None without a manifest.
    The dataset's files then count as inputs, and their entries are made while their examples are counted.
    lost_tokens: tokens of the inputs that no example holds. None if they were not counted.
    """

    opened: OpenedDataset
    recipe: str | None
    phase: int | None
    settings: DatasetSettings
    vocabulary: str | None
    inputs: tuple[InputEntry, ...] | None
    skipped: tuple[SkippedEntry, ...] = ()
    provenance: Provenance = NO_PROVENANCE
    lost_tokens: int | None = None

    def of_shards(self, start: int, stop: int) -> OpenedDataset:
        """Return the opened dataset with only the shards start to stop - 1."""
        return replace(self.opened, shards=self.opened.shards[start:stop])

    def vocabulary_path(self) -> str:
        """Return the path of the vocabulary file. AssetError if it is not available."""
        if self.vocabulary is None:
            raise AssetError(
                f"{self.opened.name}: its vocabulary, md5 {self.settings.vocabulary['md5']}, is not at hand: "
                f"{name_in_dataset(self.settings.tokenizer)} is missing or another; give --vocab FILE"
            )
        return self.vocabulary


def find_input_dataset(
    path: str, vocabulary: str | None, unverified: bool, rows: Layout, objective: str | None = None
) -> InputDataset:
    """Open a dataset to be packed into rows of the layout ``rows``.

    The other arguments are those of open_input_dataset. DatasetError if the dataset is already packed.
    SettingsError if the layout cannot hold examples of the dataset's objective.
    """
    found = open_input_dataset(path, vocabulary, unverified, objective)
    layout = found.opened.layout
    if layout.packing is not None:
        raise DatasetError(
            f"{path}: its rows are packed already, in the layout {layout.packing}; pack the dataset that it "
            "was made from"
        )
    rows.check_objective(layout.objective)
    return found


def open_input_dataset(
    path: str, vocabulary: str | None, unverified: bool, objective: str | None = None
) -> InputDataset:
    """Open the dataset at the path.

    vocabulary: path or name of the vocabulary, or None to use the dataset's.
    unverified: accept files of any program without a manifest. They need a vocabulary.
    objective: a user's objective as package.module:NAME, which the examples may have.
    Errors as from ``reader.open_dataset``.
    """
    if objective is not None:
        find_objective(objective)
    return (_open_unverified if unverified else _open_verified)(path, vocabulary, objective)


def _open_verified(path: str, given: str | None, objective: str | None) -> InputDataset:
    """Open a dataset that has a manifest. given: the user's vocabulary, whose md5 must match the manifest."""
    if not (storage.is_directory(path) or path.endswith(".json")) and storage.exists(path):
        raise DatasetError(f"{path}: is a file, expected a dataset's directory; --unverified takes files")
    opened = reader.open_dataset(path, objective=objective)
    [dataset] = find_datasets(path)
    manifest = dataset.manifest
    assert isinstance(manifest, Manifest)
    if len(dataset.shards) != len(manifest.shards):
        raise DatasetError(f"{path}: names some shards of a dataset, expected its directory")
    plan = manifest.plan
    vocabulary = find_dataset_vocabulary_path(given, dataset)
    if given is not None and vocabulary is not None:
        found = vocabulary_of(read_file_record(plan.settings.tokenizer, vocabulary)).md5
        if found != (md5 := plan.settings.vocabulary["md5"]):
            raise SettingsError(f"{vocabulary}: md5 {found}, the shards were made with {md5}")
    data = storage.read_bytes(storage.join(dataset.path, MANIFEST_NAME))
    return InputDataset(
        opened=opened,
        recipe=plan.recipe,
        phase=plan.phase,
        settings=plan.settings,
        vocabulary=vocabulary,
        inputs=manifest.inputs,
        skipped=manifest.skipped,
        provenance=read_packed_provenance(dataset.path, data, manifest.parts_manifest),
        lost_tokens=manifest.lost_tokens,
    )


def _open_unverified(path: str, given: str | None, objective: str | None) -> InputDataset:
    """Open files without a manifest. given: the user's vocabulary, or None for a dict.txt next to the files.

    The dataset's settings then hold only what the files and the vocabulary show.
    """
    beside = storage.join(path, DICTIONARY_NAME)
    if given is None and storage.is_directory(path) and storage.exists(beside):
        given = beside
    if given is None:
        raise SettingsError(
            "--unverified needs --vocab FILE|NAME, the vocabulary that the files were made with"
        )
    file = find_tokenizer_file(find_vocabulary(given))
    vocabulary, loaded = file.path, vocabulary_of(file)
    found = reader.open_dataset(path, unverified=True, objective=objective)
    # The ids of a .bin are line numbers of dict.txt, so the order of its tokens matters.
    if any(shard.path.endswith(".bin") for shard in found.shards):
        check_token_order(loaded)
    opened = replace(found, vocabulary_size=loaded.size)
    sizes = find_objective(opened.layout.objective).batch_type.sizes()
    settings = DatasetSettings(
        tokenizer=_make_tokenizer_record(file, loaded),
        objective={
            "name": opened.layout.objective,
            **{name: opened.layout.size(name) for name in sizes},
            "unverified": True,
        },
        container={"remask": False},
    )
    return InputDataset(
        opened=opened,
        recipe=None,
        phase=None,
        settings=settings,
        vocabulary=vocabulary,
        inputs=None,
    )


def _make_tokenizer_record(file: TokenizerFile, vocabulary: Vocabulary) -> SettingsRecord:
    if isinstance(file, TokenizerJson):
        return file.record(vocabulary)
    return {
        "kind": WORDPIECE,
        "dialect": "mlperf",
        "lower_case": not warn_of_casing(vocabulary, True),
        "vocabulary": make_vocabulary_record(vocabulary),
    }


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LengthCounts:
    """How many examples of each length a shard has.

    masks: the largest number of masked positions of an example, by length. None if the lengths were read from
    a
    lengths file, which does not record masks.
    entry: the shard's file as an input of the packed dataset. None if the source has a manifest.
    """

    histogram: Histogram
    masks: Array | None = None
    entry: InputEntry | None = None


def add_md5s(source: InputDataset, counts: Sequence[LengthCounts]) -> InputDataset:
    """Return the source with the md5s that were computed while its files were counted.

    If a file has changed when it is read again, the reader therefore raises ShardError.
    """
    shards = tuple(
        shard if one.entry is None else replace(shard, md5=one.entry.md5)
        for shard, one in zip(source.opened.shards, counts, strict=True)
    )
    return replace(source, opened=replace(source.opened, shards=shards))


@dataclass(frozen=True, kw_only=True, slots=True)
class CountTask:
    """Task for a worker: count the lengths of a shard's examples.

    source: a dataset that contains only this shard.
    """

    source: OpenedDataset


def count_shard_lengths(task: CountTask) -> LengthCounts:
    """Count a shard's lengths from its lengths file if it has one, else by reading the shard.

    ShardError if the shard is damaged. ChangedInputError if a file without a manifest changed while it was
    read.
    """
    [shard] = task.source.shards
    size = task.source.layout.max_seq_length
    if shard.lengths_md5 is not None:
        return LengthCounts(histogram=count_lengths(task.source.lengths(shard), size, shard.lengths_path))
    identity = identify_file(shard.path)
    histogram, masks = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    for batch in task.source.batches(shard):
        found = compute_lengths(batch.ends)
        histogram += count_lengths(found, size, shard.path)
        if has_group(type(batch), MASKS):
            np.maximum.at(masks, found, compute_lengths(get_masks(batch).ends))
    entry = None if shard.md5 is not None else _make_file_entry(shard, identity.with_md5(), histogram)
    return LengthCounts(histogram=histogram, masks=masks, entry=entry)


def _make_file_entry(shard: Shard, identity: FileIdentity, histogram: Histogram) -> InputEntry:
    """Return a file without a manifest as an input entry.

    Its documents and sentences are unknown and recorded as 0.
    """
    tokens = int((histogram * np.arange(len(histogram))).sum())
    return InputEntry(
        name=shard.name,
        bytes=identity.state.bytes,
        md5=identity.md5,
        documents=0,
        sentences=0,
        tokens=tokens,
    )


def find_most_masks_by_length(source: InputDataset, counts: list[LengthCounts]) -> Array:
    """Return the largest number of masked positions of an example, by length.

    The number was counted if every shard was read. Otherwise it follows from the masking settings.
    """
    found = [one.masks for one in counts if one.masks is not None]
    if len(found) == len(counts):
        highest: Array = np.max(found, axis=0)
        return highest
    layout = source.opened.layout
    wanted = partial(find_objective(layout.objective).most_masks, source.settings.by_name)
    return np.array([0, *map(wanted, range(1, layout.max_seq_length + 1))])
