"""Forms of a batch: padded rows, or flat; the device and its compiler decide which one is used."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bertdata.dataset.reader import OpenedDataset
from bertdata.records import ShardLayout
from trainer.data.at_load import Packing
from trainer.data.batches import Batch, FlatBatch, Prepare
from trainer.data.budgets import Budgets, find_budgets
from trainer.data.compact import GatheredExamples, gather, unpacked
from trainer.data.deal import group_size
from trainer.data.flat import flatten
from trainer.data.sizes import mask_slots, sample_row_sizes, sample_sizes

_MOST_LISTED = 8  # budgets named in the log

Made = TypeVar("Made", bound=Batch, covariant=True)


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
    packing: Packing | None = None,
    bins: int | None = None,
    few_widths: bool = False,
) -> Form[Batch]:
    """Rows, or flat batches whose budgets suit the dataset: the form of a Loader's batches.

    batch_size: rows of a micro-batch, in the sense of the order: examples, or packs. token_budget: that of
    ``budgets.find_budgets``. micro_batches: of all workers in an update. packing, bins: those of the
    Loader. few_widths: rows from bins have at most as many widths as there are bins, else multiples of 8.
    """
    layout = data.layout if packing is None else packing.layout(data)
    if rows:
        return _row_form(data, layout, packing, bins, few_widths)
    if layout.packing is not None:
        sizes = sample_row_sizes(data, packing)
        return FlatForm(find_budgets(sizes, layout, batch_size, token_budget=token_budget))
    shares = group_size(micro_batches, batch_size) if data.has_lengths else 1
    sizes = sample_sizes(data)
    return FlatForm(
        find_budgets(sizes, layout, batch_size, token_budget=token_budget, shares=shares, bins=bins or 1)
    )


def _row_form(
    data: OpenedDataset, layout: ShardLayout, packing: Packing | None, bins: int | None, few_widths: bool
) -> Form[Batch]:
    from trainer.data.rows import RowForm, width_step

    if layout.packing is not None:
        return RowForm(slots=mask_slots(data, layout, sample_row_sizes(data, packing)))
    return RowForm(width_step=bins and width_step(layout.max_seq_length, bins if few_widths else None))


def make_evaluation_form(
    data: OpenedDataset, *, batch_size: int, rows: bool, token_budget: int | None = None
) -> Form[Batch]:
    """The form of ``evaluation_batches``: single examples, also of packed rows."""
    if rows:
        from trainer.data.rows import RowForm

        return RowForm()
    budgets = find_budgets(sample_sizes(data), unpacked(data.layout), batch_size, token_budget=token_budget)
    return FlatForm(budgets)
