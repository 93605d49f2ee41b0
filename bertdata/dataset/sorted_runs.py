"""External sort: write examples to run files, sorted by group and key, then read one group after another.

Only one run (the examples of a file) or one group is in memory at a time, however many examples there are. A
run file holds a piece for each group, possibly empty, followed by an index: the offset where each piece
starts and where the last one ends (uint64). A piece holds its number of examples and the width of an id in
bytes (uint32 each), the keys of the examples (uint64), then the batch's columns, columns of ends first. All
numbers are little-endian.

This module imports NumPy.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.columns import Array, join_batches, slice_batch, take_examples
from bertdata.io import storage
from bertdata.io.scratch_files import ScratchEntry, ScratchFiles
from bertdata.records import Column, ExampleBatch
from bertdata.shards.protocol import Sink

_TYPES = {"uint8": "<u1", "uint16": "<u2", "uint32": "<u4"}

RUN_TOKENS = 1 << 23
"""Number of tokens in a run, which is sorted in memory. A token takes about three bytes, and several copies
of the run are in memory while it is sorted.
"""

Placed = tuple[ExampleBatch, Array, Array]
"""A batch of examples, each example's group number, and its sort key within the group (uint64)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedExamples:
    """The run files that hold the examples of consecutive shards.

    name: the shards in words, for messages.
    is_kept: True if an earlier run of the program wrote the files.
    """

    files: tuple[str, ...]
    examples: int
    name: str
    is_kept: bool = False

    @classmethod
    def of(cls, source: OpenedDataset, files: tuple[str, ...], is_kept: bool) -> "SortedExamples":
        """Describe run files that hold all examples of a source."""
        first, last = source.shards[0].name, source.shards[-1].name
        name = first if first == last else f"{first} to {last}"
        return cls(files=files, examples=source.examples, name=name, is_kept=is_kept)

    @property
    def line(self) -> str:
        """The line that reports these shards as sorted."""
        return f"kept {self.name}, sorted before" if self.is_kept else f"sorted {self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class SortedGroup:
    """The examples of a group, with the sort key of each."""

    keys: Array
    examples: ExampleBatch


def write_runs(files: ScratchFiles, groups: int, placed: Iterable[Placed]) -> tuple[str, ...]:
    """Sort the examples into run files and note that the files are complete. Return their paths.

    groups: number of groups.
    placed: batches of examples with their groups and sort keys.
    """
    paths: list[str] = []
    entries: list[ScratchEntry] = []
    held: list[Placed] = []

    # Batches are collected until they hold RUN_TOKENS tokens, then sorted and written as a run.
    # ``_write_run`` empties the list, so that the batches and their sorted copy are not in memory longer than
    # needed.
    def write() -> None:
        with files.open(f"-{len(paths):05}") as sink:
            _write_run(held, groups, sink)
        paths.append(sink.path)
        entries.append(sink.entry)

    tokens = 0
    for found in placed:
        held.append(found)
        tokens += len(found[0].ids)
        if tokens >= RUN_TOKENS:
            write()
            tokens = 0
    if held:
        write()
    files.note(entries)
    return tuple(paths)


def _write_run(held: list[Placed], groups: int, sink: Sink) -> None:
    """Write the collected batches to a run file, sorted by group, and empty the list ``held``."""
    batch = join_batches([examples for examples, _, _ in held])
    which = np.concatenate([found for _, found, _ in held])
    keys = np.concatenate([found for _, _, found in held])
    held.clear()
    order = np.argsort(which, kind="stable")
    examples, keys = take_examples(batch, order), keys[order]
    del batch
    starts, first = [0], 0
    # groups 3, sorted groups of the examples [0, 0, 2] -> pieces of 2, 0 and 1 examples, four offsets
    for count in np.bincount(which, minlength=groups).tolist():
        size = 0
        if count:
            piece = slice_batch(examples, first, first + count)
            for column in _list_columns(keys[first : first + count], piece):
                size += column.nbytes
                sink.write(column.view(np.uint8).data)
        starts.append(starts[-1] + size)
        first += count
    sink.write(np.array(starts, "<u8").tobytes())


def _list_columns(keys: Array, examples: ExampleBatch) -> list[Array]:
    """Return the arrays of a piece in the order in which the file stores them."""
    width = next(getattr(examples, item.name).itemsize for item in examples.columns() if item.item == "id")
    values = [getattr(examples, item.name) for item in _sort_columns(type(examples))]
    types = [_find_item_type(item, width) for item in _sort_columns(type(examples))]
    head = np.array([len(keys), width], "<u4")
    found = [value.astype(kind, copy=False) for value, kind in zip(values, types, strict=True)]
    return [head, keys.astype("<u8", copy=False), *map(np.ascontiguousarray, found)]


def _sort_columns(batch_type: type[ExampleBatch]) -> list[Column]:
    """Return the columns in file order: end offsets first, because they give the sizes of the others."""
    ends = batch_type.ragged()
    return sorted(batch_type.columns(), key=lambda item: item.name not in ends)


def _find_item_type(item: Column, id_bytes: int) -> str:
    return f"<u{id_bytes}" if item.item == "id" else _TYPES[item.item]


def read_group(paths: Iterable[str], group: int, groups: int, batch_type: type[ExampleBatch]) -> SortedGroup:
    """Return the examples of a group from all run files, in the order of their keys."""
    found = (_read_piece(path, group, groups, batch_type) for path in paths)
    piece = _join_pieces([one for one in found if one is not None])
    order = np.argsort(piece.keys)
    return SortedGroup(piece.keys[order], take_examples(piece.examples, order))


def _read_piece(path: str, group: int, groups: int, batch_type: type[ExampleBatch]) -> SortedGroup | None:
    """Return the examples of a group in a run file, or None if there are none."""
    with storage.open_input(path) as file:
        # The last groups + 1 numbers are the offsets. Two neighbours are the start and end of the piece.
        file.seek(-8 * (groups + 1 - group), 2)
        start, stop = np.frombuffer(file.read(16), "<u8").tolist()
        return _parse_piece(_read_at(file, start, stop - start), batch_type) if stop > start else None


def _read_at(file: BinaryIO, start: int, size: int) -> bytes:
    file.seek(start)
    return file.read(size)


def _parse_piece(data: bytes, batch_type: type[ExampleBatch]) -> SortedGroup:
    count, width = np.frombuffer(data, "<u4", 2).tolist()
    keys, place = np.frombuffer(data, "<u8", count, 8), 8 + 8 * count
    values: dict[str, Any] = {}
    for item in _sort_columns(batch_type):
        items = count if item.ends is None else int(values[item.ends][-1])
        column = np.frombuffer(data, _find_item_type(item, width), items, place)
        place += column.nbytes
        values[item.name] = column
    assert place == len(data), (place, len(data))
    return SortedGroup(keys, batch_type(**values))


def _join_pieces(pieces: Sequence[SortedGroup]) -> SortedGroup:
    """Concatenate the examples of one group from several run files."""
    return SortedGroup(
        np.concatenate([piece.keys for piece in pieces]), join_batches([piece.examples for piece in pieces])
    )
