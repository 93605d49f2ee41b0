"""MDS shards of unmasked ids: a writer, and a reader of every shard that has a column of ids.

This module imports NumPy.
"""

from collections.abc import Hashable, Iterator, Sequence
from io import BytesIO
from itertools import count, islice
from typing import IO, Any, BinaryIO

import numpy as np

from bertdata.errors import ShardError
from bertdata.examples.columns import (
    Array,
    compute_lengths,
    convert_to_arrays,
    convert_to_item_types,
    regroup_batches,
)
from bertdata.examples.groups import MASKS, count_masks, find_mask_names, has_group
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.mds.compression import find_compression
from bertdata.shards.mds.directory import MAX_UNLISTED_BYTES, find_file, find_listed_entry, read_checked_shard
from bertdata.shards.mds.fit import UNMASKED, check_has_only_ids
from bertdata.shards.mds.ids import IdDecoder, encode_ids, make_id_form
from bertdata.shards.mds.index import LARGEST_SHARD, IndexEntry, ShardForm, parse_index
from bertdata.shards.mds.names import INDEX_NAME, find_compression_ending, strip_ending
from bertdata.shards.mds.shard_file import compute_head_size, encode_head, read_head
from bertdata.shards.protocol import ShardReader, Sink
from bertdata.shards.rows import RecordCheck, check_batch

_MEASURED = 4096
_MASK_SHARE = 0.15


class MdsWriter:
    """Writer of a shard of unmasked examples. It holds the whole shard in memory until ``close``.

    names: name of each example, in order. None names examples after the shard, such as ``part-0-17``.
    form: columns, compression and hashes of the shard. None means the columns that ``create`` uses. Their ids
        have 16 bits if those of the first batch do (a vocabulary of at most 65,536 ids), otherwise 32 bits.
    """

    def __init__(
        self,
        sink: Sink,
        layout: ShardLayout,
        name: str,
        *,
        names: Iterator[str] | None = None,
        form: ShardForm | None = None,
    ) -> None:
        check_has_only_ids(find_objective(layout.objective).batch_type, layout.objective, name)
        self._sink, self._layout, self._name, self._form = sink, layout, name, form
        stem = strip_ending(storage.get_base_name(name))
        self._names = names or (f"{stem}-{number}" for number in count())
        self._data: list[bytes] = []
        self._sizes: list[int] = []

    def write(self, batch: ExampleBatch) -> None:
        batch = convert_to_arrays(batch)
        record = RecordCheck(name=self._name, first=len(self._sizes))
        check_batch(batch, self._layout, record)
        if count_masks(batch):
            masked = compute_lengths(getattr(batch, find_mask_names(type(batch)).ends)) > 0
            record.refuse(masked, lambda _: f"has masks, expected ids alone; {UNMASKED}")
        form = self._form = self._form or make_id_form(wide=batch.ids.itemsize > 2, with_len=False)
        names = islice(self._names, len(batch))
        data, sizes = encode_ids(
            batch.ids, batch.ends, names, wide="ndarray:uint32" in form.types, with_len="len" in form.names
        )
        self._sizes += sizes
        self._data.append(data)

    def close(self) -> None:
        form = self._form or make_id_form(wide=False, with_len=False)
        head = form.dump()
        # A shard stores the offsets of its samples in 32 bits, which limits its size.
        if sum(self._sizes) + 4 * len(self._sizes) + compute_head_size(head) > LARGEST_SHARD:
            raise ShardError(
                f"{self._name}: passes 4 GiB, the most of an MDS shard; make smaller parts, or more shards "
                "with --shuffle global --num-shards N"
            )
        data = [encode_head(np.array(self._sizes, np.int64), head), *self._data]
        if form.compression is not None:
            data = [find_compression(form.compression).compress(b"".join(data))]
        for piece in data:
            self._sink.write(piece)


class MdsReader(ShardReader):
    """Reader of the token ids in an MDS shard that any program may have written. The file must be seekable.

    layout: layout of the shard's dataset. None if it is unknown. A shard does not record how long examples
        may be, so without a layout its longest example becomes the limit. It is then also compared with the
        ``index.json`` in its directory.
    """

    layout: ShardLayout

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        objective: Objective | None = None,
        layout: ShardLayout | None = None,
        ids_type: str | None = None,
    ) -> None:
        """Open the shard and find the column that holds its ids.

        ids_type: integer type of the ids. It is needed only if their column has the type bytes.
        """
        entry = find_listed_entry(name) if layout is None else None
        # A shard with a known layout belongs to a dataset, whose manifest states its md5. Sizes that such a
        # shard states are trusted up to the limit of the format.
        most = MAX_UNLISTED_BYTES if layout is None else LARGEST_SHARD
        self._file, self._name = _open_uncompressed(file, name, entry, most), name
        self._head = read_head(self._file, name)
        if entry is not None and entry.samples != len(self._head):
            raise ShardError(
                f"{name}: holds {len(self._head)} samples, expected {entry.samples} by {INDEX_NAME}"
            )
        self._ids_type = ids_type
        try:
            self._decoder = IdDecoder(self._head.form, ids_type)
        except ValueError as error:
            raise ShardError(f"{name}: {error}") from None
        self._objective = objective or find_objective(layout.objective if layout else "mlm")
        check_has_only_ids(self._objective.batch_type, self._objective.name, name)
        self.is_measured = layout is None
        self.layout = layout or self._measure_layout()

    def __len__(self) -> int:
        return len(self._head)

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        for first, data, bounds in self._read_blocks(size):
            yield self._decode(data, bounds, first)

    def find_row_offsets(self, first: int, count: int) -> Sequence[int]:
        offsets: list[int] = self._head.offsets[first : first + count + 1].tolist()
        return offsets

    @property
    def row_file(self) -> IO[bytes]:
        return self._file

    @property
    def row_form(self) -> Hashable:
        """The columns of the shard, their types, and the integer type of the ids if the caller stated it."""
        return self._head.form.names, self._head.form.types, self._ids_type

    def decode_rows(
        self, data: bytes | memoryview, sizes: Sequence[int], first: int = 0
    ) -> Iterator[ExampleBatch]:
        return iter([self._decode(bytes(data), np.cumsum([0, *sizes]), first)])

    def _decode(self, data: bytes, bounds: Array, first: int) -> ExampleBatch:
        """Return the examples of consecutive samples.

        bounds: offset of each sample in ``data``, followed by the end of the last one.
        first: number of the first sample, for errors.
        """
        record = RecordCheck(name=self._name, first=first)
        batch: ExampleBatch = _make_unmasked(
            self._objective, *self._decoder.decode(data, bounds, record.refuse)
        )
        check_batch(batch, self.layout, record)
        return convert_to_item_types(batch)

    def _read_blocks(self, size: int) -> Iterator[tuple[int, bytes, Array]]:
        """Yield up to ``size`` samples at a time: the number of the first sample, their bytes, and the offset
        of each.
        """
        offsets = self._head.offsets
        self._file.seek(int(offsets[0]))
        for first in range(0, len(self), size):
            bounds = offsets[first : first + size + 1]
            yield first, self._file.read(int(bounds[-1] - bounds[0])), bounds - bounds[0]

    def _measure_layout(self) -> ShardLayout:
        """Return a layout whose limit is the shard's longest example."""
        longest = 1
        for first, data, bounds in self._read_blocks(_MEASURED):
            record = RecordCheck(name=self._name, first=first)
            longest = max(longest, int(self._decoder.count_ids(data, bounds, record.refuse).max()))
        return make_layout(self._objective, longest)


def make_layout(objective: Objective, longest: int) -> ShardLayout:
    """Return the layout of unmasked examples with at most ``longest`` ids."""
    sizes = dict.fromkeys(objective.batch_type.sizes(), longest)
    if has_group(objective.batch_type, MASKS):
        sizes[MASKS.size] = max(1, round(_MASK_SHARE * longest))
    return ShardLayout.of_sizes(sizes, objective=objective.name)


def _open_uncompressed(file: BinaryIO, name: str, entry: IndexEntry | None, most: int) -> BinaryIO:
    """Check a shard against its entry in the index. Return it as an open file, decompressed if necessary.

    A shard is not loaded into memory if it is uncompressed and its entry has no hashes.

    entry: the shard's entry in the index. None if there is no index.
    most: largest uncompressed size in bytes, for a shard without an entry.
    """
    if find_compression_ending(name) is None and (entry is None or not entry.raw.hashes):
        if entry is not None and (size := file.seek(0, 2)) != entry.raw.bytes:
            raise ShardError(
                f"{name}: {size} bytes, expected {entry.raw.bytes} by {INDEX_NAME}; copy it again"
            )
        return file
    file.seek(0)
    return BytesIO(read_checked_shard(file.read(), name, entry, most))


def _make_unmasked(objective: Objective, ids: Array, ends: Array) -> Any:
    """Return a batch of the objective's examples with these ids and without masks."""
    found: dict[str, Array] = {"ids": ids, "ends": ends}
    for item in objective.batch_type.columns():
        if item.name not in found:
            is_ends = item.name in objective.batch_type.ragged()
            found[item.name] = np.zeros(len(ends) if is_ends else 0, np.int64)
    return objective.batch_type(**found)


class MdsDirectoryReader(ShardReader):
    """Reader of all shards that an MDS index lists. They are read as if they were a single shard."""

    layout: ShardLayout

    def __init__(
        self,
        index: str,
        data: bytes,
        objective: Objective | None = None,
        layout: ShardLayout | None = None,
        ids_type: str | None = None,
    ) -> None:
        """Open the shards that an index lists.

        index: path of the index.
        data: contents of the index.
        ids_type: integer type of the ids. It is needed only if their column has the type bytes.
        """
        entries = parse_index(data, index)
        if not entries:
            raise ShardError(f"{index}: lists no shards")
        self._paths = [find_file(storage.get_parent(index), entry) for entry in entries]
        self._objective, self._known, self._ids_type = objective, layout, ids_type
        self._length = sum(entry.samples for entry in entries)
        self.is_measured = layout is None
        self.layout = layout or self._measure_shards()

    def __len__(self) -> int:
        return self._length

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        return regroup_batches(self._read_all_batches(size), size)

    def _read_all_batches(self, size: int) -> Iterator[ExampleBatch]:
        for path in self._paths:
            with storage.open_input(path) as file:
                reader = MdsReader(file, path, self._objective, self._known, self._ids_type)
                reader.layout = self.layout
                yield from reader.batches(size)

    def _measure_shards(self) -> ShardLayout:
        found = []
        for path in self._paths:
            with storage.open_input(path) as file:
                found.append(MdsReader(file, path, self._objective, ids_type=self._ids_type).layout)
        return max(found, key=lambda layout: layout.max_seq_length)
