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
    """Return the object that makes the loader's batches: flat batches with suitable budgets, or padded rows.

    batch_size: rows of a micro-batch. token_budget: flat batches are padded to multiples of this. None: sizes
    with little padding are chosen. micro_batches: micro-batches of all workers in an update. few_widths:
    padded rows from bins must have at most as many different widths as there are bins.
    """
    if padded:
        return make_row_form(rows, few_widths)
    group = choose_group_size(micro_batches, batch_size) if rows.by_lengths else 1
    sizes, layout = rows.sizes(), rows.layout
    found = find_budgets(sizes, layout, batch_size, token_budget=token_budget, group=group, bins=rows.bins)
    return Form(found)
