"""Training examples before they become a batch. They are decoded without padding, divided into rows, and
copied into arrays.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.examples import columns, groups
from bertdata.examples.columns import Array
from bertdata.examples.objectives import find_objective
from bertdata.records import IDS_ENDS, ColumnGroup, ShardLayout
from trainer.config.settings import Config
from trainer.data.budgets import ExampleSizes, sample_sizes
from trainer.data.order import Dealer, Position, WorkerRows

_BATCH_IDS = 1 << 17
"""Largest number of ids of the batches that are decoded for chunks, where a single row has no more."""
_COLUMNS = ("ids", "positions", "labels", "lengths", "segment_lengths", "masks", "pair_labels")


class MaskDrawing(Protocol):
    """Interface of an object that draws masks while examples are copied into arrays, such as
    ``UnmaskedData``.

    masked: the same examples with masks, drawn at the largest masking rate.
    counts_vary: True if examples of equal length may have different numbers of masked words.
    """

    @property
    def masked(self) -> OpenedDataset: ...

    @property
    def counts_vary(self) -> bool: ...

    def draw(
        self, gathered: "GatheredExamples", own: WorkerRows, numbered: "list[NumberedExamples]", update: int
    ) -> "GatheredExamples":
        """Draw masks for gathered examples. Return the examples with masks.

        own: the rows of this worker from which the examples come.
        numbered: the numbers of the same examples in their files, for each part of ``own``.
        update: number of the first update to which the rows belong.
        """
        ...


class CompactExamples:
    """The decoded examples of a file, without padding.

    They take 2 bytes for each id, 4 for each mask and 13 more for each example. The ids of all examples are
    stored end to end. NumPy's sliding_window_view makes a view with a window of S ids from every place on.
    For example, with S = 3 the ids 7 8 9 1 2 have the windows 7 8 9, 8 9 1 and 9 1 2. So a single NumPy
    operation can copy many examples. The window of a short example also contains ids of the next example. The
    example's length says which ids belong to it. All columns with a varying number of items are stored like
    the ids.

    first_example: number of the first of these examples in its file. It is 0 if the whole file is decoded.
    """

    first_example = 0

    def __init__(self, batches: Iterable[Any], layout: ShardLayout) -> None:
        blank = columns.make_blank_example(find_objective(layout.objective).batch_type, layout)
        held = columns.join_batches([*batches, blank])
        self._kind = type(blank)
        self._bounds = {ends: np.insert(getattr(held, ends), 0, 0) for ends in blank.ragged()}
        self._values = {
            item.name: getattr(held, item.name)
            if item.ends is None
            else sliding_window_view(getattr(held, item.name), getattr(blank, item.ends)[0])
            for item in blank.columns()
            if item.name not in self._bounds
        }

    @property
    def lengths(self) -> Array:
        """The number of tokens of each example."""
        # The last entry belongs to a blank example. The blank example makes room for the last window.
        return np.diff(self._bounds[IDS_ENDS].astype(np.int64))[:-1]

    def take(self, numbers: Array) -> dict[str, Array]:
        """Return the columns of some examples, by name.

        For a column with several items for each example, the result has a window of fixed width for each
        example. In place of the column with end offsets it has the number of items of each example.

        numbers: indices of the examples in the file.
        """
        starts = {name: bounds[numbers] for name, bounds in self._bounds.items()}
        found = {name: bounds[numbers + 1] - starts[name] for name, bounds in self._bounds.items()}
        for item in self._kind.columns():
            if item.name not in found:
                found[item.name] = self._values[item.name][
                    numbers if item.ends is None else starts[item.ends]
                ]
        return found


def shrink_batches(data: OpenedDataset, sizes: Sequence[int]) -> OpenedDataset:
    """Return a dataset with batches that are small compared with a chunk of its files.

    While a file is open, the batch in which its last chunk ended stays in memory, with the rows behind the
    chunk. Hundreds of files may be open.

    sizes: number of rows of each chunk of a file. The batches of a single chunk do not stay in memory.
    """
    if len(sizes) == 1:
        return data
    rows = min(data.batch_rows, max(sizes), _BATCH_IDS // data.layout.max_seq_length)
    return data.with_batches_of(max(1, rows))


def decode_in_chunks(
    batches: Iterable[Any],
    sizes: Sequence[int],
    decode: Callable[[list[Any]], CompactExamples],
    *,
    cut: Callable[[Any, int, int], Any] = columns.slice_batch,
    join: Callable[[list[Any]], Any] = columns.join_batches,
) -> Iterator[CompactExamples]:
    """Yield the decoded examples of a file, chunk by chunk.

    batches: all rows of the file, in batches of any size.
    sizes: number of rows of each chunk.
    decode: function that copies the rows of some batches.
    cut, join: arguments of ``ChunkCutter``.
    """
    cutter, first = ChunkCutter(batches, cut, join), 0
    for number, size in enumerate(sizes):
        made = decode(cutter.take(size, is_last=number == len(sizes) - 1))
        made.first_example = first
        first += len(made.lengths)
        yield made
        del made  # before the next chunk is decoded


class ChunkCutter:
    """Source of the rows of a file, chunk by chunk.

    Of a batch that reaches beyond a chunk, only a copy of the rows behind the chunk is kept.

    batches: all rows of the file, in batches of any size.
    cut: function that returns the rows of a batch from a first one up to a last one, which is not included.
    The result may share the batch's memory.
    join: function that copies the rows of several batches into one.
    """

    def __init__(
        self,
        batches: Iterable[Any],
        cut: Callable[[Any, int, int], Any] = columns.slice_batch,
        join: Callable[[list[Any]], Any] = columns.join_batches,
    ) -> None:
        self._source, self._cut, self._join = iter(batches), cut, join
        self._rest = list[Any]()

    def take(self, size: int, *, is_last: bool) -> list[Any]:
        """Return batches with the next rows.

        Before the last chunk is returned, the batches are read to their end. So a file that does not have as
        many examples as it should is noticed before its last examples are used.

        size: number of rows of the chunk.
        is_last: True for the file's last chunk.
        """
        held, self._rest = self._rest, []
        count = sum(map(len, held))
        while (count < size or is_last) and (batch := next(self._source, None)) is not None:
            held.append(batch)
            count += len(batch)
        # Only the last batch may reach beyond the chunk.
        if count > size:
            last = held.pop()
            inside = len(last) - (count - size)
            held.append(self._cut(last, 0, inside))
            self._rest.append(self._join([self._cut(last, inside, len(last))]))
        return held


def make_empty_columns(layout: ShardLayout, count: int) -> dict[str, Array]:
    """Return columns of zeros with the names and shapes that ``CompactExamples.take`` returns for ``count``
    examples.
    """
    blank = columns.make_blank_example(find_objective(layout.objective).batch_type, layout)
    widths = {item.name: [getattr(blank, item.ends)[0]] if item.ends else [] for item in blank.columns()}
    return {name: np.zeros((count, *width), np.int32) for name, width in widths.items()}


Piece = tuple[CompactExamples, Array, Array]
"""Examples of a single file: the decoded file, the indices of the examples in it, and the place of each
example among the examples of the batch.
"""


NumberedExamples = tuple[Array, Array]
"""Examples of a single file: the number of each in the file, and its place among the examples of the
batch."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GatheredExamples:
    """N examples, copied from their files into int32 arrays. Each example has a window of fixed width, that
    is, a row of such an array.

    After the example's own ids, its window may contain ids of other examples. The examples belong to rows of
    the training: a row is a single example or several that are packed. Workers get whole rows.
    """

    layout: ShardLayout
    ids: Array  # (N, S): token ids
    positions: Array  # (N, P): positions of the masked tokens, from the example's start
    labels: Array  # (N, P): original ids of the masked tokens
    lengths: Array  # (N,): number of ids
    segment_lengths: Array  # (N,): number of ids in the first segment
    masks: Array  # (N,): number of masked tokens
    pair_labels: Array  # (N,): label of the sentence pair
    row_ends: Array  # (rows,): for each row, index of the example after its last
    targets: dict[str, Array]  # (N,) or (N, most items) each: the task's columns
    token_targets: dict[str, Array]  # (N, S) each: the task's columns with an item per id

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> int:
        """The number of rows to which the examples belong."""
        return len(self.row_ends)

    def slice_rows(self, start: int, stop: int) -> "GatheredExamples":
        """Return the examples of rows ``start`` to ``stop``, without ``stop``, as views of the arrays."""
        first, last = (int(self.row_ends[row - 1]) if row else 0 for row in (start, min(stop, self.rows)))
        own: dict[str, Any] = {name: getattr(self, name)[first:last] for name in _COLUMNS}
        for name in ("targets", "token_targets"):
            own[name] = {column: values[first:last] for column, values in getattr(self, name).items()}
        return replace(self, **own, row_ends=self.row_ends[start:stop] - first)


def gather_examples(pieces: Iterable[Piece], layout: ShardLayout, row_ends: Array) -> GatheredExamples:
    """Copy the examples of some rows from their decoded files into arrays.

    Examples without stored masks have no masked words in the result. Examples without segments have all ids
    in the first segment.
    pieces: for each file, the examples to copy and their places in the arrays.
    row_ends: for each row, the index of the example after its last example.
    """
    kind = find_objective(layout.objective).batch_type
    count = int(row_ends[-1]) if len(row_ends) else 0
    made = make_empty_columns(layout, count)
    for held, numbers, places in pieces:
        for name, values in held.take(numbers).items():
            made[name][places] = values
    own = [item for item in kind.columns() if item.group not in groups.PAIRS]
    for item in own:
        # After an example's own items, its window contains items of other examples. Set these to 0.
        if item.ends not in (None, IDS_ENDS):
            made[item.name] *= np.arange(made[item.name].shape[1]) < made[item.ends][:, np.newaxis]

    def get_column(group: ColumnGroup, without: Array) -> Array:
        """Return the example column of this group, or the other values if the dataset has none."""
        return made[groups.find_column(kind, group).name] if groups.has_group(kind, group) else without

    lengths, none = made[IDS_ENDS], np.zeros(count, np.int32)
    no_slots = np.zeros((count, layout.max_predictions_per_seq), np.int32)
    masks = groups.Masks(no_slots, no_slots, none)
    if groups.has_group(kind, groups.MASKS):
        masks = groups.Masks(*(made[name] for name in groups.find_mask_names(kind)))
    return GatheredExamples(
        layout=layout,
        ids=made["ids"],
        positions=masks.places,
        labels=masks.originals,
        lengths=lengths,
        segment_lengths=get_column(groups.SEGMENT, lengths),
        masks=masks.ends,
        pair_labels=get_column(groups.PAIR_LABEL, none),
        row_ends=row_ends,
        targets={item.name: made[item.name] for item in own if item.ends != IDS_ENDS},
        token_targets={item.name: made[item.name] for item in own if item.ends == IDS_ENDS},
    )


@dataclass(frozen=True)
class Rows:
    """The rows on which a training trains. They are divided among the workers, in the order of
    ``trainer.data.order``.

    In this class each stored example is a row. Other modules of ``trainer.data`` have subclasses with packed
    rows, which have several examples, or with other orders.

    data: the opened dataset.
    masks: draws masks for the examples of the rows. None: use the masks that are stored in the dataset.
    bins: number of length bins from which the rows of micro-batches are drawn, 1 without length bins.
    follows_order: whether rows come in the order of ``trainer.data.order``, or at least window by window.
    """

    data: OpenedDataset
    masks: "MaskDrawing | None" = None
    bins = 1
    follows_order = True

    @property
    def layout(self) -> ShardLayout:
        """Sizes of the rows, such as the largest numbers of ids and of masked words."""
        return self.data.layout

    @property
    def examples_per_row(self) -> float:
        """The average number of examples per row."""
        return 1.0

    @property
    def by_lengths(self) -> bool:
        """True if rows are divided among micro-batches by length, so that all have nearly equally many
        tokens.
        """
        return self.data.has_lengths

    def micro_batches(self, config: Config, copies: int, examples_per_row: float) -> tuple[int, int]:
        """Return two configured numbers: rows in a micro-batch, and micro-batches that a worker computes in
        an update.

        copies: number of copies of the model. If each worker has a whole copy, it is the number of workers.
        examples_per_row: average number of examples in a row, which packed rows need.
        """
        return config.update.micro_batches(copies)

    def describe(self, update: str) -> str:
        """Return a text that describes the rows and their order. It is stored in checkpoints.

        A run can only resume from a checkpoint with the same text, because a position in the data means
        something else in other rows.
        update: text about the micro-batches of an update.
        """
        return "as stored"

    def sizes(self) -> ExampleSizes:
        """Return the sizes of a sample of the rows: their numbers of tokens and of masked words."""
        return sample_sizes(self.data, self.masks.masked if self.masks else None)

    @property
    def is_shareable(self) -> bool:
        """True if a worker can train on a part of the files only (``trainer.data.streams``).

        False for a mixture of datasets, because its next examples come from all of its sources.
        """
        return not self.data.sources

    @property
    def has_single_rows(self) -> bool:
        """True if a row can be decoded without the other rows of its file, where the file's format allows it.

        False for packed rows, and for a subclass that does more than decoding with the examples of a file.
        """
        return type(self).decode is Rows.decode and self.data.row_source is not None

    def decode(self, shard: Shard) -> CompactExamples:
        """Return the decoded examples of a shard."""
        return CompactExamples(self.data.batches(shard), self.data.layout)

    def decode_chunks(self, shard: Shard, sizes: Sequence[int]) -> Iterator[CompactExamples]:
        """Return an iterator over the decoded examples of a shard, chunk by chunk.

        sizes: number of rows of each chunk. Together they are all rows of the shard.
        """
        batches = shrink_batches(self.data, sizes).batches(shard)
        return decode_in_chunks(batches, sizes, lambda held: CompactExamples(held, self.data.layout))

    def find_window(self, dealer: Dealer) -> int:
        """Return the number of consecutive examples that are put into another order together.

        It is 0 if the rows come in the order of ``trainer.data.order``.
        dealer: divides the rows among the workers.
        """
        return 0

    def find(self, dealer: Dealer, start: Position) -> Iterator[WorkerRows]:
        """Yield the rows of a worker, a few updates at a time, without end.

        dealer: divides the rows among the workers.
        start: position in the data at which to begin. DatasetError if the data have no example at the
            position.
        """
        return dealer.find(start)

    def find_for_sizes(
        self, dealer: Dealer, start: Position, update: int, size_of: Callable[[int], int]
    ) -> Iterator[WorkerRows] | None:
        """Yield the rows of a worker if updates differ in their number of micro-batches.

        Return None if the rows of an update do not depend on the sizes of earlier updates. Then ``find`` can
        be called again whenever the size changes.
        update: number of the first update.
        size_of: function that returns the number of this worker's micro-batches in an update.
        """
        return None

    def list_examples(self, own: WorkerRows, pieces: list[Piece]) -> tuple[list[Piece], Array]:
        """Return the examples in a worker's rows, file by file, and for each row the index of the example
        after its last.

        own: the worker's rows.
        pieces: the same rows, file by file.
        """
        return pieces, np.arange(sum(len(part.rows) for part in own.parts)) + 1

    def number_examples(self, own: WorkerRows, pieces: list[Piece]) -> list[NumberedExamples]:
        """Return the numbers of the examples in a worker's rows, for each part of ``own``.

        pieces: the examples as ``list_examples`` returns them. They are needed only for packed rows.
        """
        return [(part.rows, part.targets) for part in own.parts]
