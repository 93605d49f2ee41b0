"""NVIDIA's layout of packed rows for MLPerf: HDF5 with rows of varying length.

``packed_input_len`` and ``packed_masked_lm_len`` hold the number of ids and of masks of each sequence
(example) in a row. Masked positions count from the row's start. Files that bertdata writes store their
layout's sizes as attributes. Other files are read with MLPerf's sizes. Files without the two fields named
above hold unpacked examples, and are read by ``bertdata.shards.varlength``.
"""

from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from bertdata.errors import SettingsError, ShardError
from bertdata.examples.columns import Array, compute_lengths, convert_to_item_types
from bertdata.examples.groups import Masks, get_masks, get_pair_labels, get_segment_lengths, make_pair_batch
from bertdata.examples.objective import Objective
from bertdata.io.signals import delay_signals
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.hdf5_datasets import open_datasets, read_dataset_types, write_objective
from bertdata.shards.hdf5_file import H5PY_ERRORS, ScratchHdf5, format_on_one_line
from bertdata.shards.hdf5_storage import check_storage
from bertdata.shards.hdf5_varlength import CHUNK_ROWS, VarlengthColumn, append_varlength, create_varlength
from bertdata.shards.packed.check import (
    check_largest_id,
    check_packed_layout,
    check_packs,
    check_row_sizes,
    count_items_per_row,
)
from bertdata.shards.packed.fields import check_row_fields, load_row_fields
from bertdata.shards.packed.grid import SequencePlaces
from bertdata.shards.packed.packs import (
    PackBatch,
    PackReader,
    PackRegrouper,
    convert_packs_to_arrays,
    find_rows,
    regroup_packs,
)
from bertdata.shards.protocol import Sink
from bertdata.shards.rows import RecordCheck

NAME = "nvidia"
LARGEST = 2**15 - 1
"""The largest id or position that can be stored, because the integers have 16 bits with a sign."""

_SIZES = {"max_seq_length": 512, "max_predictions_per_seq": 76, "sequences_per_row": 3}
"""The sizes of a layout that files store as attributes. The values are for files without these attributes."""
_FIELDS = load_row_fields(NAME, "hdf5")
_NAMES = {field.of: name for name, field in _FIELDS.items()}


class _VaryingRows(NamedTuple):
    """A field of rows of varying length. Row i is ``values[ends[i-1]:ends[i]]``."""

    values: Array
    ends: Array


class NvidiaWriter:
    """Writer of packed rows to HDF5, in blocks with a fixed number of rows.

    The file's bytes do not depend on how the rows are divided among calls of ``write``.
    """

    def __init__(self, sink: Sink, layout: ShardLayout) -> None:
        check_packed_layout(layout)
        if layout.max_seq_length > LARGEST:
            raise SettingsError(
                f"max_seq_length is {layout.max_seq_length}: layout nvidia has at most {LARGEST}"
            )
        self._layout = layout
        self._received = 0
        self._blocks = PackRegrouper(CHUNK_ROWS)
        self._scratch = ScratchHdf5(sink)
        with delay_signals():
            write_objective(self._scratch.file, layout.objective)
            for name, field in _FIELDS.items():
                create_varlength(self._scratch.file, name, field.type)
            for what in _SIZES:
                self._scratch.file.attrs[f"bertdata.{what}"] = getattr(layout, what)

    def write(self, packs: PackBatch) -> None:
        packs = convert_packs_to_arrays(packs)
        record = RecordCheck(name="nvidia shard", first=self._received)
        check_packs(packs, self._layout, record)
        check_largest_id(packs, LARGEST, record)
        self._received += len(packs)
        for block in self._blocks.add(packs):
            self._write_block(block)

    def _write_block(self, block: PackBatch) -> None:
        rows = _arrange_fields(block)
        for name, field in _FIELDS.items():
            values, ends = rows[field.of]
            append_varlength(self._scratch.file, name, values.astype(field.type), ends)
        self._scratch.check()

    def close(self) -> None:
        for block in self._blocks.rest():
            self._write_block(block)
        self._scratch.finish()


class NvidiaReader(PackReader):
    """Reader of packed rows from HDF5 files that any program may have written, with any integer types.

    The file must be seekable.
    """

    layout: ShardLayout

    def __init__(self, file: IO[bytes], name: str, objective: Objective) -> None:
        self._name, self._kind = name, objective.batch_type
        check_row_fields(read_dataset_types(file), _FIELDS, name)
        datasets = open_datasets(file, name, list(_FIELDS))
        try:
            check_storage(datasets, file.seek(0, 2), name)
            known = dict(datasets["input_ids"].file.attrs.items())
        except H5PY_ERRORS as error:
            raise ShardError(f"{name}: not a readable HDF5 file ({format_on_one_line(error)})") from error
        self._columns = {
            field.of: VarlengthColumn(datasets[key], key, file, name) for key, field in _FIELDS.items()
        }
        self.rows = len(self._columns["ids"])
        for of, column in self._columns.items():
            if len(column) != self.rows:
                raise ShardError(f"{name}: {_NAMES[of]} has {len(column)} rows, input_ids has {self.rows}")
        self.layout = _find_layout(known, objective.name, name)

    def __len__(self) -> int:
        return int(self._columns["pair_labels"].lengths.sum())

    def packs(self, size: int) -> Iterator[PackBatch]:
        return regroup_packs(self._read_blocks(min(size, CHUNK_ROWS)), size)

    def _read_blocks(self, size: int) -> Iterator[PackBatch]:
        for start in range(0, self.rows, size):
            yield self._read_block(start, min(start + size, self.rows))

    def _read_block(self, start: int, stop: int) -> PackBatch:
        """Return the packed rows ``start`` to ``stop - 1``."""
        rows = {of: _VaryingRows(*column.read(start, stop)) for of, column in self._columns.items()}
        record = RecordCheck(name=self._name, first=start)
        packs = _read_sequences(rows, self._kind, record)
        check_packs(packs, self.layout, record)
        _check_segments(packs, rows["segments"], record)
        return PackBatch(examples=convert_to_item_types(packs.examples), ends=packs.ends.astype(np.uint32))


def _find_layout(known: dict[str, Any], objective: str, name: str) -> ShardLayout:
    sizes: dict[str, Any] = {what: known.get(f"bertdata.{what}", size) for what, size in _SIZES.items()}
    for what, size in sizes.items():
        if not isinstance(size, (int, np.integer)):
            raise ShardError(f"{name}: bertdata.{what} is {size!r}, expected a number")
        sizes[what] = int(size)
    layout = ShardLayout(packing=NAME, objective=objective, **sizes)
    check_row_sizes(layout, name)
    return layout


def _arrange_fields(packs: PackBatch) -> dict[str, _VaryingRows]:
    """Convert checked rows to the values of each field.

    The keys say what a field stores, as ``schemas/packed.json`` lists it under ``of``.
    """
    examples: Any = packs.examples
    at = SequencePlaces.from_packs(packs)
    masks = get_masks(examples)
    counts = compute_lengths(masks.ends)
    sequences = np.asarray(packs.ends, np.int64)
    id_ends = np.cumsum(count_items_per_row(examples.ends, packs.ends))
    row_ends = np.cumsum(count_items_per_row(masks.ends, packs.ends))
    places = masks.places + np.repeat(at.starts - at.row_starts, counts)
    return {
        "ids": _VaryingRows(examples.ids, id_ends),
        "segments": _VaryingRows(_make_segments(examples), id_ends),
        "mask_places": _VaryingRows(places, row_ends),
        "originals": _VaryingRows(masks.originals, row_ends),
        "pair_labels": _VaryingRows(get_pair_labels(examples), sequences),
        "lengths": _VaryingRows(at.sizes, sequences),
        "mask_lengths": _VaryingRows(counts, sequences),
    }


def _make_segments(examples: ExampleBatch) -> Array:
    """Return for each token of the examples 0 if it is in segment A, otherwise 1."""
    sizes = compute_lengths(examples.ends)
    changes = np.asarray(examples.ends, np.int64) - sizes + get_segment_lengths(examples)
    segments: Array = np.arange(len(examples.ids)) >= np.repeat(changes, sizes)
    return segments


def _read_sequences(
    rows: dict[str, _VaryingRows], batch_type: type[ExampleBatch], record: RecordCheck
) -> PackBatch:
    """Convert the fields of packed rows to examples. The values are not checked yet.

    Raises ShardError if the fields of a row contradict each other.

    rows: the fields by key, as ``schemas/packed.json`` lists the keys under ``of``.
    """
    ids, counts = rows["ids"], rows["pair_labels"].ends
    _check_lengths(rows, "segments", "ids", record)
    _check_lengths(rows, "originals", "mask_places", record)
    sizes = _check_sums(rows, "lengths", "ids", record)
    masks = _check_sums(rows, "mask_lengths", "originals", record)
    # In the file a masked position counts from the row's start, in a batch from its sequence's start. For
    # example, if a row has sequences of 3 and 4 ids, position 5 of the row is position 2 of the sequence of 4
    # ids.
    ends = np.cumsum(sizes)
    row_starts = (ids.ends - compute_lengths(ids.ends))[find_rows(counts)]
    places = rows["mask_places"].values.astype(np.int64)
    positions = places - np.repeat(ends - sizes - row_starts, masks)
    examples = make_pair_batch(
        batch_type,
        ids=ids.values,
        ends=ends,
        segment_lengths=compute_lengths(np.concatenate([[0], np.cumsum(rows["segments"].values == 0)])[ends]),
        masks=Masks(positions, rows["originals"].values, np.cumsum(masks)),
        pair_labels=rows["pair_labels"].values,
    )
    return PackBatch(examples=examples, ends=counts)


def _check_sums(rows: dict[str, _VaryingRows], of: str, items: str, record: RecordCheck) -> Array:
    """Return the number of items of every sequence, such as its number of ids.

    Raises ShardError unless these numbers add up, in each row, to the row's number of items.

    of: key of the field that stores the numbers.
    items: key of the field that stores the items themselves.
    """
    _check_lengths(rows, of, "pair_labels", record)
    name, counts = _NAMES[of], rows["pair_labels"].ends
    sizes: Array = rows[of].values.astype(np.int64)
    record.refuse_items(sizes < 0, counts, lambda item: f"{name} holds {sizes[item]}, expected 0 or more")
    sums, due = count_items_per_row(np.cumsum(sizes), counts), compute_lengths(rows[items].ends)
    record.refuse(
        sums != due, lambda i: f"{name} adds up to {sums[i]}, expected {due[i]} as {_NAMES[items]} has"
    )
    return sizes


def _check_lengths(rows: dict[str, _VaryingRows], of: str, as_in: str, record: RecordCheck) -> None:
    found, expected = compute_lengths(rows[of].ends), compute_lengths(rows[as_in].ends)
    record.refuse(
        found != expected,
        lambda i: f"{found[i]} values of {_NAMES[of]}, expected {expected[i]} as {_NAMES[as_in]} has",
    )


def _check_segments(packs: PackBatch, found: _VaryingRows, record: RecordCheck) -> None:
    expected = _make_segments(packs.examples)
    record.refuse_items(
        found.values != expected,
        found.ends,
        lambda item: f"segment_ids {found.values[item]}, expected zeros, then ones in each sequence",
    )
