"""ModernBERT's rows: order, packing and masks as in ModernBERT's program.

In that program a micro-batch is a single long row. Here such a row is the first of the batch_size rows of a
micro-batch, and the other rows are empty. A position in the data consists of two numbers: how many batches of
the epoch are used, and how many random integers were rejected and drawn again for masks. With both numbers, a
resumed run can restore the random stream without drawing the earlier masks again. A checkpoint stores the
second number only for rank 0. After a resume, the other ranks draw the masks of the epoch's earlier batches
again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples.columns import Array
from bertdata.examples.groups import MASKS
from bertdata.examples.objectives import find_objective
from bertdata.loaders.modernbert.epoch import ModernBertEpoch, PackedBatch, SpecialIds
from bertdata.loaders.modernbert.loader import make_no_full_batch_error
from bertdata.loaders.modernbert.masks import IGNORED, compute_stream_state
from bertdata.loaders.modernbert.settings import ModernBertSettings
from bertdata.loaders.sequences import StoredSequences
from bertdata.records import IDS, IDS_ENDS, ShardLayout
from trainer.config.settings import Config
from trainer.data.budgets import ExampleSizes
from trainer.data.dynamic_masks import MaskingAtLoad, find_vocabulary, remove_drawn_masks
from trainer.data.examples import (
    CompactExamples,
    GatheredExamples,
    NumberedExamples,
    Piece,
    make_empty_columns,
)
from trainer.data.order import Dealer, Position, WorkerRows
from trainer.data.packs import FullRows

ROW_LAYOUT = "modernbert"
"""Value of ShardLayout.packing for rows as in ModernBERT's program."""

# A batch shape (budget) has slots for the mean number of masked words plus 3 times the deviation of a sample.
# With this factor it has slots for 8 standard deviations, which masks never exceed.
_DEVIATIONS = 8 / 3
_SAMPLE = 64


class SequenceExamples(CompactExamples):
    """Stored sequences with the interface of a file of decoded examples. All columns except the ids are
    zeros.
    """

    def __init__(self, sequences: StoredSequences, layout: ShardLayout) -> None:
        self._sequences, self._layout = sequences, layout

    def take(self, numbers: Array) -> dict[str, Array]:
        """Return the ids of some sequences, and zeros in all other columns."""
        longest, found = self._layout.max_seq_length, make_empty_columns(self._layout, len(numbers))
        found[IDS_ENDS] = lengths = np.minimum(self._sequences.lengths[numbers], longest)
        used = np.arange(longest) < lengths[:, np.newaxis]
        found["ids"][used] = self._sequences.take(numbers, longest)
        return found


class CountingEpoch(ModernBertEpoch):
    """An epoch of ModernBERT's loader that also counts random integers for its masks which were drawn again.

    An integer is rejected and drawn again if it would make the distribution uneven.
    """

    redrawn = 0

    def draw(self, packed: PackedBatch, ids: Array) -> tuple[Array, Array]:
        """Draw the masks of a batch. Return the ids with masks, and the label of each id, both without
        padding.

        packed: the batch's rows.
        ids: token ids of the batch, without padding.
        """
        made = self.mask(packed, ids)
        self.redrawn += made.redrawn
        cells, labels = np.asarray(made.ids), np.asarray(made.labels)
        tokens = np.diff(packed.token_ends, prepend=0)
        real = np.arange(cells.shape[1]) < tokens[:, np.newaxis]
        return cells[real], labels[real]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ModernBertBatch(WorkerRows):
    """A worker's rows of one update.

    packed: how the examples are packed into rows.
    epoch: epoch of the rows. The masks of all batches before this one are already drawn.
    """

    packed: PackedBatch
    epoch: "CountingEpoch"


@dataclass(frozen=True, slots=True)
class ModernBertMasks:
    """Object that draws masks as ModernBERT's program does, when examples are copied into arrays."""

    masked: OpenedDataset
    counts_vary = True

    def draw(
        self, gathered: GatheredExamples, own: WorkerRows, numbered: list[NumberedExamples], update: int
    ) -> GatheredExamples:
        """Draw masks for gathered examples. Return the examples with masks.

        The ids are changed in place. The position in ``own`` gets its second number, which is known only now.
        """
        assert isinstance(own, ModernBertBatch)
        used = np.arange(gathered.ids.shape[1]) < gathered.lengths[:, np.newaxis]
        ids, labels = own.epoch.draw(own.packed, gathered.ids[used].astype(np.uint32))
        gathered.ids[used] = ids
        redrawn = own.epoch.redrawn + 1  # stored plus 1, because 0 means that the number is not known
        own.positions[0] = own.positions[0]._replace(
            examples=redrawn if redrawn < self.masked.examples else 0
        )
        # Each token has a label. Convert the labels of an example to a list of masked positions and a list of
        # original ids.
        chosen = np.zeros(used.shape, bool)
        chosen[used] = labels != IGNORED
        counts = chosen.sum(axis=1, dtype=np.int32)
        example, place = np.nonzero(chosen)
        number = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
        positions, originals = np.zeros((2, *gathered.positions.shape), np.int32)
        positions[example, number], originals[example, number] = place, labels[labels != IGNORED]
        return replace(gathered, positions=positions, labels=originals, masks=counts, token_targets={})


@dataclass(frozen=True, kw_only=True)
class ModernBertRows(FullRows):
    """The rows on which a training trains, with order and packing as in ModernBERT's loader.

    DatasetError if an epoch of the dataset does not fill a batch.
    sequences: the stored sequences of ``data``.
    ids: token ids of the mask and of padding.
    mask_prob: masking rate.
    """

    sequences: StoredSequences
    ids: SpecialIds
    mask_prob: float
    is_shareable = False
    follows_order = False

    @property
    def layout(self) -> ShardLayout:
        """Sizes of the rows, such as max_seq_length and the largest number of examples in a row.

        Any token may be masked. The largest number of examples in a row is reached if all are as short as the
        shortest example.
        """
        longest = self.data.layout.max_seq_length
        shortest = int(self.sequences.lengths.min())
        return replace(
            self.data.layout,
            packing=ROW_LAYOUT,
            max_predictions_per_seq=longest,
            sequences_per_row=-(-longest // shortest),
        )

    @property
    def _stored(self) -> StoredSequences:
        assert self.sequences is not None
        return self.sequences

    def describe(self, update: str) -> str:
        """Return a text that describes the rows, for checkpoints."""
        return f"ModernBERT's, {update} of full length"

    def sizes(self) -> ExampleSizes:
        """Return the sizes of a sample of rows. All rows are taken as full."""
        longest, rate = self.data.layout.max_seq_length, self.mask_prob
        deviation = _DEVIATIONS * float(np.sqrt(rate * (1 - rate) * longest))
        return ExampleSizes(lengths=np.full(_SAMPLE, longest), masks_per_token=rate, deviation=deviation)

    def find(self, dealer: Dealer, start: Position) -> Iterator[WorkerRows]:
        """Yield the rows of a worker for updates with equally many micro-batches."""
        size = dealer.micro_batches // dealer.world_size
        return self.find_for_sizes(dealer, start, start.rows, lambda update: size)

    def find_for_sizes(
        self, dealer: Dealer, start: Position, update: int, size_of: Callable[[int], int]
    ) -> Iterator[WorkerRows]:
        """Yield the rows of a worker for updates that may differ in their number of micro-batches.

        dealer: has the numbers of workers and rows.
        start: position in the data at which to begin.
        update: number of the first update.
        size_of: function that returns the number of this worker's micro-batches in an update.
        """
        settings, batches = self._settings(dealer), start.rows
        sizes = [size_of(update - batches + number) for number in range(batches)]
        epoch = self.go_to(settings, start, sizes)
        while True:
            packed = epoch.pack(size_of(update))
            if packed is None:
                if not batches:
                    raise make_no_full_batch_error(epoch, settings)
                epoch, batches = CountingEpoch(self.sequences, settings, self.ids, epoch.number + 1), 0
                continue
            update, batches = update + 1, batches + 1
            yield ModernBertBatch(
                parts=[],
                row_ends=np.repeat(packed.row_ends, settings.micro_batch_size),
                now=[],
                coming=[],
                positions=[Position(epoch.number, 0, batches)],
                packed=packed,
                epoch=epoch,
            )

    def _settings(self, dealer: Dealer) -> ModernBertSettings:
        """Return the settings with which ModernBERT's loader runs on this worker."""
        return ModernBertSettings(
            batch_size=dealer.batch_size * dealer.micro_batches // dealer.world_size,
            micro_batch_size=dealer.batch_size,
            max_seq_len=self.data.layout.max_seq_length,
            mask_prob=self.mask_prob,
            order_seed=dealer.seed,
            mask_seed=dealer.seed,
            rank=dealer.rank,
            world=dealer.world_size,
        )

    def go_to(self, settings: ModernBertSettings, start: Position, sizes: Sequence[int]) -> CountingEpoch:
        """Return the epoch to which a position belongs, after going past its batches before the position.

        start: the position in the data.
        sizes: number of rows of each batch before the position.
        """
        epoch = CountingEpoch(self.sequences, settings, self.ids, start.epoch)
        # Packing depends only on lengths, so it can be repeated without reading token ids. Masks must be
        # drawn again, which needs the ids. But if the number of integers that were drawn again is known, the
        # random stream can jump ahead without the ids.
        redrawn = start.examples - 1 if settings.rank == 0 else -1
        for rows in sizes:
            packed = epoch.pack(rows)
            if packed is None:
                raise SettingsError(f"{self.data.name}: epoch {start.epoch} has no batch {start.rows}")
            if redrawn < 0:
                epoch.draw(packed, epoch.take(packed))
        if redrawn >= 0:
            cells = sum(sizes) * settings.width
            epoch.masks.state = compute_stream_state(settings.mask_seed + start.epoch, cells, redrawn)
            epoch.redrawn = redrawn
        return epoch

    def list_examples(self, own: WorkerRows, pieces: list[Piece]) -> tuple[list[Piece], Array]:
        """Return all examples of a batch, which ModernBERT's packing has already chosen, and the row ends."""
        assert isinstance(own, ModernBertBatch)
        assert own.row_ends is not None
        examples, numbers = SequenceExamples(self.sequences, self.layout), own.packed.numbers
        return [(examples, numbers, np.arange(len(numbers)))], own.row_ends


def make_modernbert_rows(config: Config, data: OpenedDataset) -> ModernBertRows:
    """Return rows with ModernBERT's order, packing and masks for a training.

    SettingsError if the data or the configuration do not allow such rows.
    """
    keys, objective = config.loading, find_objective(data.layout.objective)
    if keys.bins or keys.pack_on_load or keys.rows:
        raise SettingsError("masking modernbert packs its rows itself: without bins, pack_on_load and rows")
    if data.sources:
        raise SettingsError(
            f"{data.name}: masking modernbert has its own order; unite them as A+B, unweighted"
        )
    if data.layout.packing is not None:
        raise SettingsError(f"{data.name}: its rows are packed; masking modernbert needs single examples")
    if others := [
        group.name
        for group in objective.batch_type.groups()
        if group not in (IDS, MASKS, *objective.unlearned)
    ]:
        raise SettingsError(
            f"{data.name}: masking modernbert takes ids alone, as of the objective mlm; "
            f"those of {data.layout.objective} have {', '.join(others)}"
        )
    _, vocabulary = find_vocabulary(config, data, str(config.data.train_data), "modernbert")
    return ModernBertRows(
        data,
        ModernBertMasks(data),
        sequences=StoredSequences(data),
        ids=SpecialIds(mask_id=vocabulary.role("mask"), padding_id=vocabulary.role("pad")),
        mask_prob=config.masking.masked_lm_prob,
    )


def open_modernbert_source(config: Config, data: OpenedDataset) -> OpenedDataset:
    """Return the opened training data without masks, for masks as in ModernBERT's program.

    That program may mask any token except padding.
    """
    source = remove_drawn_masks(config, data)
    _, vocabulary = find_vocabulary(config, source, str(config.data.train_data), "modernbert")
    never = bytearray(vocabulary.size)
    never[vocabulary.role("pad")] = 1
    return replace(source, never_masked=bytes(never))


AS_MODERNBERT = MaskingAtLoad(open_modernbert_source, make_modernbert_rows)
"""Masks, order and packing as in ModernBERT's program."""
