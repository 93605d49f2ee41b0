"""Choice between flat batches and batches of padded rows."""

from trainer.data.batches import Form
from trainer.data.budgets import find_budgets
from trainer.data.examples import Rows
from trainer.data.order import choose_group_size
from trainer.data.padded_rows import make_row_form


def make_form(
    rows: Rows,
    *,
    batch_size: int,
    padded: bool = False,
    token_budget: int | None = None,
    micro_batches: int = 1,
    few_widths: bool = False,
) -> "Form":
    """Return the object that makes the loader's batches, which are flat batches or batches of padded rows.

    rows: the rows that are trained on.
    batch_size: number of rows in a micro-batch.
    padded: True for padded rows, False for flat batches.
    token_budget: flat batches are padded to multiples of this number. None: sizes with little padding are
    chosen.
    micro_batches: number of micro-batches in an update, over all workers.
    few_widths: True limits the number of different widths of padded rows to the number of length bins.
    """
    if padded:
        return make_row_form(rows, few_widths)
    group = choose_group_size(micro_batches, batch_size) if rows.by_lengths else 1
    sizes, layout = rows.sizes(), rows.layout
    found = find_budgets(sizes, layout, batch_size, token_budget=token_budget, group=group, bins=rows.bins)
    return Form(found)
