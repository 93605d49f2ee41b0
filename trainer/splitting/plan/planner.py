"""Search for the fastest plan that fits into the devices' memory.

A mesh says how many stages and copies there are, how many micro-batches each copy has, and how many rows a
micro-batch has. For each mesh, tables with time and memory of every possible stage are made. ``search.py``
then finds the fastest division of the layers into stages.
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
from trainer.splitting.plan.search import NOT_ALLOWED, Choice, LayerDivision, Search, find_least_maximum
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
_LARGEST_TIME = 2.0**40
"""Largest number of time units in the search for eight times all passes of a micro-batch.

The search counts time in whole nanoseconds. For slow models the unit is longer than a nanosecond, so that no
sum of times exceeds 64-bit integers.
"""


def make_plan(request: PlanRequest, costs: Costs | None = None) -> Plan:
    """Return the fastest plan for a request.

    Of equally fast plans, the plan with the fewest stages is taken, and then the plan with the fewest
    micro-batches. Pipelines with sharded stages are tried only if no other plan fits.
    costs: measured costs of the model's parts. None to compute them from the number of operations and the
        speed in the request.
    Raises SettingsError if no plan fits. The message says how much memory is missing and what would fit.
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
    """Search for a plan for one request.

    The tables of times and memory depend only on the rows of a micro-batch and the number of copies. They are
    made when they are first needed, and shared by all meshes with the same two numbers.
    """

    def __init__(self, request: PlanRequest, costs: Costs | None = None) -> None:
        self.request = request
        self.meshes = list_meshes(request)
        self.costs = costs or compute_analytic_costs(request)
        # Search with whole numbers of nanoseconds, because floats could be rounded differently on two
        # workers, which would then have different plans. A longer unit keeps the sums of slow models below
        # 2^63.
        seconds = 8 * self.costs(max(mesh.rows for mesh in self.meshes)).seconds
        self._unit = NANOSECOND * max(1.0, seconds / NANOSECOND / _LARGEST_TIME)
        self._tables = cache(self._make_tables)

    def fastest_plan(self) -> Plan | None:
        """Return the fastest plan that fits, or None if no plan fits."""
        # The best time so far is the limit for the next meshes, so most of these searches end at once. Meshes
        # with few stages and few micro-batches come first. Only a strictly faster plan replaces the best, so
        # of equally fast plans the first is kept.
        best: tuple[Mesh, LayerDivision] | None = None
        below = NOT_ALLOWED
        for mesh in self.meshes:
            if (found := self._find_fastest(mesh, below)) is not None:
                best, below = (mesh, found), found.passes(mesh.micro_batches) + found.end
        return None if best is None else self._make_plan(*best)

    def _find_fastest(self, mesh: Mesh, below: int) -> LayerDivision | None:
        """Return the fastest division of the layers into stages on this mesh.

        None if no division is fast enough.

        below: the number of time units that the division must be faster than.
        """
        # Compute a lower bound without any search. The slowest stage takes at least the mean over the stages.
        # So an update's passes take sum + (m - 1) * slowest >= sum * (1 + (m - 1) / stages).
        passes = self.costs(mesh.rows).seconds / self._unit * (1 + (mesh.micro_batches - 1) / mesh.stages)
        # The search rounds each stage's time to a whole unit, which makes it smaller by half a unit at most.
        # So subtract more than all rounding together before comparing.
        if passes - mesh.stages * mesh.micro_batches >= below:
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
        """Return the plan with this mesh and this division of the layers."""
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
        """Return a stage of the plan, with its times and memory.

        left: number of the stage, counted from the end. The last stage has 1.
        """
        times, memory = self._tables(mesh.rows, mesh.copies)
        parts = memory.find_peaks(mesh.count_in_flight(left), mesh.micro_batches)
        return StagePlan(
            first=choice.first,
            last=choice.last,
            recomputes=bool(RECOMPUTES[choice.kind]),
            sharded=bool(SHARDED[choice.kind]),
            memory=Memory(**{name: int(part[choice]) for name, part in parts.items()}),
            **{name: float(one[choice]) for name, one in times.items()},
        )

    def find_least_memory(self) -> tuple[int, Mesh]:
        """Return the least memory in bytes per device that any plan needs, and the mesh of that plan."""
        found = ((find_least_maximum(self._find_allowed_peaks(mesh)), mesh) for mesh in self.meshes)
        return min(((needed, mesh) for needed, mesh in found if needed is not None), key=itemgetter(0))

    def _find_allowed_peaks(self, mesh: Mesh) -> list[Whole]:
        """Return, for each stage of the pipeline from the last to the first, a table of the
        stage's peak memory.

        Each table has shape (kinds, L + 1, L + 1) for L layers, as in ``stages.py``: by kind of stage, first
        layer, and end. Values are in bytes, or NOT_ALLOWED for stages that the request does not allow.
        """
        _, memory = self._tables(mesh.rows, mesh.copies)
        peaks = list[Whole]()
        for left in range(1, mesh.stages + 1):
            parts = memory.find_peaks(mesh.count_in_flight(left), mesh.micro_batches)
            peaks.append(np.where(self._find_allowed_stages(mesh, left), sum(parts.values()), NOT_ALLOWED))
        return peaks

    def _find_allowed_stages(self, mesh: Mesh, left: int) -> NDArray[np.bool_]:
        """Return a table of True and False that says which stages the request allows,
        whatever memory they need.

        left: number of the stage, counted from the end. The last stage has 1.
        """
        # ``kinds`` has shape (4, 1, 1), because there are four kinds of stages: each may recompute
        # activations or not, and be sharded or not. The upper triangle keeps only entries with first < last,
        # because a stage has at least one layer.
        recompute, size = self.request.split.recompute, self.request.model.num_hidden_layers + 1
        kinds = np.where(RECOMPUTES, recompute != "never", recompute != "always")
        is_end = left in (1, mesh.stages)
        kinds = kinds & ((mesh.shards_ends == SHARDED) if is_end else (mesh.shards_middle | ~SHARDED))
        return kinds & np.triu(np.ones((size, size), dtype=np.bool_), 1)

    def _make_tables(self, rows: int, copies: int) -> tuple[Mapping[str, Real], StageMemory]:
        """Return the tables of times and of memory of all possible stages.

        rows: rows of a micro-batch.
        copies: number of copies of each stage.
        """
        # With a single stage, gradients are summed over the workers in buckets that hold all weights. If each
        # micro-batch is clipped, its gradients must be kept apart from the sums.
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
    """Return the error message for a request that no plan fits.

    The message says how much memory the plan with the least memory lacks, and what would be enough.
    """
    request, margin = planner.request, planner.request.split.memory_margin
    needed, mesh = planner.find_least_memory()
    usable = request.usable_memory
    # rounded up to 0.01 GB, because two decimals are printed
    enough = math.ceil(needed / (1 - margin) / 1e7) * 1e7
    more = _find_enough_devices(planner)
    return (
        f"plan: a device needs at least {_format_gb(needed)} (stages: {mesh.stages}, copies: {mesh.copies}, "
        f"micro-batches: {mesh.micro_batches}, rows of each: {mesh.rows}), "
        f"{_format_gb(needed - usable)} more than the {_format_gb(usable)} that memory_margin {margin:g} "
        f"leaves of {_format_gb(request.memory)}; it would fit into {_format_gb(enough)} a device"
        + (f", or on {more} devices of this memory" if more else "")
    )


def _find_enough_devices(planner: Planner) -> int | None:
    """Return a number of devices with which a plan fits: the smallest of 2, 4, ..., 64
    times the present number.

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
    """Return a number of bytes as text in GB, with two decimals."""
    return f"{size / 1e9:,.2f} GB"
