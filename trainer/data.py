"""A dataset opened for training: its files, how many examples each holds, and that they are as promised."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from tempfile import TemporaryFile
from typing import BinaryIO, TypeVar, cast

import numpy as np

from bertdata import storage
from bertdata.errors import DatasetError, ManifestError, MissingInputError, SettingsError, ShardError
from bertdata.manifest import MANIFEST_NAME, MD5SUMS_NAME, Manifest, ShardEntry, parse_manifest
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards import columns, make_reader, open_reader
from trainer.order import numbers

Result = TypeVar("Result")
# The layouts, each with the path that has it; path, examples and md5 of each file; tokens of the vocabulary
Found = tuple[list[tuple[str, ShardLayout]], Sequence[tuple[str, int, str | None]], int | None]
_THREADS = 8  # they wait for the file system
_ROWS = 4096
_BLOCK_BYTES = 1 << 20
_ENDINGS = {"tfrecord", "tfrecords", "hdf5", "h5", "parquet", "pq", ""}  # MLPerf's files have none
_PADDED_TOKENS = 127  # a model's vocabulary may be rounded up to a multiple of 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """One file of examples; ``name`` is its path below the directory that holds all of them."""

    name: str
    path: str
    examples: int
    md5: str | None = None  # None: no manifest vouches for it


@dataclass(frozen=True, kw_only=True, slots=True)
class Data:
    """The files of a dataset and what is known of them; nothing is decoded yet."""

    name: str
    layout: ShardLayout
    shards: tuple[Shard, ...]
    vocabulary_size: int | None  # the model's, else that in the manifest: ids are below it

    @property
    def examples(self) -> int:
        return sum(shard.examples for shard in self.shards)

    @property
    def digest(self) -> str:
        """What a checkpoint remembers of the dataset: a position means nothing in another one."""
        found = [f"{shard.name} {shard.examples} {shard.md5}\n" for shard in self.shards]
        return hashlib.blake2b("".join(found).encode(), digest_size=16).hexdigest()

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """The shard's examples as NumPy columns; ShardError if they are not what was promised."""
        found = 0
        with self._opened(shard) as file:
            reader = make_reader(file, shard.path)
            _check_layout(shard.path, reader.layout, self.layout)
            for batch in map(columns.arrays, reader.batches(_ROWS)):
                self._check_ids(batch, columns.Place(name=shard.path, first=found))
                found += len(batch)
                yield _narrowed(batch)
        if found != shard.examples:
            raise ShardError(f"{shard.path}: holds {found} examples, expected {shard.examples}")

    @contextmanager
    def _opened(self, shard: Shard) -> Iterator[BinaryIO]:
        """The shard's file, of the md5 that is promised; a remote one is fetched once, into a local file."""
        remote, md5 = storage.is_remote(shard.path), hashlib.md5(usedforsecurity=False)
        with (
            storage.open_input(shard.path) as source,
            cast(BinaryIO, TemporaryFile()) if remote else nullcontext(source) as file,
        ):
            while (remote or shard.md5) and (block := source.read(_BLOCK_BYTES)):
                md5.update(block)
                if remote:
                    file.write(block)
            if shard.md5 and md5.hexdigest() != shard.md5:
                found = f"found md5 {md5.hexdigest()}, expected {shard.md5}"
                raise ShardError(f"{shard.path}: {found}: it was damaged or changed since it was made")
            file.seek(0)
            yield file

    def _check_ids(self, batch: ExampleBatch, place: columns.Place) -> None:
        limit = self.vocabulary_size
        for ids, ends in ((batch.ids, batch.ends), (batch.labels, batch.mask_ends)):
            if limit is not None and len(ids) and ids.max() >= limit:
                problem = f"id {ids.max()}, expected less than {limit}, the model's vocab_size"
                place.refuse_items(ids == ids.max(), ends, lambda _, problem=problem: problem)  # type: ignore[misc]


def open_data(
    paths: str | Sequence[str],
    *,
    unverified: bool = False,
    max_seq_length: int | None = None,
    max_predictions_per_seq: int | None = None,
    max_position_embeddings: int | None = None,
    vocabulary_size: int | None = None,
) -> Data:
    """The dataset at the paths: directories, manifests, shards of a directory with a manifest, or patterns.

    Sizes are compared with the manifest now, md5s when a shard is decoded. unverified: take files of
    any tool without a manifest, and count their examples. The other settings, where given, are what
    model and configuration want of the data.

    MissingInputError, DatasetError, ManifestError or ShardError say what is wrong with the dataset,
    SettingsError where it does not suit the model.
    """
    paths = [paths] if isinstance(paths, str) else list(paths)
    name = ", ".join(paths)
    layouts, files, tokens = _unverified(paths) if unverified else _verified(paths)
    if not any(examples for _, examples, _ in files):
        raise DatasetError(f"{name}: holds no examples")
    layout = layouts[0][1]
    for path, found in layouts:
        _check_layout(path, found, layout)
    wants = {"max_seq_length": max_seq_length, "max_predictions_per_seq": max_predictions_per_seq}
    for what, wanted in wants.items():
        if wanted is not None and getattr(layout, what) != wanted:
            made = f"was made with {what} {getattr(layout, what)}"
            raise SettingsError(f"{name}: {made}, the configuration says {wanted}")
    if max_position_embeddings is not None and layout.max_seq_length > max_position_embeddings:
        limit = f"the model has max_position_embeddings {max_position_embeddings}"
        raise SettingsError(f"{name}: sequences of {layout.max_seq_length} ids, {limit}")
    size = tokens if vocabulary_size is None else vocabulary_size
    if tokens and size and not tokens <= size <= tokens + _PADDED_TOKENS:
        made = f"was made with a vocabulary of {tokens} tokens"
        raise SettingsError(f"{name}: {made}, the model has vocab_size {size}")
    # A file is known by its path below the directory that holds all: the same wherever that lies.
    start = os.path.commonprefix([path for path, _, _ in files]).rfind("/") + 1  # noqa: RUF071
    shards = tuple(Shard(name=path[start:], path=path, examples=n, md5=md5) for path, n, md5 in files)
    return Data(name=name, layout=layout, shards=shards, vocabulary_size=size)


def _verified(paths: list[str]) -> Found:
    opened = [(path, *_manifest_of(path)) for path in paths]
    plans = [(path, manifest.plan) for path, manifest, _ in opened]
    vocabulary = plans[0][1].vocabulary
    for path, plan in plans:
        if plan.vocabulary["md5"] != vocabulary["md5"]:
            found = f"vocabulary {plan.vocabulary['md5']}, expected {vocabulary['md5']}"
            raise DatasetError(f"{path}: was made with {found}, that of {paths[0]}")
    names = [field.name for field in fields(ShardLayout)]
    layouts = [(path, ShardLayout(**{name: plan.settings[name] for name in names})) for path, plan in plans]
    shards = [item for _, _, chosen in opened for item in chosen]
    faults = [fault for fault in _in_parallel(_size_fault, shards) if fault]
    if faults:
        more = f" (and {len(faults) - 1} more files at fault)" if faults[1:] else ""
        raise ShardError(faults[0] + more)
    return layouts, [(path, shard.examples, shard.md5) for path, shard in shards], vocabulary["tokens"]


def _manifest_of(path: str) -> tuple[Manifest, list[tuple[str, ShardEntry]]]:
    """The manifest that the path means, and the paths and entries of those shards that it means."""
    chosen: list[str] | None = None
    directory = path
    if path.endswith(".json"):
        directory = storage.parent(path)
    elif not storage.is_directory(path):
        chosen = storage.expand([path])
        directory = storage.parent(chosen[0])
    where = path if path.endswith(".json") else storage.join(directory, MANIFEST_NAME)
    if not storage.exists(where):
        raise _no_manifest(directory)
    data = storage.read_bytes(where)
    manifest = parse_manifest(data, where)
    if manifest.dump() != data:
        raise ManifestError(f"{where}: was edited: it is not what its own entries make")
    entries = {storage.join(directory, shard.name): shard for shard in manifest.shards}
    for shard in chosen or ():
        if shard not in entries:
            raise DatasetError(f"{shard}: {where} lists no such shard; unverified takes files as they are")
    return manifest, [(shard, entries[shard]) for shard in chosen or entries]


def _no_manifest(directory: str) -> DatasetError:
    suffix = f"/{MANIFEST_NAME}"
    inner = [name[: -len(suffix)] for name in storage.list_files(directory) if name.endswith(suffix)]
    remedy = (
        f"name one of its datasets: {', '.join(inner)}" if inner else "unverified takes files as they are"
    )
    return DatasetError(f"{directory}: holds no {MANIFEST_NAME}, so nothing vouches for its shards; {remedy}")


def _size_fault(item: tuple[str, ShardEntry]) -> str | None:
    path, shard = item
    try:
        found = storage.size(path)
    except MissingInputError:
        return f"{path}: is missing, expected {shard.bytes} bytes and {shard.examples} examples"
    return None if found == shard.bytes else f"{path}: found {found} bytes, expected {shard.bytes}"


def _unverified(paths: list[str]) -> Found:
    files = sorted({file for path in paths for file in _files_of(path)})
    counted = list(zip(files, _in_parallel(_count, files), strict=True))
    layouts = [(file, layout) for file, (layout, _) in counted]
    return layouts, [(file, examples, None) for file, (_, examples) in counted], None


def _files_of(path: str) -> list[str]:
    if not storage.is_directory(path):
        return storage.expand([path])
    names = [name for name in storage.list_files(path) if name not in (MANIFEST_NAME, MD5SUMS_NAME)]
    kinds = {name: os.path.splitext(name)[1][1:].lower() for name in names}
    chosen = [name for name in names if kinds[name] in _ENDINGS]
    if not chosen:
        raise DatasetError(f"{path}: holds no file that is named as a shard")
    split = {word for word in ("training", "test") for file in chosen if word in storage.base_name(file)}
    if len(split) > 1:
        raise DatasetError(
            f"{path}: holds training and test files; give a pattern, as {storage.join(path, '*training*')}"
        )
    return [storage.join(path, name) for name in chosen]


def _count(path: str) -> tuple[ShardLayout, int]:
    with open_reader(path) as reader:
        return reader.layout, len(reader)


def _check_layout(path: str, found: ShardLayout, expected: ShardLayout) -> None:
    for field in fields(ShardLayout):
        ours, wanted = getattr(found, field.name), getattr(expected, field.name)
        if ours != wanted:
            raise ShardError(f"{path}: {field.name} is {ours}, expected {wanted}")


def _in_parallel(function: Callable[..., Result], items: Sequence[object]) -> list[Result]:
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(function, items))


def _narrowed(batch: ExampleBatch) -> ExampleBatch:
    """The batch with ids in 16 bits if they allow it."""
    wide = max((int(ids.max()) for ids in (batch.ids, batch.labels) if len(ids)), default=0) >> 16
    kind = np.uint32 if wide else np.uint16
    return replace(batch, ids=batch.ids.astype(kind), labels=batch.labels.astype(kind))


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneratedData(Data):
    """Random examples that come from the seed and the shard's name."""

    seed: int

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        assert self.vocabulary_size is not None
        rows, ids, masks = shard.examples, self.layout.max_seq_length, self.layout.max_predictions_per_seq
        drawn = numbers(rows * (ids + 2 * masks + 2), self.seed, shard.name)
        tokens, labels, jumps, rest = np.split(drawn, np.cumsum([rows * ids, rows * masks, rows * masks]))
        stride = (ids - 2) // masks
        jumps = jumps.reshape(rows, masks) % np.uint64(stride)
        positions = jumps + np.arange(1, 1 + stride * masks, stride, dtype=np.uint64)
        yield _narrowed(
            ExampleBatch(
                ids=tokens % np.uint64(self.vocabulary_size),
                ends=np.arange(ids, (rows + 1) * ids, ids, dtype=np.uint32),
                first_lengths=(1 + rest[:rows] % np.uint64(ids - 1)).astype(np.uint32),
                positions=positions.ravel().astype(np.uint16),
                labels=labels % np.uint64(self.vocabulary_size),
                mask_ends=np.arange(masks, (rows + 1) * masks, masks, dtype=np.uint32),
                next_labels=(rest[rows:] % np.uint64(2)).astype(np.uint8),
            )
        )


def generated_data(
    layout: ShardLayout, *, vocabulary_size: int, seed: int = 0, files: int = 8, examples: int = 4096
) -> Data:
    """Random examples without padding, ``examples`` to a file, made when they are needed."""
    masks, ids = layout.max_predictions_per_seq, layout.max_seq_length
    if not 0 < masks <= ids - 2:
        raise SettingsError(
            f"max_predictions_per_seq is {masks}, expected 1 to max_seq_length - 2 ({ids - 2})"
        )
    names = (f"generated-{number}" for number in range(files))
    shards = tuple(Shard(name=name, path="", examples=examples) for name in names)
    return GeneratedData(
        name="generated data", layout=layout, shards=shards, vocabulary_size=vocabulary_size, seed=seed
    )
