"""Reader of a dataset: its shards, their sizes and examples, checked against the manifest.

Needs NumPy once examples are read.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from functools import partial
from itertools import accumulate, pairwise
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

from bertdata.config.held_out_names import held_out
from bertdata.dataset.check import refuse_changed, unwritten
from bertdata.dataset.discover import FoundShard, check_objective, find_datasets, find_shards
from bertdata.dataset.lengths import read_lengths
from bertdata.dataset.manifest import DatasetPlan, lengths_name
from bertdata.errors import DatasetError, ShardError
from bertdata.examples.objectives import find_objective, objective_of_file
from bertdata.io import storage
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.io.real_paths import find_repeated, real_path, real_paths
from bertdata.records import DEFAULT_OBJECTIVE, Buffer, ExampleBatch, ShardLayout
from bertdata.shards.containers import make_reader, open_reader
from bertdata.shards.measured_sizes import with_largest_sizes
from bertdata.shards.packed.packs import PackBatch, PackReader
from bertdata.shards.protocol import ShardReader

if TYPE_CHECKING:
    from bertdata.shards.rows import RecordCheck

# Layouts with their paths; files with their numbers of examples and packed rows; size of the vocabulary;
# number of files left out.
_Files = list[tuple[FoundShard, int, int | None]]
_Contents = tuple[list[tuple[str, ShardLayout]], _Files, int | None, int]

Split = Literal["training", "test"]
"""The files to train on, or those held out, of a dataset that has both."""

_THREADS = 8  # mostly waiting for the file system
_ROWS = 4096
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """One file of examples. ``name`` is its path below the directory that all files share.

    rows: the packed rows that hold the examples; None where each row is one example. masked_tokens: masked
    positions of all examples; None where no manifest tells them. checked: the version of the file
    (``storage.version``) whose md5 was found right.
    """

    name: str
    path: str
    examples: int
    md5: str | None = None  # None: listed in no manifest
    lengths_path: str = ""
    lengths_md5: str | None = None  # None: the dataset has no lengths
    rows: int | None = None
    masked_tokens: int | None = None
    checked: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceShare:
    """A source of a mixture: the path given for it, its whole weight, and how many shards are its own."""

    name: str
    weight: int
    shards: int


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedDataset:
    """The shards of a dataset with their layout. Examples are decoded when they are asked for.

    vocabulary_size: every id must be below it; None: unknown, and ids are not checked. left_out: the number
    of files that are not of the split, where one was asked for. sources: those of a mixture, whose shards
    follow each other. never_masked: where masks are drawn when examples are loaded, by id 1 for one that is
    never masked.
    """

    name: str
    layout: ShardLayout
    shards: tuple[Shard, ...]
    vocabulary_size: int | None
    left_out: int = 0
    sources: tuple[SourceShare, ...] = ()
    never_masked: bytes | None = None

    @property
    def examples(self) -> int:
        return sum(shard.examples for shard in self.shards)

    @property
    def file_rows(self) -> list[tuple[str, int]]:
        """The name of each shard and its rows: its packed rows, or its examples."""
        return [(one.name, one.examples if one.rows is None else one.rows) for one in self.shards]

    @property
    def examples_before(self) -> tuple[int, ...]:
        """For each shard the examples of the shards before it, of a mixture those of its source."""
        ends = [*accumulate(source.shards for source in self.sources)] or [len(self.shards)]
        sizes = [[shard.examples for shard in self.shards[start:end]] for start, end in pairwise([0, *ends])]
        return tuple(number for source in sizes for number in accumulate(source[:-1], initial=0))

    @property
    def digest(self) -> str:
        """A digest of shards' names, sizes, md5s, and of weights. Equal for the same dataset elsewhere."""
        found = [f"{shard.name} {shard.examples} {shard.md5}\n" for shard in self.shards]
        found += [f"{source.weight} parts of {source.shards}\n" for source in self.sources]
        return hashlib.blake2b("".join(found).encode(), digest_size=16).hexdigest()

    @property
    def has_lengths(self) -> bool:
        """True where the lengths of all examples can be had without decoding them."""
        return all(shard.lengths_md5 is not None for shard in self.shards if shard.examples)

    def lengths(self, shard: Shard) -> Buffer:
        """The tokens of each of the shard's examples, 16 bits each. ShardError where the file was changed."""
        assert shard.lengths_md5 is not None, f"{shard.path}: has no lengths"
        return read_lengths(shard.lengths_path, shard.examples, shard.lengths_md5)

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """The shard's examples as NumPy columns. ShardError where they differ from the manifest or layout."""
        found = 0
        with self.open_shard(shard) as reader:
            for batch in reader.batches(_ROWS):
                yield self.checked(batch, shard, found)
                found += len(batch)
        _check_number(shard.path, found, shard.examples, "examples")

    @property
    def stored(self) -> "OpenedDataset":
        """The examples as they are in the files, where this dataset gives altered ones."""
        return self

    def altered(self, batch: ExampleBatch, shard: Shard, first: int) -> ExampleBatch:
        """Stored examples of the shard, from number ``first`` on, as this dataset gives them."""
        return batch

    def at_epoch(self, epoch: int) -> "OpenedDataset":
        """The dataset of another epoch, where its examples change from one to the next."""
        return self

    def checked(self, batch: ExampleBatch, shard: Shard, first: int) -> ExampleBatch:
        """A reader's batch as NumPy columns, its ids checked. first: the number of its first example."""
        from bertdata.examples import columns
        from bertdata.shards.rows import RecordCheck

        batch = columns.arrays(batch)
        self._check_ids(batch, RecordCheck(name=shard.path, first=first))
        return columns.compact(batch)

    def packs(self, shard: Shard) -> Iterator[PackBatch]:
        """The packed rows of a shard that has some, in order. Their examples and errors as from batches."""
        from bertdata.examples import columns
        from bertdata.shards.rows import RecordCheck

        examples = rows = 0
        with self.open_shard(shard) as reader:
            if not isinstance(reader, PackReader):
                raise ShardError(f"{shard.path}: holds no packed rows")
            for packs in reader.packs(_ROWS):
                batch = columns.arrays(packs.examples)
                self._check_ids(batch, RecordCheck(name=shard.path, first=examples))
                examples, rows = examples + len(batch), rows + len(packs)
                yield PackBatch(examples=columns.compact(batch), ends=packs.ends)
        _check_number(shard.path, examples, shard.examples, "examples")
        _check_number(shard.path, rows, shard.rows or 0, "packed rows")

    @contextmanager
    def open_shard(self, shard: Shard) -> Iterator[ShardReader]:
        """A reader of the shard, whose md5 and layout fit."""
        # the process that opened the dataset trusts its objective; this may be another one
        find_objective(self.layout.objective)
        with self._opened(shard) as file:
            reader = make_reader(
                file,
                shard.path,
                objective=self.layout.objective,
                padding_id=self.layout.padding_id,
                layout=self.layout,
            )
            if reader.is_measured:
                reader.layout = self.layout
            check_same_layout(shard.path, reader.layout, self.layout)
            yield reader

    def run(self, numbers: range) -> Iterator[ExampleBatch]:
        """The examples whose numbers, counted over all shards in order, are in the range."""
        from bertdata.examples import columns

        start = 0
        for shard in self.shards:
            if start < numbers.stop and start + shard.examples > numbers.start:
                first = start
                for batch in self.batches(shard):
                    inside = range(max(numbers.start, first), min(numbers.stop, first + len(batch)))
                    if inside:
                        yield columns.cut(batch, inside.start - first, inside.stop - first)
                    first += len(batch)
                    if first >= numbers.stop:
                        break
            start += shard.examples

    def changed(self, change: "Callable[[OpenedDataset], OpenedDataset]") -> "OpenedDataset":
        """The dataset changed, of a mixture each source."""
        return change(self)

    @contextmanager
    def _opened(self, shard: Shard) -> Iterator[BinaryIO]:
        """The shard's file, its md5 checked. A remote one is downloaded once, into a local file.

        ShardError, at the end, where a local file was written to since it was opened: the md5 was then that
        of other bytes.
        """
        remote = storage.is_remote(shard.path)
        if not remote and shard.checked is not None and shard.checked == storage.version(shard.path):
            with storage.open_input(shard.path) as file, unwritten(file, shard.path):
                yield file
            return
        md5 = hashlib.md5(usedforsecurity=False)
        with (
            storage.open_input(shard.path) as source,
            cast(BinaryIO, TemporaryFile()) if remote else nullcontext(source) as file,
            nullcontext() if remote else unwritten(source, shard.path),
        ):
            while (remote or shard.md5) and (block := source.read(_BLOCK_BYTES)):
                md5.update(block)
                if remote:
                    file.write(block)
            refuse_changed(shard.path, md5.hexdigest(), shard.md5)
            file.seek(0)
            yield file

    def _check_ids(self, batch: ExampleBatch, record: "RecordCheck") -> None:
        limit = self.vocabulary_size
        for column in batch.columns():
            ids = getattr(batch, column.name)
            if column.item == "id" and limit is not None and len(ids) and ids.max() >= limit:
                problem = f"id {ids.max()}, expected less than {limit}, the size of the vocabulary"
                ends = getattr(batch, column.ends or "ends")
                record.refuse_items(ids == ids.max(), ends, lambda _, problem=problem: problem)  # type: ignore[misc]


def open_dataset(
    paths: str | Sequence[str],
    *,
    unverified: bool = False,
    objective: str | None = None,
    split: Split | None = None,
) -> OpenedDataset:
    """The dataset at the paths: directories, manifests, shards of a directory with a manifest, or patterns.

    Sizes are compared with the manifest now, md5s when a shard is decoded. unverified: take files of
    any tool without a manifest, and count their examples. objective: of the examples, where neither a
    manifest nor their fields tell it; SettingsError where a manifest tells another. split: of a dataset of
    both training and test files, take these only. MissingInputError, DatasetError, ManifestError or
    ShardError name the fault.
    """
    paths = [paths] if isinstance(paths, str) else list(paths)
    name = ", ".join(paths)
    _refuse_repeated(paths)
    contents = _unverified(paths, objective, split) if unverified else _verified(paths, split)
    layouts, files, vocabulary_size, left_out = contents
    if not any(examples for _, examples, _ in files):
        raise DatasetError(f"{name}: holds no examples")
    layout = layouts[0][1]
    for path, found in layouts:
        check_same_layout(path, found, layout)
    check_objective(name, layout.objective, objective)
    return OpenedDataset(
        name=name,
        layout=layout,
        shards=_shards(files),
        vocabulary_size=vocabulary_size,
        left_out=left_out,
    )


def _refuse_repeated(paths: Sequence[str]) -> None:
    """Raise DatasetError where two of the paths mean one dataset or file: its examples would come twice."""
    if (repeated := find_repeated(paths)) is not None:
        first, second = repeated
        other = "" if first == second else f", as {second} too"
        raise DatasetError(f"{first}: is named twice{other}; name each dataset once, or give it a weight")


def _refuse_shared(files: Sequence[tuple[str, str]]) -> None:
    """Raise DatasetError for a file that two of the given paths name. files: the given path, the file's."""
    seen: dict[str, str] = {}
    reals = real_paths(file for _, file in files)
    for (path, file), real in zip(files, reals, strict=True):
        if (other := seen.setdefault(real, path)) != path:
            raise DatasetError(f"{file}: belongs to both {other} and {path}; mix different files")


def _shards(files: _Files) -> tuple[Shard, ...]:
    """The shards, each named by its path below the directory that all files share."""
    start = os.path.commonprefix([file.path for file, _, _ in files]).rfind("/") + 1  # noqa: RUF071
    return tuple(
        Shard(
            name=file.path[start:],
            path=file.path,
            examples=examples,
            md5=file.entry.md5 if file.entry else None,
            lengths_path=file.path.removesuffix(file.name) + lengths_name(file.name),
            lengths_md5=file.entry.lengths_md5 if file.entry else None,
            rows=rows,
            masked_tokens=file.entry.masked_tokens if file.entry else None,
        )
        for file, examples, rows in files
        if examples  # a bin of lengths may have none, and an empty TFRecord does not tell its layout
    )


def _verified(paths: list[str], split: Split | None) -> _Contents:
    opened = [(path, *_listed(path, split)) for path in paths]
    vocabulary = opened[0][1].settings.vocabulary
    for path, plan, *_ in opened:
        if (md5 := plan.settings.vocabulary["md5"]) != vocabulary["md5"]:
            found = f"vocabulary {md5}, expected {vocabulary['md5']}"
            raise DatasetError(f"{path}: was made with {found}, that of {paths[0]}")
    if len(paths) > 1:
        _refuse_shared([(path, shard.path) for path, _, files, _ in opened for shard, *_ in files])
    layouts = [(path, _planned_layout(path, plan)) for path, plan, *_ in opened]
    files = [item for *_, files, _ in opened for item in files]
    return (
        layouts,
        files,
        vocabulary.get("size", vocabulary["tokens"]),
        sum(left_out for *_, left_out in opened),
    )


def _planned_layout(path: str, plan: DatasetPlan) -> ShardLayout:
    """The layout of a dataset by its manifest."""
    settings = plan.settings.by_name
    objective = objective_of_file(plan.objective or DEFAULT_OBJECTIVE, path)
    others = {field.name for field in fields(ShardLayout)} - {"sizes"}
    sizes = {name: settings[name] for name in objective.batch_type.sizes() if name not in others}
    return ShardLayout(
        **{name: settings[name] for name in sorted(others) if name in settings}, sizes=tuple(sizes.items())
    )


def _listed(path: str, split: Split | None) -> tuple[DatasetPlan, _Files, int]:
    """The plan of the one dataset at the path, its shards with examples and rows, how many are left out."""
    found = find_datasets(path, exact=True)
    if found[0].path.startswith(storage.join(path, "")):
        inner = ", ".join(dataset.path for dataset in found)
        raise DatasetError(f"{path}: holds no {MANIFEST_NAME}; name one of its datasets: {inner}")
    manifest, shards = found[0].manifest, found[0].shards
    if manifest is None:
        raise DatasetError(
            f"{path}: no {MANIFEST_NAME} lists it, so its examples cannot be verified; "
            "unverified takes files as they are"
        )
    chosen = _of_split(path, shards, held_out([shard.name for shard in shards]), split)
    files = [(shard, shard.entry.examples, shard.entry.rows) for shard in chosen if shard.entry]
    return manifest.plan, files, len(shards) - len(chosen)


def _of_split(
    path: str, shards: Sequence[FoundShard], tests: Sequence[str], split: Split | None
) -> Sequence[FoundShard]:
    """The shards of a directory that are of the split, or all where it has no tests or a pattern is given."""
    if split is None or not tests or not (storage.is_directory(path) or path.endswith(".json")):
        return shards
    return [shard for shard in shards if (shard.name in tests) == (split == "test")]


def _unverified(paths: list[str], objective: str | None, split: Split | None) -> _Contents:
    found = [_shards_of_one_kind(path, split) for path in paths]
    kept = {
        real_path(file.path): file for shards, _ in found for file in shards if not _is_empty_of_deal(file)
    }
    files = {file.path: file for file in kept.values()}  # patterns may name a file twice
    with ThreadPoolExecutor(_THREADS) as pool:
        counted = list(pool.map(partial(_count, objective), sorted(files)))
    layouts = with_largest_sizes((path, layout, measured) for path, layout, _, _, measured in counted)
    left_out = sum(number for _, number in found)
    return layouts, [(files[path], examples, rows) for path, _, examples, rows, _ in counted], None, left_out


def _is_empty_of_deal(file: FoundShard) -> bool:
    """True for an empty one of the files to which a program dealt its examples in turn, as ELECTRA's."""
    return not file.bytes and re.search(r"-\d+-of-\d+$", file.name) is not None


def _shards_of_one_kind(path: str, split: Split | None) -> tuple[Sequence[FoundShard], int]:
    """The shards and how many are left out. Without a split DatasetError for a directory of both kinds.

    As NVIDIA's trainer, take "training" anywhere in a file's name for the mark of what to train on.
    """
    shards = find_shards(path)
    names = {shard.name: storage.base_name(shard.path) for shard in shards}
    tests = held_out(list(names))
    if all(any(word in name for name in names.values()) for word in ("training", "test")):
        tests = [name for name, base in names.items() if "training" not in base]
    if tests and split is None and storage.is_directory(path):
        pattern = storage.join(path, "*training*")
        raise DatasetError(f"{path}: holds training and test files; give a pattern, as {pattern}")
    chosen = _of_split(path, shards, tests, split)
    return chosen, len(shards) - len(chosen)


def _count(objective: str | None, path: str) -> tuple[str, ShardLayout, int, int | None, bool]:
    with open_reader(path, objective=objective) as reader:
        rows = reader.rows if isinstance(reader, PackReader) else None
        return path, reader.layout, len(reader), rows, reader.is_measured


def _check_number(path: str, found: int, expected: int, what: str) -> None:
    if found != expected:
        raise ShardError(f"{path}: holds {found} {what}, expected {expected}")


def check_same_layout(path: str, found: ShardLayout, expected: ShardLayout) -> None:
    """ShardError names the first size that is another one."""
    for field in fields(ShardLayout):
        ours, wanted = getattr(found, field.name), getattr(expected, field.name)
        if ours != wanted:
            raise ShardError(f"{path}: {field.name} is {ours}, expected {wanted}")
