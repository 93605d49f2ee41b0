"""Opening of datasets, and reading of their examples, which are checked against the manifest.

NumPy is imported only when examples are read.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import accumulate, pairwise
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple, Protocol, cast

from bertdata.config.held_out_names import find_held_out
from bertdata.dataset.check import refuse_changed, refuse_writes
from bertdata.dataset.discover import FoundShard, check_objective, find_datasets, find_shards
from bertdata.dataset.lengths import ITEM_BYTES, check_and_parse_lengths
from bertdata.dataset.manifest import DatasetPlan, make_lengths_name
from bertdata.errors import DatasetError, ShardError
from bertdata.examples.objectives import find_objective, find_objective_of_file
from bertdata.io import storage
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.io.real_paths import find_repeated, resolve_path, resolve_paths
from bertdata.records import DEFAULT_OBJECTIVE, Buffer, ExampleBatch, ShardLayout
from bertdata.shards.containers import make_reader, open_reader
from bertdata.shards.measured_sizes import share_largest_sizes
from bertdata.shards.packed.packs import PackBatch, PackReader
from bertdata.shards.protocol import ShardReader

if TYPE_CHECKING:
    from bertdata.shards.rows import RecordCheck

# _Files lists each file with its number of examples and its number of packed rows (None if it is not packed).
# _Contents has the layouts with the paths that they come from, the files, the size of the vocabulary (None if
# unknown), and the number of files that were left out.
_Files = list[tuple[FoundShard, int, int | None]]
_Contents = tuple[list[tuple[str, ShardLayout]], _Files, int | None, int]

Split = Literal["training", "test"]
"""Choice of the files to read of a dataset that has both training files and held-out test files."""

_THREADS = 8  # number of threads that open files; they mostly wait for the file system
_ROWS = 4096
_BLOCK_BYTES = 1 << 20


class ShardFile(NamedTuple):
    """A file of a shard, with its examples or their lengths. It may be remote.

    bytes: size of the file. None if it is not known.
    md5: md5 in the manifest. None if no manifest lists the file.
    """

    path: str
    bytes: int | None
    md5: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """A file of examples.

    name: path relative to the directory that contains all files of the dataset.
    bytes: size of the file. None if it is not known.
    rows: number of packed rows. None if each row is a single example.
    masked_tokens: number of masked positions. None if no manifest records it.
    checked: version of the file (``storage.read_version``) whose md5 was already checked. None if it was not.
    """

    name: str
    path: str
    examples: int
    bytes: int | None = None
    md5: str | None = None  # None if no manifest lists the file
    lengths_path: str = ""
    lengths_md5: str | None = None  # None if there is no lengths file
    rows: int | None = None
    masked_tokens: int | None = None
    checked: tuple[int, ...] | None = None

    @property
    def file(self) -> ShardFile:
        """The file with the examples."""
        return ShardFile(self.path, self.bytes, self.md5)

    @property
    def lengths_file(self) -> ShardFile | None:
        """The file with the lengths of the examples. None if there is no such file."""
        if self.lengths_md5 is None:
            return None
        return ShardFile(self.lengths_path, ITEM_BYTES * self.examples, self.lengths_md5)


class FileCopies(Protocol):
    """Interface of an object that keeps copies of remote files on this machine, such as a cache."""

    def open_copy(self, file: ShardFile) -> AbstractContextManager[BinaryIO | None]:
        """Return a context manager that opens the copy of a remote file. The md5 of the copy was checked.

        It gives None if there is no copy and none can be made. The file is then read from its path.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceShare:
    """A source of a mixture, that is, one of several datasets that are read as one.

    name: path of the source, as the user wrote it.
    weight: integer weight of the source.
    shards: number of the source's shards.
    """

    name: str
    weight: int
    shards: int


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedDataset:
    """The shards of a dataset and their common layout. Examples are decoded only when they are read.

    vocabulary_size: number of tokens in the vocabulary. Every id must be below it. None if it is unknown. Ids
        are then not checked.
    left_out: number of files that do not belong to the requested split (training or test files).
    sources: the datasets of a mixture, in the order of their shards. Empty if this is not a mixture.
    never_masked: one byte per token id, which is 1 if the id is never masked. None unless masks are drawn
        while the dataset is read.
    copies: copies of remote files on this machine. None: each reading of a remote file downloads it.
    batch_rows: largest number of examples that ``batches`` yields at a time, and of packed rows that
        ``packs`` yields at a time.
    """

    name: str
    layout: ShardLayout
    shards: tuple[Shard, ...]
    vocabulary_size: int | None
    left_out: int = 0
    sources: tuple[SourceShare, ...] = ()
    never_masked: bytes | None = None
    copies: FileCopies | None = field(default=None, compare=False, repr=False)
    batch_rows: int = field(default=_ROWS, compare=False, repr=False)

    @property
    def examples(self) -> int:
        return sum(shard.examples for shard in self.shards)

    @property
    def file_rows(self) -> list[tuple[str, int]]:
        """Name and number of rows of each shard. In a shard that is not packed, each example is a row."""
        return [(one.name, one.examples if one.rows is None else one.rows) for one in self.shards]

    @property
    def examples_before(self) -> tuple[int, ...]:
        """Number of examples in the shards before each shard.

        In a mixture, only shards of the same source are counted.
        """
        ends = [*accumulate(source.shards for source in self.sources)] or [len(self.shards)]
        sizes = [[shard.examples for shard in self.shards[start:end]] for start, end in pairwise([0, *ends])]
        return tuple(number for source in sizes for number in accumulate(source[:-1], initial=0))

    @property
    def digest(self) -> str:
        """Digest of the names, sizes and md5s of all shards, and of the weights of a mixture.

        A copy of the dataset in another directory has the same digest.
        """
        found = [f"{shard.name} {shard.examples} {shard.md5}\n" for shard in self.shards]
        found += [f"{source.weight} parts of {source.shards}\n" for source in self.sources]
        return hashlib.blake2b("".join(found).encode(), digest_size=16).hexdigest()

    @property
    def has_lengths(self) -> bool:
        """True if the lengths of all examples are available without decoding the examples."""
        return all(shard.lengths_md5 is not None for shard in self.shards if shard.examples)

    def lengths(self, shard: Shard) -> Buffer:
        """Return the number of tokens of each example in the shard, as 16-bit integers.

        Raises ShardError if the lengths file does not match the manifest.
        """
        file = shard.lengths_file
        assert file is not None, f"{shard.path}: has no lengths"
        with self._open_copy(file) as copy:
            data = storage.read_bytes(file.path) if copy is None else copy.read()
        return check_and_parse_lengths(data, file.path, shard.examples, str(file.md5))

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """Yield the shard's examples in batches of NumPy columns.

        Raises ShardError if the file does not match the manifest or the layout.
        """
        found = 0
        with self.open_shard(shard) as reader:
            for batch in reader.batches(self.batch_rows):
                first, found = found, found + len(batch)
                # The same name, so that the reader's larger batch is not kept until the next one is wanted.
                batch = self.convert_batch(batch, shard, first)
                yield batch
        _check_number(shard.path, found, shard.examples, "examples")

    @property
    def stored(self) -> "OpenedDataset":
        """The dataset with its examples as they are stored in the files.

        It differs from this object if this object changes examples while they are read, for example by
        drawing masks.
        """
        return self

    def alter_batch(self, batch: ExampleBatch, shard: Shard, first: int) -> ExampleBatch:
        """Return stored examples in the form in which this dataset returns them.

        A subclass may draw new masks here.

        This class returns the examples unchanged.

        batch: stored examples of the shard.
        first: number of the batch's first example in the shard.
        """
        return batch

    @property
    def row_source(self) -> "OpenedDataset | None":
        """The dataset from whose files single examples can be decoded, without the others of the file.

        ``alter_rows`` makes examples of this dataset from the decoded ones. None if the examples of this
        dataset must be read file by file.
        """
        # a subclass with other ``batches`` changes the examples, or does not read them from files
        return self if type(self).batches is OpenedDataset.batches else None

    def alter_rows(self, batch: ExampleBatch) -> ExampleBatch:
        """Return examples of ``row_source`` in the form in which this dataset returns them."""
        return batch

    def at_epoch(self, epoch: int) -> "OpenedDataset":
        """Return the dataset as it is in a certain epoch.

        Epochs differ only if masks are drawn while the dataset is read.
        """
        return self

    def with_batches_of(self, rows: int) -> "OpenedDataset":
        """Return the dataset with batches of another size. The examples and their order are the same.

        A subclass that does not read its examples from files may ignore the size.

        rows: largest number of examples, or of packed rows, of a batch.
        """
        return replace(self, batch_rows=rows)

    def convert_batch(self, batch: ExampleBatch, shard: Shard, first: int) -> ExampleBatch:
        """Convert the columns of a batch to NumPy arrays and check its token ids.

        first: number of the batch's first example in the shard.
        """
        from bertdata.examples import columns
        from bertdata.shards.rows import RecordCheck

        batch = columns.convert_to_arrays(batch)
        self._check_ids(batch, RecordCheck(name=shard.path, first=first))
        return columns.shrink_ids(batch)

    def packs(self, shard: Shard) -> Iterator[PackBatch]:
        """Yield the rows of a packed shard in order, in batches.

        Raises ShardError if the file does not match the manifest or the layout.
        """
        examples = rows = 0
        with self.open_shard(shard) as reader:
            if not isinstance(reader, PackReader):
                raise ShardError(f"{shard.path}: holds no packed rows")
            for packs in reader.packs(self.batch_rows):
                first, examples, rows = examples, examples + len(packs.examples), rows + len(packs)
                packs = replace(packs, examples=self.convert_batch(packs.examples, shard, first))
                yield packs
        _check_number(shard.path, examples, shard.examples, "examples")
        _check_number(shard.path, rows, shard.rows or 0, "packed rows")

    @contextmanager
    def open_shard(self, shard: Shard) -> Iterator[ShardReader]:
        """Open the shard, check its md5 and layout, and return its reader."""
        # Load a user's own objective here, because the dataset may have been opened in another process.
        find_objective(self.layout.objective)
        with self._open_file(shard) as file:
            reader = make_reader(
                file,
                shard.path,
                objective=self.layout.objective,
                padding_id=self.layout.padding_id,
                layout=self.layout,
            )
            # If a file format does not store the sizes in the layout, they are measured in each file. The
            # sizes for the dataset are the largest of any file, so they may be larger than those of this
            # file.
            if reader.is_measured:
                reader.layout = self.layout
            check_same_layout(shard.path, reader.layout, self.layout)
            yield reader

    def read_range(self, numbers: range) -> Iterator[ExampleBatch]:
        """Yield the examples with these numbers. Examples are numbered over all shards in order."""
        from bertdata.examples import columns

        start = 0
        for shard in self.shards:
            if start < numbers.stop and start + shard.examples > numbers.start:
                first = start
                for batch in self.batches(shard):
                    inside = range(max(numbers.start, first), min(numbers.stop, first + len(batch)))
                    if inside:
                        yield columns.slice_batch(batch, inside.start - first, inside.stop - first)
                    first += len(batch)
                    if first >= numbers.stop:
                        break
            start += shard.examples

    def change_sources(self, change: "Callable[[OpenedDataset], OpenedDataset]") -> "OpenedDataset":
        """Apply a function to the dataset, or in a mixture to each of its sources. Return the new dataset."""
        return change(self)

    @contextmanager
    def _open_file(self, shard: Shard) -> Iterator[BinaryIO]:
        """Return a context manager that checks the md5 of a shard's file and opens the file.

        A remote file is read from its copy on this machine if there is one. Otherwise it is downloaded to a
        temporary file first. At the end of the block, ShardError is raised if a local file was written to
        while it was open, because other bytes may then have been read than were checked.
        """
        with self._open_copy(shard.file) as copy:
            if copy is not None:
                with refuse_writes(copy, shard.path):
                    yield copy
                return
        with self._open_original(shard) as file:
            yield file

    def _open_copy(self, file: ShardFile) -> AbstractContextManager[BinaryIO | None]:
        """Return a context manager that opens the copy of a file on this machine, or gives None."""
        if self.copies is None or not storage.is_remote(file.path):
            return nullcontext()
        return self.copies.open_copy(file)

    @contextmanager
    def _open_original(self, shard: Shard) -> Iterator[BinaryIO]:
        """Return a context manager that does what ``_open_file`` does for a file without a copy."""
        remote = storage.is_remote(shard.path)
        # The md5 of this version of the file was checked before, so the file need not be read for its md5
        # again.
        if not remote and shard.checked is not None and shard.checked == storage.read_version(shard.path):
            with storage.open_input(shard.path) as file, refuse_writes(file, shard.path):
                yield file
            return
        # Read the file once for its md5. A remote file is copied on the way, so that it is transferred only
        # once. It is closed then, because its buffers take many megabytes.
        md5 = hashlib.md5(usedforsecurity=False)
        with ExitStack() as stack:
            source = stack.enter_context(storage.open_input(shard.path))
            file = source
            if remote:
                file = cast(BinaryIO, stack.enter_context(TemporaryFile()))
            else:
                stack.enter_context(refuse_writes(source, shard.path))
            while (remote or shard.md5) and (block := source.read(_BLOCK_BYTES)):
                md5.update(block)
                if remote:
                    file.write(block)
            refuse_changed(shard.path, md5.hexdigest(), shard.md5)
            if remote:
                source.close()
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
    """Open a dataset. The paths may be directories, manifests, shards beside a manifest, or glob patterns.

    File sizes are compared with the manifest at once. The md5 of a shard is compared when the shard is read.

    unverified: True also accepts files of any program that have no manifest. Their examples are counted at
        once.
    objective: objective of the examples. It is needed only if neither a manifest nor the files' fields show
        it.
    split: which files to take of a dataset that has both training and test files.

    Raises MissingInputError, DatasetError, ManifestError or ShardError if the files are missing or do not fit
    together. Raises SettingsError if the manifest names another objective.
    """
    paths = [paths] if isinstance(paths, str) else list(paths)
    name = ", ".join(paths)
    _refuse_repeated(paths)
    contents = _open_unverified(paths, objective, split) if unverified else _open_verified(paths, split)
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
        shards=_name_shards(files),
        vocabulary_size=vocabulary_size,
        left_out=left_out,
    )


def _refuse_repeated(paths: Sequence[str]) -> None:
    """Raise DatasetError if two paths mean the same dataset or file, because its examples would be read
    twice.
    """
    if (repeated := find_repeated(paths)) is not None:
        first, second = repeated
        other = "" if first == second else f", as {second} too"
        raise DatasetError(f"{first}: is named twice{other}; name each dataset once, or give it a weight")


def _refuse_shared(files: Sequence[tuple[str, str]]) -> None:
    """Raise DatasetError if two of the user's paths contain the same file.

    files: pairs of the user's path and a file that it contains.
    """
    seen: dict[str, str] = {}
    reals = resolve_paths(file for _, file in files)
    for (path, file), real in zip(files, reals, strict=True):
        if (other := seen.setdefault(real, path)) != path:
            raise DatasetError(f"{file}: belongs to both {other} and {path}; mix different files")


def _name_shards(files: _Files) -> tuple[Shard, ...]:
    """Return the shards. Each is named by its path relative to the directory that contains all files."""
    start = os.path.commonprefix([file.path for file, _, _ in files]).rfind("/") + 1  # noqa: RUF071
    return tuple(
        Shard(
            name=file.path[start:],
            path=file.path,
            examples=examples,
            bytes=file.bytes,
            md5=file.entry.md5 if file.entry else None,
            lengths_path=file.path.removesuffix(file.name) + make_lengths_name(file.name),
            lengths_md5=file.entry.lengths_md5 if file.entry else None,
            rows=rows,
            masked_tokens=file.entry.masked_tokens if file.entry else None,
        )
        for file, examples, rows in files
        if examples  # a shard may be empty, and an empty TFRecord file shows no layout
    )


def _open_verified(paths: list[str], split: Split | None) -> _Contents:
    """Open datasets that have manifests. Raises DatasetError if their vocabularies differ."""
    opened = [(path, *_find_listed(path, split)) for path in paths]
    vocabulary = opened[0][1].settings.vocabulary
    for path, plan, *_ in opened:
        if (md5 := plan.settings.vocabulary["md5"]) != vocabulary["md5"]:
            raise DatasetError(
                f"{path}: was made with vocabulary {md5}, expected {vocabulary['md5']}, that of {paths[0]}"
            )
    if len(paths) > 1:
        _refuse_shared([(path, shard.path) for path, _, files, _ in opened for shard, *_ in files])
    layouts = [(path, _make_layout(path, plan)) for path, plan, *_ in opened]
    files = [item for *_, files, _ in opened for item in files]
    return (
        layouts,
        files,
        vocabulary.get("size", vocabulary["tokens"]),
        sum(left_out for *_, left_out in opened),
    )


def _make_layout(path: str, plan: DatasetPlan) -> ShardLayout:
    """Return the layout that the dataset's manifest describes."""
    settings = plan.settings.by_name
    objective = find_objective_of_file(plan.objective or DEFAULT_OBJECTIVE, path)
    others = {field.name for field in fields(ShardLayout)} - {"sizes"}
    sizes = {name: settings[name] for name in objective.batch_type.sizes() if name not in others}
    return ShardLayout(
        **{name: settings[name] for name in sorted(others) if name in settings}, sizes=tuple(sizes.items())
    )


def _find_listed(path: str, split: Split | None) -> tuple[DatasetPlan, _Files, int]:
    """Find the only dataset at a path.

    Return its plan, its files, and how many files do not belong to the split.
    """
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
    chosen = _select_split(path, shards, find_held_out([shard.name for shard in shards]), split)
    files = [(shard, shard.entry.examples, shard.entry.rows) for shard in chosen if shard.entry]
    return manifest.plan, files, len(shards) - len(chosen)


def _select_split(
    path: str, shards: Sequence[FoundShard], tests: Sequence[str], split: Split | None
) -> Sequence[FoundShard]:
    """Return the shards that belong to the split (training or test files).

    All shards are returned if there are no test shards, or if the path is a pattern of files.
    """
    if split is None or not tests or not (storage.is_directory(path) or path.endswith(".json")):
        return shards
    return [shard for shard in shards if (shard.name in tests) == (split == "test")]


def _open_unverified(paths: list[str], objective: str | None, split: Split | None) -> _Contents:
    """Open files that have no manifest. Each file is opened to count its examples."""
    found = [_find_split_shards(path, split) for path in paths]
    kept = {
        resolve_path(file.path): file
        for shards, _ in found
        for file in shards
        if not _is_empty_dealt_file(file)
    }
    files = {file.path: file for file in kept.values()}  # two patterns may match the same file
    with ThreadPoolExecutor(_THREADS) as pool:
        counted = list(pool.map(partial(_count_examples, objective), sorted(files)))
    layouts = share_largest_sizes((path, layout, measured) for path, layout, _, _, measured in counted)
    left_out = sum(number for _, number in found)
    return layouts, [(files[path], examples, rows) for path, _, examples, rows, _ in counted], None, left_out


def _is_empty_dealt_file(file: FoundShard) -> bool:
    """Return True if a file may be empty because its program writes a fixed number of files.

    ELECTRA's program does so. If there are few examples, some of its files are empty.
    """
    return not file.bytes and re.search(r"-\d+-of-\d+$", file.name) is not None


def _find_split_shards(path: str, split: Split | None) -> tuple[Sequence[FoundShard], int]:
    """Return the shards that belong to the split (training or test files), and the number of the other
    shards.

    As in NVIDIA's trainer, "training" anywhere in the name of a file marks a training file.

    Raises DatasetError if a directory has training and test files and the split is None.
    """
    shards = find_shards(path)
    names = {shard.name: storage.get_base_name(shard.path) for shard in shards}
    tests = find_held_out(list(names))
    if all(any(word in name for name in names.values()) for word in ("training", "test")):
        tests = [name for name, base in names.items() if "training" not in base]
    if tests and split is None and storage.is_directory(path):
        pattern = storage.join(path, "*training*")
        raise DatasetError(f"{path}: holds training and test files; give a pattern, as {pattern}")
    chosen = _select_split(path, shards, tests, split)
    return chosen, len(shards) - len(chosen)


def _count_examples(objective: str | None, path: str) -> tuple[str, ShardLayout, int, int | None, bool]:
    """Open a shard and count its examples.

    Returns its path, layout, number of examples, number of packed rows (None if it is not packed), and True
    if sizes in the layout were measured because the file does not store them.
    """
    with open_reader(path, objective=objective) as reader:
        rows = reader.rows if isinstance(reader, PackReader) else None
        return path, reader.layout, len(reader), rows, reader.is_measured


def _check_number(path: str, found: int, expected: int, what: str) -> None:
    if found != expected:
        raise ShardError(f"{path}: holds {found} {what}, expected {expected}")


def check_same_layout(path: str, found: ShardLayout, expected: ShardLayout) -> None:
    """Raise ShardError, which names the first difference, if two layouts differ."""
    for item in fields(ShardLayout):
        ours, wanted = getattr(found, item.name), getattr(expected, item.name)
        if ours != wanted:
            raise ShardError(f"{path}: {item.name} is {ours}, expected {wanted}")
