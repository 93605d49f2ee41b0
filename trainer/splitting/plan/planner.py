"""Find the fastest plan that fits into the devices' memory.

For each mesh (stages x copies, micro-batches, rows per micro-batch) it makes tables with time and memory of
every possible stage, and searches for the fastest division of the layers into stages (``search.py``).
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from bertdata.errors import SettingsError
from trainer.splitting.plan.costs import Costs, compute_analytic_costs, find_optimiser_costs
from trainer.splitting.plan.parts import find_head
from trainer.splitting.plan.plan import Memory, Plan, StagePlan
from trainer.splitting.plan.rates import ShardingRate
from trainer.splitting.plan.request import Mesh, PlanRequest, list_meshes
from trainer.splitting.plan.search import FAR, Choice, LayerDivision, Search, find_least_maximum
from trainer.splitting.plan.stages import (
    RECOMPUTES,
    SHARDED,
    Intervals,
    Real,
    StageMemory,
    Whole,
    compute_stage_times,
)

NANOSECOND = 1e-9
_LARGEST = 2.0**40
"""Largest time in the search, which counts time in whole units of a nanosecond or more. For slower models the
unit is longer, so that no sum exceeds 64-bit integers.
"""


def make_plan(request: PlanRequest, costs: Costs | None = None) -> Plan:
    """Return the fastest plan. Ties go to the fewest stages, then to the fewest micro-batches.

    Pipelines with sharded stages are tried only if no other plan fits.
    costs: measured costs of the model's parts. None: computed from the number of operations and the request's
    rate.
    SettingsError if no plan fits. It says how much memory is missing and what would fit.
    """
    planner = Planner(replace(request, may_shard_stages=False), costs)
    plan = planner.fastest_plan()
    if plan is None and request.may_shard_stages:
        planner = Planner(request, planner.costs)
        plan = planner.fastest_plan()
    if plan is None:
        raise SettingsError(_explain_no_fit(planner))
    return plan


class Planner:
    """Planner for one request.

    The tables of times and memory depend only on the rows of a micro-batch and the number of copies. They are
    made on first use, and all meshes with the same two numbers share them.
    """

    def __init__(self, request: PlanRequest, costs: Costs | None = None) -> None:
        self.request = request
        self.meshes = list_meshes(request)
        self.costs = costs or compute_analytic_costs(request)
        # Search with whole numbers of nanoseconds: floats could round differently on two workers, which
        # would then disagree about the plan. Longer units keep the sums of slow models below 2^63.
        seconds = 8 * self.costs(max(mesh.rows for mesh in self.meshes)).seconds
        self._unit = NANOSECOND * max(1.0, seconds / NANOSECOND / _LARGEST)
        self._tables = cache(self._make_tables)

    def fastest_plan(self) -> Plan | None:
        """Return the fastest plan that fits, or None."""
        # The best time so far bounds the search on the next meshes, so most of these searches end at once.
        # Meshes with few stages and few micro-batches come first. Since only a strictly faster plan replaces
        # the best, they win ties.
        best: tuple[Mesh, LayerDivision] | None = None
        below = FAR
        for mesh in self.meshes:
            if (found := self._find_fastest(mesh, below)) is not None:
                best, below = (mesh, found), found.passes(mesh.micro_batches) + found.end
        return None if best is None else self._make_plan(*best)

    def _find_fastest(self, mesh: Mesh, below: int) -> LayerDivision | None:
        """Return the fastest division of the layers into stages on this mesh. None if it takes ``below``
        units of time or more.
        """
        # A lower bound without any search: the slowest stage takes at least the mean over the stages. An
        # update's passes take sum + (m - 1) * slowest >= sum * (1 + (m - 1) / stages).
        passes = self.costs(mesh.rows).seconds / self._unit * (1 + (mesh.micro_batches - 1) / mesh.stages)
        if passes - mesh.stages * mesh.micro_batches >= below:  # allow for rounding each stage's time
            return None
        times, _ = self._tables(mesh.rows, mesh.copies)
        search = Search(
            self._convert_to_units(times["forward"] + times["backward"] + times["transfer"]),
            self._convert_to_units(times["all_reduce"] + times["step"]),
            [peaks <= self.request.usable_memory for peaks in self._find_allowed_peaks(mesh)],
            mesh.micro_batches,
        )
        return search.best(below)

    def _make_plan(self, mesh: Mesh, division: LayerDivision) -> Plan:
        """Return the plan for a division of the layers on a mesh."""
        request = self.request
        return Plan(
            model=request.model.as_json(),
            sequence_length=request.sequence_length,
            precision=request.update.precision,
            optimiser=request.update.optimiser,
            copies=mesh.copies,
            batch_size=mesh.rows,
            micro_batches=mesh.micro_batches,
            head=find_head(request.head),
            stages=tuple(
                self._make_stage_plan(mesh, choice, mesh.stages - number)
                for number, choice in enumerate(division.choices)
            ),
        )

    def _make_stage_plan(self, mesh: Mesh, choice: Choice, left: int) -> StagePlan:
        """Return the record of a stage. left: its number from the end, 1 for the last stage."""
        times, memory = self._tables(mesh.rows, mesh.copies)
        parts = memory.parts(mesh.in_flight(left), mesh.micro_batches)
        return StagePlan(
            first=choice.first,
            last=choice.last,
            recomputes=bool(RECOMPUTES[choice.kind]),
            sharded=bool(SHARDED[choice.kind]),
            memory=Memory(**{name: int(part[choice]) for name, part in parts.items()}),
            **{name: float(one[choice]) for name, one in times.items()},
        )

    def find_least_memory(self) -> tuple[int, Mesh]:
        """Return the least memory that any plan needs, in bytes per device, and the mesh of that plan."""
        found = ((find_least_maximum(self._find_allowed_peaks(mesh)), mesh) for mesh in self.meshes)
        return min(((needed, mesh) for needed, mesh in found if needed is not None), key=itemgetter(0))

    def _find_allowed_peaks(self, mesh: Mesh) -> list[Whole]:
        """Return a table of peak memory for each place in the pipeline, from the last stage to the first.

        Each table has shape (kinds, L + 1, L + 1) for L layers, as in ``stages.py``: by kind of stage, first
        layer and end. Values are bytes, or FAR for stages that the request does not allow.
        """
        _, memory = self._tables(mesh.rows, mesh.copies)
        peaks = list[Whole]()
        for left in range(1, mesh.stages + 1):
            parts = memory.parts(mesh.in_flight(left), mesh.micro_batches)
            peaks.append(np.where(self._find_allowed_stages(mesh, left), sum(parts.values()), FAR))
        return peaks

    def _find_allowed_stages(self, mesh: Mesh, left: int) -> NDArray[np.bool_]:
        """Return a table of True and False: which stages the request allows, without regard to memory.

        left: the stage's number from the end, 1 for the last stage.
        """
        # ``kinds`` has shape (4, 1, 1): a stage may recompute or not, and be sharded or not. The upper
        # triangle keeps only entries with first < last, because a stage has at least one layer.
        recompute, size = self.request.split.recompute, self.request.model.num_hidden_layers + 1
        kinds = np.where(RECOMPUTES, recompute != "never", recompute != "always")
        is_end = left in (1, mesh.stages)
        kinds = kinds & ((mesh.shards_ends == SHARDED) if is_end else (mesh.shards_middle | ~SHARDED))
        return kinds & np.triu(np.ones((size, size), dtype=np.bool_), 1)

    def _make_tables(self, rows: int, copies: int) -> tuple[Mapping[str, Real], StageMemory]:
        """Return the tables of times and memory of all stages, for a number of rows and of copies."""
        # A single stage is plain data parallelism, where gradients are summed in buckets as wide as the
        # model. Clipping each micro-batch needs its gradients apart from the sums.
        request, intervals = self.request, Intervals(self.costs(rows))
        is_whole = request.devices == copies
        clips = is_whole and request.update.clips_micro_batches
        in_buckets = is_whole and copies > 1 and not clips
        memory = StageMemory(
            intervals, copies, find_optimiser_costs(request.update.optimiser), in_buckets, clips
        )
        sharding = request.sharding or ShardingRate(request.bandwidth, request.bandwidth)
        return compute_stage_times(intervals, copies, request.bandwidth, sharding), memory

    def _convert_to_units(self, seconds: Real) -> Whole:
        """Convert seconds to the search's unit of time, rounded to whole numbers."""
        return np.rint(seconds / self._unit).astype(np.int64)


def _explain_no_fit(planner: Planner) -> str:
    """Return the error message: how much memory is missing for the plan that needs least, and what would be
    enough.
    """
    request, margin = planner.request, planner.request.split.memory_margin
    needed, mesh = planner.find_least_memory()
    usable = request.usable_memory
    enough = math.ceil(needed / (1 - margin) / 1e7) * 1e7  # rounded up to 0.01 GB, as printed
    more = _find_enough_devices(planner)
    return (
        f"plan: a device needs at least {_format_gb(needed)} (stages: {mesh.stages}, copies: {mesh.copies}, "
        f"micro-batches: {mesh.micro_batches}, rows of each: {mesh.rows}), "
        f"{_format_gb(needed - usable)} more than the {_format_gb(usable)} that memory_margin {margin:g} "
        f"leaves of {_format_gb(request.memory)}; it would fit into {_format_gb(enough)} a device"
        + (f", or on {more} devices of this memory" if more else "")
    )


def _find_enough_devices(planner: Planner) -> int | None:
    """Return the smallest of 2, 4, ..., 64 times the number of devices with which a plan fits.

    None if no plan fits even with 64 times as many devices.
    """
    free = planner.request.changed(stages=None, copies=None)
    for power in range(1, 7):
        request = replace(free, devices=free.devices << power)
        try:
            other = Planner(request, planner.costs)
        except SettingsError:
            continue
        if other.find_least_memory()[0] <= request.usable_memory:
            return request.devices
    return None


def _format_gb(size: float) -> str:
    """Return bytes in GB, with two decimals."""
    return f"{size / 1e9:,.2f} GB"
