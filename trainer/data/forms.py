"""Choice between flat batches and batches of padded rows."""

from bertdata.config.settings import require
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
    multiple: int = 1,
) -> "Form":
    """Return the object that makes the loader's batches, which are flat batches or batches of padded rows.

    rows: the rows that are trained on.
    batch_size: number of rows in a micro-batch.
    padded: True for padded rows, False for flat batches.
    token_budget: flat batches are padded to multiples of this number. None: sizes with little padding are
    chosen.
    micro_batches: number of micro-batches in an update, over all workers.
    few_widths: True limits the number of different widths of padded rows to the number of length bins.
    multiple: number of which the number of tokens of each micro-batch is a multiple. SettingsError if padded
    rows do not have such numbers.
    """
    if padded:
        form = make_row_form(rows, few_widths)
        width = form.width_step or rows.layout.max_seq_length
        require(
            batch_size * width % multiple == 0,
            f"batches of padded rows have {batch_size} (batch_size) * {width} tokens, expected a multiple of "
            f"{multiple}: give another --batch-size, or leave out --rows",
        )
        return form
    group = choose_group_size(micro_batches, batch_size) if rows.by_lengths else 1
    sizes, layout = rows.sizes(), rows.layout
    found = find_budgets(
        sizes,
        layout,
        batch_size,
        token_budget=token_budget,
        group=group,
        bins=rows.bins,
        multiple=multiple,
    )
    return Form(found)
