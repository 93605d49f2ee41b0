"""Forms of a batch: padded rows, or flat; the device and its compiler decide which one is used."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bertdata.dataset.reader import OpenedDataset
from trainer.data.batches import AnyBatch, Batch, FlatBatch, RowBatch
from trainer.extensions.loading.bin_edges import WIDTH_STEP
from trainer.data.budgets import Budgets, find_budgets
from trainer.data.compact import GatheredExamples, gather, unpacked
from trainer.data.deal import group_size
from trainer.data.flat import flatten
from trainer.extensions.loading.load_packing import LoadPacking
from trainer.extensions.loading.packed_rows import pack_rows
from trainer.extensions.loading.rows import pad_rows
from trainer.data.sizes import mask_slots, sample_row_sizes, sample_sizes

_MOST_LISTED = 8  # budgets named in the log

Made = TypeVar("Made", bound=Batch, covariant=True)


class Prepare(Protocol):
    """The device's preparation of a batch in the loader's thread, as pinning its memory."""

    def __call__(self, batch: AnyBatch, /) -> AnyBatch: ...


class Form(Protocol[Made]):
    """Conversion of gathered examples to batches; one of fewer rows is filled with missing examples."""

    def batches(self, gathered: GatheredExamples, size: int, prepare: Prepare) -> Iterator[Made]:
        """The gathered examples, ``size`` rows to a batch; none at all make one batch of missing ones."""
        ...

    def blanks(self) -> Iterator[Made]:
        """A batch of missing examples of each usual shape; none where all batches have the same shape."""
        ...

    @property
    def has_lengths(self) -> bool:
        """True if batches are of several lengths."""
        ...

    def describe(self) -> str:
        """The form in a few words, for the log."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RowForm:
    """Rows of S ids, for devices that need rows; one example with P masked slots each, or a pack of several.

    slots: masked slots of a packed row; None: the rows are not packed. width_step: rows are padded to the
    longest of the micro-batch, rounded up to a multiple of this; None: to S.
    """

    slots: int | None = None
    width_step: int | None = None

    def batches(self, gathered: GatheredExamples, size: int, prepare: Prepare) -> Iterator[RowBatch]:
        """The gathered examples, ``size`` rows to a batch; prepared all at once."""
        if self.width_step is not None:
            for start in range(0, max(gathered.rows, 1), size):
                own = gathered.cut(start, start + size)
                yield prepare(pad_rows(own.narrowed(self._width(own)), size))
            return
        count = max(-(-gathered.rows // size), 1) * size
        slots = self.slots
        batch = prepare(pad_rows(gathered, count) if slots is None else pack_rows(gathered, count, slots))
        for start in range(0, count, size):
            yield batch.cut(start, min(start + size, count))

    def blanks(self) -> Iterator[RowBatch]:
        return iter(())

    @property
    def has_lengths(self) -> bool:
        return self.width_step is not None

    def describe(self) -> str:
        if self.width_step is not None:
            return f"rows padded to the longest of a micro-batch, to a multiple of {self.width_step} tokens"
        return "padded rows" if self.slots is None else f"packed rows with {self.slots} masked slots"

    def _width(self, gathered: GatheredExamples) -> int:
        assert self.width_step is not None
        longest = int(gathered.lengths.max(initial=1))
        return min(-(-longest // self.width_step) * self.width_step, gathered.layout.max_seq_length)


@dataclass(frozen=True, slots=True)
class FlatForm:
    """All tokens in one row, padded to one of the budgets."""

    budgets: Budgets

    def batches(self, gathered: GatheredExamples, size: int, prepare: Prepare) -> Iterator[FlatBatch]:
        """The gathered examples, ``size`` rows to a batch, that of the budgets; prepared one by one."""
        assert size == self.budgets.batch_size, f"budgets are for {self.budgets.batch_size}, not {size}"
        for start in range(0, max(gathered.rows, 1), size):
            yield prepare(flatten(gathered.cut(start, start + size), self.budgets))

    def blanks(self) -> Iterator[FlatBatch]:
        for budget in reversed(self.budgets.usual):  # the largest first: its memory serves the others
            yield flatten(gather([], 0, self.budgets.layout), self.budgets, budget)

    @property
    def has_lengths(self) -> bool:
        return len({budget.tokens for budget in self.budgets.budgets}) > 1

    def describe(self) -> str:
        sizes = list(dict.fromkeys(f"{budget.tokens:,}" for budget in self.budgets.budgets))
        if len(sizes) > _MOST_LISTED:
            return f"flat, padded to one of {len(sizes)} sizes from {sizes[0]} to {sizes[-1]} tokens"
        listed = f"{', '.join(sizes[:-1])} or {sizes[-1]}" if len(sizes) > 1 else sizes[0]
        return f"flat, padded to {listed} tokens"


def make_form(
    data: OpenedDataset,
    *,
    batch_size: int,
    rows: bool,
    token_budget: int | None = None,
    micro_batches: int = 1,
    packing: LoadPacking | None = None,
    bins: int | None = None,
    few_widths: bool = False,
) -> Form[Batch]:
    """Rows, or flat batches whose budgets suit the dataset: the form of a Loader's batches.

    batch_size: rows of a micro-batch, in the sense of the order: examples, or packs. token_budget: that of
    ``budgets.find_budgets``. micro_batches: of all workers in an update. packing, bins: those of the
    Loader. few_widths: rows from bins have at most as many widths as there are bins, else multiples of 8.
    """
    layout = data.layout if packing is None else packing.layout(data)
    if layout.packing is None:
        if rows:
            return RowForm(
                width_step=bins and width_step(layout.max_seq_length, bins if few_widths else None)
            )
        shares = group_size(micro_batches, batch_size) if data.has_lengths else 1
        sizes = sample_sizes(data)
        return FlatForm(
            find_budgets(sizes, layout, batch_size, token_budget=token_budget, shares=shares, bins=bins or 1)
        )
    sizes = sample_row_sizes(data, packing)
    if rows:
        return RowForm(slots=mask_slots(data, layout, sizes))
    return FlatForm(find_budgets(sizes, layout, batch_size, token_budget=token_budget))


def width_step(longest: int, widths: int | None) -> int:
    """The step between the widths of rows: the least multiple of 8 that makes at most so many widths."""
    return WIDTH_STEP if widths is None else -(-longest // (widths * WIDTH_STEP)) * WIDTH_STEP


def make_evaluation_form(
    data: OpenedDataset, *, batch_size: int, rows: bool, token_budget: int | None = None
) -> Form[Batch]:
    """The form of ``evaluation_batches``: single examples, also of packed rows."""
    if rows:
        return RowForm()
    budgets = find_budgets(sample_sizes(data), unpacked(data.layout), batch_size, token_budget=token_budget)
    return FlatForm(budgets)
