"""Computes how full the rows of a planned packed dataset are, and how much training time packing saves."""

from dataclasses import asdict, dataclass
from typing import Any

from bertdata.packing.linear_program import bound_rows_below
from bertdata.packing.planned_pack import PlannedPack, compute_plan_md5


@dataclass(frozen=True, kw_only=True, slots=True)
class PackForecast:
    """Statistics of a packing plan.

    efficiency: share of the rows' positions that hold tokens.
    padded_efficiency: the same share without packing, that is, with one padded example per row.
    bound: highest efficiency that any packing with at most max_sequences_per_pack examples per row can reach.
        None if it was not computed.
    time_saved: share of an epoch's training time that packing saves compared with one padded example per row,
        if every row takes equally long.
    """

    path: str
    layout: str
    format: str
    method: str
    max_sequences_per_pack: int
    max_seq_length: int
    shards: int
    examples: int
    tokens: int
    rows: int
    rows_by_examples: dict[int, int]
    examples_per_row: float
    efficiency: float
    padded_efficiency: float
    bound: float | None
    time_saved: float
    plan_md5: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def make_forecast(planned: PlannedPack, path: str, *, with_bound: bool) -> PackForecast:
    """Return the statistics of a packing plan.

    path: path of the source dataset.
    with_bound: True also computes ``bound``, which takes as long as planning.
    """
    plan, settings = planned.plan, planned.settings
    by_examples: dict[int, int] = {}
    for lengths, rows in plan.rows_by_lengths:
        by_examples[len(lengths)] = by_examples.get(len(lengths), 0) + rows
    bound = None
    if with_bound:
        bound = plan.tokens / (bound_rows_below(plan.histogram(), settings.most) * plan.max_seq_length)
    return PackForecast(
        path=path,
        layout=settings.layout,
        format=settings.container,
        method=settings.method,
        max_sequences_per_pack=settings.most,
        max_seq_length=plan.max_seq_length,
        shards=len(planned.cuts.starts) - 1,
        examples=plan.examples,
        tokens=plan.tokens,
        rows=plan.rows,
        rows_by_examples=dict(sorted(by_examples.items())),
        examples_per_row=plan.examples_per_row,
        efficiency=plan.efficiency,
        padded_efficiency=plan.tokens / (plan.examples * plan.max_seq_length),
        bound=bound,
        time_saved=1 - plan.rows / plan.examples,
        plan_md5=compute_plan_md5(plan),
    )
