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
    """A dataset to be packed, which bertdata or another program wrote.

    opened: the dataset's shards and layout.
    recipe: name of the recipe (settings for one program's data) that it was made with. None if there was
        none.
    phase: training phase that it was made for. None if there is none.
    settings: settings that it was made with.
    vocabulary: path of the vocabulary file. None if the file is not available.
    inputs: the manifest's entries of the text files that the dataset was made from. None without a manifest.
        The dataset's files then count as inputs, and their entries are made while their examples are counted.
    skipped: the manifest's entries of inputs that were left out.
    provenance: the manifests that the dataset was made from.
    lost_tokens: number of tokens of the inputs that are in no example. None if they were not counted.
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

    def select_shards(self, start: int, stop: int) -> OpenedDataset:
        """Return the opened dataset with only its shards ``start`` to ``stop - 1``."""
        return replace(self.opened, shards=self.opened.shards[start:stop])

    def vocabulary_path(self) -> str:
        """Return the path of the vocabulary file. Raises AssetError if the file is not available."""
        if self.vocabulary is None:
            raise AssetError(
                f"{self.opened.name}: its vocabulary, md5 {self.settings.vocabulary['md5']}, is not at hand: "
                f"{name_in_dataset(self.settings.tokenizer)} is missing or another; give --vocab FILE"
            )
        return self.vocabulary


def find_input_dataset(
    path: str, vocabulary: str | None, unverified: bool, rows: Layout, objective: str | None = None
) -> InputDataset:
    """Open a dataset to be packed, and check that the layout of packed rows can hold its examples.

    Raises DatasetError if the dataset is already packed. Raises SettingsError if the layout cannot hold the
    examples.

    rows: layout of the packed rows.

    The other arguments are those of ``open_input_dataset``.
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
    """Open the dataset that is to be packed.

    vocabulary: path or name of the vocabulary. None takes the dataset's own.
    unverified: True accepts files of any program without a manifest. They need a vocabulary.
    objective: an objective of the user, as package.module:NAME, which the examples may have. It is imported.

    The errors are those of ``reader.open_dataset``.
    """
    if objective is not None:
        find_objective(objective)
    return (_open_unverified if unverified else _open_verified)(path, vocabulary, objective)


def _open_verified(path: str, given: str | None, objective: str | None) -> InputDataset:
    """Open a dataset that has a manifest.

    given: the vocabulary that the user named. Its md5 must be that in the manifest. None takes the dataset's
        own.
    """
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
    """Open files of another program, without a manifest.

    The dataset's settings then contain only what the files and the vocabulary show.

    given: the vocabulary that the user named. None takes the dict.txt next to the files.
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
    # The ids in fairseq's .bin are line numbers of dict.txt, so the order of its tokens matters.
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
    """Counts of a shard's examples by their length.

    histogram: number of examples by length.
    masks: largest number of masked positions of an example, by length. None if the lengths were read from a
        lengths file, which does not record masks.
    entry: the shard's file as an input of the packed dataset. None if the shard has a manifest.
    """

    histogram: Histogram
    masks: Array | None = None
    entry: InputEntry | None = None


def add_counted_md5s(source: InputDataset, counts: Sequence[LengthCounts]) -> InputDataset:
    """Return the source with the md5s of its files, which were computed while their lengths were counted.

    If a file has another md5 when it is read again for packing, ShardError is raised.
    """
    shards = tuple(
        shard if one.entry is None else replace(shard, md5=one.entry.md5)
        for shard, one in zip(source.opened.shards, counts, strict=True)
    )
    return replace(source, opened=replace(source.opened, shards=shards))


@dataclass(frozen=True, kw_only=True, slots=True)
class CountTask:
    """Task for a worker: count how many examples of each length a shard has.

    source: the opened dataset with only this shard.
    """

    source: OpenedDataset


def count_shard_lengths(task: CountTask) -> LengthCounts:
    """Count how many examples of each length a shard has.

    The shard's lengths file is read if there is one, otherwise the shard itself. Raises ShardError if the
    shard is damaged. Raises ChangedInputError if a file without a manifest changed while it was read.
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
    """Return the manifest entry of a file that has no manifest and counts as an input.

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
    """Return for each length the largest number of masked positions that an example of this length has.

    If every shard was read, the number was counted. Otherwise it is the most that the masking settings allow.
    """
    found = [one.masks for one in counts if one.masks is not None]
    if len(found) == len(counts):
        highest: Array = np.max(found, axis=0)
        return highest
    layout = source.opened.layout
    wanted = partial(find_objective(layout.objective).most_masks, source.settings.by_name)
    return np.array([0, *map(wanted, range(1, layout.max_seq_length + 1))])
