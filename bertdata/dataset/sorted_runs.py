"""External sort of examples: they are written to sorted files (runs), from which one group after another is
read.

Each example belongs to a group and has a sort key. Only one run or one group is in memory at a time, however
many examples there are. A run file has a piece for each group, which may be empty. An index follows with the
offset at which each piece begins, then the offset at which the last piece ends (uint64). A piece consists of
its number of examples and the size of an id in bytes (uint32 each), the sort keys of the examples (uint64),
and the columns of the batch, of which columns of end offsets come first. All numbers are little-endian.

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
"""Number of tokens in a run, which is sorted in memory.

A token takes about three bytes, and several copies of the run are in memory while it is sorted.
"""

GroupedBatch = tuple[ExampleBatch, Array, Array]
"""A batch of examples, the group number of each example, and its sort key within the group (uint64)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedExamples:
    """The run files (sorted files) with the examples of consecutive shards.

    name: text that names the shards, for messages.
    files: paths of the run files.
    is_kept: True if an earlier run of the program wrote the files.
    """

    files: tuple[str, ...]
    examples: int
    name: str
    is_kept: bool = False

    @classmethod
    def describe(cls, source: OpenedDataset, files: tuple[str, ...], is_kept: bool) -> "SortedExamples":
        """Return the description of run files that contain all examples of a source."""
        first, last = source.shards[0].name, source.shards[-1].name
        name = first if first == last else f"{first} to {last}"
        return cls(files=files, examples=source.examples, name=name, is_kept=is_kept)

    @property
    def line(self) -> str:
        """Line of text that reports the shards as sorted."""
        return f"kept {self.name}, sorted before" if self.is_kept else f"sorted {self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class SortedGroup:
    """The examples of a group, with the sort key of each."""

    keys: Array
    examples: ExampleBatch


def write_runs(files: ScratchFiles, groups: int, placed: Iterable[GroupedBatch]) -> tuple[str, ...]:
    """Sort examples into run files and record the files as complete. Return the paths of the files.

    groups: number of groups.
    placed: batches of examples, with the group and the sort key of each example.
    """
    paths: list[str] = []
    entries: list[ScratchEntry] = []
    held: list[GroupedBatch] = []

    # Batches are collected until they contain RUN_TOKENS tokens. They are then sorted and written as a run.
    # ``_write_run`` empties the list, so that the batches do not stay in memory together with their sorted
    # copy.
    def write_next_run() -> None:
        with files.open(f"-{len(paths):05}") as sink:
            _write_run(held, groups, sink)
        paths.append(sink.path)
        entries.append(sink.entry)

    tokens = 0
    for found in placed:
        held.append(found)
        tokens += len(found[0].ids)
        if tokens >= RUN_TOKENS:
            write_next_run()
            tokens = 0
    if held:
        write_next_run()
    files.note(entries)
    return tuple(paths)


def _write_run(held: list[GroupedBatch], groups: int, sink: Sink) -> None:
    """Sort the collected batches by group and key, write them to a run file, and empty the list ``held``."""
    batch = join_batches([examples for examples, _, _ in held])
    which = np.concatenate([found for _, found, _ in held])
    keys = np.concatenate([found for _, _, found in held])
    held.clear()
    order = np.argsort(which, kind="stable")
    examples, keys = take_examples(batch, order), keys[order]
    del batch
    starts, first = [0], 0
    # For example, with 3 groups and examples of the groups [0, 0, 2] there are pieces of 2, 0 and 1 examples,
    # and four offsets.
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
    """Return the arrays of a piece, in the order in which the file stores them."""
    width = next(getattr(examples, item.name).itemsize for item in examples.columns() if item.item == "id")
    values = [getattr(examples, item.name) for item in _sort_columns(type(examples))]
    types = [_find_item_type(item, width) for item in _sort_columns(type(examples))]
    head = np.array([len(keys), width], "<u4")
    found = [value.astype(kind, copy=False) for value, kind in zip(values, types, strict=True)]
    return [head, keys.astype("<u8", copy=False), *map(np.ascontiguousarray, found)]


def _sort_columns(batch_type: type[ExampleBatch]) -> list[Column]:
    """Return the columns in the order in which the file stores them.

    Columns of end offsets come first, because a reader needs them for the sizes of the other columns.
    """
    ends = batch_type.ragged()
    return sorted(batch_type.columns(), key=lambda item: item.name not in ends)


def _find_item_type(item: Column, id_bytes: int) -> str:
    return f"<u{id_bytes}" if item.item == "id" else _TYPES[item.item]


def read_group(paths: Iterable[str], group: int, groups: int, batch_type: type[ExampleBatch]) -> SortedGroup:
    """Read the examples of one group from all run files. Return them in the order of their sort keys.

    group: number of the group.
    groups: number of all groups.
    """
    found = (_read_piece(path, group, groups, batch_type) for path in paths)
    piece = _join_pieces([one for one in found if one is not None])
    order = np.argsort(piece.keys)
    return SortedGroup(piece.keys[order], take_examples(piece.examples, order))


def _read_piece(path: str, group: int, groups: int, batch_type: type[ExampleBatch]) -> SortedGroup | None:
    """Read the examples of one group from a run file. Returns None if the file has none."""
    with storage.open_input(path) as file:
        # The file ends with groups + 1 offsets. Two neighbouring offsets are the start and the end of a
        # piece.
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
    """Return the examples of several pieces of one group as a single piece."""
    return SortedGroup(
        np.concatenate([piece.keys for piece in pieces]), join_batches([piece.examples for piece in pieces])
    )
