"""NVIDIA's MLPerf shards: HDF5 whose rows have varying length, without padding and weights.

::

    input_ids            list of i2     segment_ids    list of i1
    masked_lm_positions  list of i2     masked_lm_ids  list of i2     next_sentence_labels  i1

The format does not record how long examples may be. Files that bertdata writes record it in two attributes.
Other files are read with MLPerf's limits of 512 ids and 76 masks. Values are not compressed, because HDF5
filters would only compress the references to them.
"""

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from bertdata.errors import ShardError
from bertdata.examples.groups import (
    PAIRS,
    Masks,
    check_groups,
    get_masks,
    get_pair_labels,
    get_segment_lengths,
    make_pair_batch,
)
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective, find_objective_of_file
from bertdata.io.signals import delay_signals
from bertdata.records import DEFAULT_OBJECTIVE, ExampleBatch, ShardLayout
from bertdata.shards.hdf5_datasets import read_objective, write_objective
from bertdata.shards.hdf5_file import H5PY_ERRORS, ScratchHdf5, format_on_one_line, load_h5py
from bertdata.shards.protocol import ShardReader, Sink

if TYPE_CHECKING:
    from bertdata.examples.columns import Array

LISTS = {"input_ids": "i2", "segment_ids": "i1", "masked_lm_positions": "i2", "masked_lm_ids": "i2"}
"""Item type of each field that holds a list."""
LABELS = "next_sentence_labels"
LARGEST = (1 << 15) - 1
"""The largest id that can be stored, because the integers have 16 bits with a sign."""

_SIZES = {"max_seq_length": 512, "max_predictions_per_seq": 76}
"""The sizes of examples that files store as attributes. The values are for files without these attributes."""
_BATCH = 1024
_BATCH_IDS = 512 * _BATCH


class VarlengthWriter:
    """Writer of masked pairs of segments to HDF5 with rows of varying length.

    The file's bytes do not depend on how the examples are divided among calls of ``write``.
    """

    def __init__(self, sink: Sink, layout: ShardLayout, name: str = "nvidia-mlperf shard") -> None:
        load_h5py()
        from bertdata.examples.columns import BatchRegrouper
        from bertdata.shards.hdf5_varlength import CHUNK_ROWS, create_varlength
        from bertdata.shards.rows import check_writable

        check_writable(layout, "hdf5")
        kind = find_objective(layout.objective).batch_type
        check_groups("a shard of NVIDIA's for MLPerf", PAIRS, layout.objective, kind)
        self._layout, self._name = layout, name
        self._received = 0
        self._blocks: BatchRegrouper[ExampleBatch] = BatchRegrouper(CHUNK_ROWS)
        self._scratch = ScratchHdf5(sink)
        with delay_signals():
            write_objective(self._scratch.file, layout.objective)
            for field, item in LISTS.items():
                create_varlength(self._scratch.file, field, item)
            self._scratch.file.create_dataset(
                LABELS, (0,), "i1", maxshape=(None,), chunks=(CHUNK_ROWS,), track_times=False
            )
            for name in _SIZES:
                self._scratch.file.attrs[f"bertdata.{name}"] = getattr(layout, name)

    def write(self, batch: ExampleBatch) -> None:
        from bertdata.examples.columns import convert_to_arrays
        from bertdata.shards.rows import RecordCheck, check_batch

        batch = convert_to_arrays(batch)
        record = RecordCheck(name=self._name, first=self._received)
        check_batch(batch, self._layout, record)
        _check_ids(batch, record)
        self._received += len(batch)
        for block in self._blocks.add(batch):
            self._write_block(block)

    def _write_block(self, block: Any) -> None:
        from bertdata.shards.hdf5_varlength import append_varlength

        masks = get_masks(block)
        columns = {
            "input_ids": (block.ids, block.ends),
            "segment_ids": (_make_segments(block), block.ends),
            "masked_lm_positions": (masks.places, masks.ends),
            "masked_lm_ids": (masks.originals, masks.ends),
        }
        for field, (values, ends) in columns.items():
            append_varlength(self._scratch.file, field, values.astype(LISTS[field]), ends)
        with delay_signals():
            labels = self._scratch.file[LABELS]
            start = labels.shape[0]
            labels.resize(start + len(block), axis=0)
            labels[start:] = get_pair_labels(block)
            labels.flush()
        self._scratch.check()

    def close(self) -> None:
        for block in self._blocks.rest():
            self._write_block(block)
        self._scratch.finish()


class VarlengthReader(ShardReader):
    """Reader of HDF5 files with rows of varying length.

    Any program may have written them, with any integer types.

    The file must be seekable.
    """

    layout: ShardLayout

    def __init__(self, file: IO[bytes], name: str, objective: Objective | None = None) -> None:
        """Open the file and find the layout of its examples.

        objective: the examples' objective. None takes the objective that the file names.
        """
        from bertdata.shards.hdf5_varlength import VarlengthColumn

        objective = objective or find_objective_of_file(read_objective(file) or DEFAULT_OBJECTIVE, name)
        check_groups(name, PAIRS, objective.name, objective.batch_type)
        self._name, self._kind = name, objective.batch_type
        self._datasets = _open_datasets(file, name)
        self.layout = _find_layout(self._datasets[LABELS].file, objective.name, name)
        self._lists = {field: VarlengthColumn(self._datasets[field], field, file, name) for field in LISTS}
        rows = {field: len(column) for field, column in self._lists.items()} | {
            LABELS: self._count_label_rows()
        }
        for field, found in rows.items():
            if found != rows["input_ids"]:
                raise ShardError(f"{name}: {field} has {found} rows, input_ids has {rows['input_ids']}")

    def __len__(self) -> int:
        return len(self._lists["input_ids"])

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import regroup_batches

        return regroup_batches(self._read_blocks(), size)

    def token_ids(self) -> "Iterator[tuple[Array, Array]]":
        """Yield the input ids in blocks of rows: the ids of all rows, and for each row the index after its
        last id.

        No other field is read.
        """
        for start in range(0, len(self), _BATCH):
            yield self._lists["input_ids"].read(start, min(start + _BATCH, len(self)))

    def _count_label_rows(self) -> int:
        labels = self._datasets[LABELS]
        if labels.dtype.kind not in "iu" or len(labels.shape) != 1:
            found = f"{labels.dtype} of shape {labels.shape}"
            raise ShardError(f"{self._name}: {LABELS} is {found}, expected one integer a row")
        return int(labels.shape[0])

    def _read_blocks(self) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import convert_to_item_types
        from bertdata.shards.rows import RecordCheck, check_batch

        size = max(1, min(_BATCH, _BATCH_IDS // self.layout.max_seq_length))
        for start in range(0, len(self), size):
            record = RecordCheck(name=self._name, first=start)
            block = self._read_rows(start, min(start + size, len(self)), record)
            check_batch(block, self.layout, record)
            block = convert_to_item_types(block)
            yield block

    def _read_rows(self, start: int, stop: int, record: Any) -> ExampleBatch:
        """Convert the rows ``start`` to ``stop - 1`` to examples. The values are not checked yet."""
        read = {field: column.read(start, stop) for field, column in self._lists.items()}
        (ids, ends), (segments, segment_ends) = read["input_ids"], read["segment_ids"]
        (positions, ends_of_masks), (labels, label_ends) = read["masked_lm_positions"], read["masked_lm_ids"]
        _check_equal_counts("segment ids", segment_ends, "ids", ends, record)
        _check_equal_counts("masked ids", label_ends, "masked positions", ends_of_masks, record)
        try:
            labels_of_pairs = self._datasets[LABELS][start:stop]
        except H5PY_ERRORS as error:
            raise record.error(0, f"{LABELS} of records {start} to {stop - 1} cannot be read "
                               f"({format_on_one_line(error)})") from error  # fmt: skip
        return make_pair_batch(
            self._kind,
            ids=ids,
            ends=ends,
            segment_lengths=_count_zeros(segments, ends, record),
            masks=Masks(positions, labels, ends_of_masks),
            pair_labels=labels_of_pairs,
        )


def is_varlength_file(file: IO[bytes]) -> bool:
    """Return True if a file is HDF5 and its input ids are lists of varying length."""
    h5py = load_h5py()
    from bertdata.shards.hdf5_varlength import is_varlength

    try:
        found = h5py.File(file, "r").get("input_ids")
        return isinstance(found, h5py.Dataset) and is_varlength(found)
    except H5PY_ERRORS:
        return False  # If the file is damaged, opening it as a shard reports it later.


def _open_datasets(file: IO[bytes], name: str) -> dict[str, Any]:
    """Return the datasets by field.

    Raises ShardError if a dataset is missing, or if its data is outside the file.
    """
    from bertdata.shards.hdf5_datasets import open_datasets
    from bertdata.shards.hdf5_storage import check_storage

    datasets = open_datasets(file, name, [*LISTS, LABELS])
    try:
        check_storage(datasets, file.seek(0, 2), name)
    except H5PY_ERRORS as error:
        raise ShardError(f"{name}: not a readable HDF5 file ({format_on_one_line(error)})") from error
    return datasets


def _find_layout(file: Any, objective: str, name: str) -> ShardLayout:
    from bertdata.shards.rows import check_layout

    try:
        sizes: Any = {what: int(file.attrs.get(f"bertdata.{what}", size)) for what, size in _SIZES.items()}
    except H5PY_ERRORS as error:
        raise ShardError(f"{name}: its sizes cannot be read ({format_on_one_line(error)})") from error
    layout = ShardLayout(objective=objective, **sizes)
    check_layout(layout, name, sizes)
    return layout


def _check_ids(batch: Any, record: Any) -> None:
    masks = get_masks(batch)
    for values, ends in ((batch.ids, batch.ends), (masks.originals, masks.ends)):
        record.refuse_items(
            values > LARGEST,
            ends,
            lambda item, values=values: f"id {values[item]}, expected at most {LARGEST}, which 16 bits hold",
        )


def _check_equal_counts(what: str, found: "Array", of: str, expected: "Array", record: Any) -> None:
    from bertdata.examples.columns import compute_lengths

    ours, theirs = compute_lengths(found), compute_lengths(expected)
    record.refuse(ours != theirs, lambda i: f"{ours[i]} {what}, expected {theirs[i]}, as many as {of}")


def _make_segments(block: Any) -> "Array":
    """Return for each token of the examples 0 if it is in segment A, otherwise 1."""
    import numpy as np

    from bertdata.examples.columns import compute_lengths

    sizes = compute_lengths(block.ends)
    starts = np.cumsum(sizes) - sizes
    within = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    after: Array = within >= np.repeat(np.asarray(get_segment_lengths(block), np.int64), sizes)
    return after


def _count_zeros(segments: "Array", ends: "Array", record: Any) -> "Array":
    """Return how many of each example's tokens are in segment A, from their segment numbers.

    Raises ShardError unless the segment numbers of each example are zeros, then ones.
    """
    import numpy as np

    from bertdata.examples.columns import compute_lengths

    sizes = compute_lengths(ends)
    starts = ends - sizes
    sums = np.concatenate([[0], np.cumsum(segments, dtype=np.int64)])
    first: Array = sizes - (sums[ends] - sums[starts])
    within = np.arange(len(segments)) - np.repeat(starts, sizes)
    expected = within >= np.repeat(first, sizes)
    record.refuse_items(
        segments != expected,
        ends,
        lambda item: f"segment id {segments[item]} at {within[item]}, expected zeros, then ones",
    )
    return first
