"""Examples of a dataset to packed rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bertdata.errors import MissingInputError, SettingsError
from bertdata.io.outputs import refuse_inputs
from bertdata.steps.open_dataset import need
from bertdata.steps.progress import OnProgress, StepProgress, silent
from bertdata.steps.values import AnyPath, optional_path, path_of, whole_number, workers_of

if TYPE_CHECKING:
    from bertdata.dataset.manifest import Manifest
    from bertdata.dataset.sorted_runs import SortedExamples
    from bertdata.packing.forecast import PackForecast
    from bertdata.packing.gather import PackedShard
    from bertdata.packing.planned_pack import PlannedPack
    from bertdata.packing.settings import PackSettings

COUNTING = "reading lengths"
SORTING = "sorting examples"
PACKING = "packing rows"


@dataclass(frozen=True, kw_only=True, slots=True)
class PackResult:
    """A packed dataset: the plan in numbers, directory and manifest, shards kept of an earlier run.

    Without directory and manifest where only the plan was asked for.
    """

    forecast: PackForecast
    directory: str | None = None
    manifest: Manifest | None = None
    kept: int = 0


def pack(
    path: AnyPath,
    output: AnyPath | None = None,
    *,
    layout: str | None = None,
    format: str | None = None,
    max_sequences_per_pack: int | None = None,
    method: str | None = None,
    plan_only: bool = False,
    num_shards: int | None = None,
    seed: int | None = None,
    unverified: bool = False,
    vocab: AnyPath | None = None,
    objective: str | None = None,
    workers: int | None = None,
    progress: OnProgress | None = None,
) -> PackResult:
    """Pack the examples of the dataset at ``path`` into rows, in ``output``, as ``bertdata pack`` does.

    layout: habana, graphcore, nvidia or flat (default). max_sequences_per_pack: 3 by default. method: lp
    (default), lpfhp or nnls. seed: of the order of examples and rows. unverified: take files of any tool
    without a manifest; vocab: theirs, or that of a dataset which has lost it. objective: one of your own
    that the examples have. plan_only: nothing is written, and no output is needed. Shards that an earlier
    run finished are kept.
    """
    need("numpy", "pack", "packing")
    from bertdata.packing.forecast import forecast_of
    from bertdata.packing.planned_pack import plan_pack
    from bertdata.packing.run import count_all, make_pack
    from bertdata.packing.source import find_source

    processes, tell = workers_of(workers), progress or silent
    settings = pack_settings(
        layout=layout,
        format=format,
        max_sequences_per_pack=max_sequences_per_pack,
        method=method,
        num_shards=num_shards,
        seed=seed,
    )
    if output is None and not plan_only:
        raise MissingInputError("no output directory given; plan_only needs none")
    if output is not None:
        refuse_inputs(path_of(output), [path_of(path), optional_path(vocab)])
    source = find_source(path_of(path), optional_path(vocab), unverified, settings.rows, objective)
    counts = count_all(source, processes, _Counting(tell, len(source.opened.shards)))
    planned = plan_pack(source, settings, counts)
    forecast = forecast_of(planned, path_of(path), with_bound=plan_only)
    if plan_only or output is None:
        return PackResult(forecast=forecast)
    directory = path_of(output)
    made = make_pack(planned, directory, processes, _Making(tell, planned))
    return PackResult(forecast=forecast, directory=directory, manifest=made.manifest, kept=made.kept)


def pack_settings(
    *,
    layout: str | None,
    format: str | None,
    max_sequences_per_pack: int | None,
    method: str | None,
    num_shards: int | None,
    seed: int | None,
) -> PackSettings:
    """The settings of these names. None: the default. SettingsError names one that cannot be."""
    need("numpy", "pack", "packing")
    from bertdata.packing.settings import PackSettings

    given: dict[str, Any] = {
        "layout": layout,
        "format": format,
        "most": _whole("max_sequences_per_pack", max_sequences_per_pack),
        "method": method,
        "seed": _integer("seed", seed),
        "num_shards": _whole("num_shards", num_shards),
    }
    return PackSettings(**{name: value for name, value in given.items() if value is not None})


class _Counting:
    """Progress while lengths are read."""

    def __init__(self, progress: OnProgress, shards: int) -> None:
        self._progress, self._shards, self._done = progress, shards, 0
        progress(StepProgress(stage=COUNTING, done=0, total=shards, unit="files"))

    def __call__(self) -> None:
        self._done += 1
        self._progress(StepProgress(stage=COUNTING, done=self._done, total=self._shards, unit="files"))


class _Making:
    """Progress while examples are sorted, then while shards are made of them."""

    def __init__(self, progress: OnProgress, planned: PlannedPack) -> None:
        self._progress = progress
        self._shards = len(planned.cuts.starts) - 1
        self._examples, self._rows = planned.plan.examples, planned.plan.rows
        self._sorted = self._packed = 0

    def __call__(self, finished: SortedExamples | PackedShard) -> None:
        from bertdata.packing.gather import PackedShard

        if isinstance(finished, PackedShard):
            self._packed += finished.entry.rows or 0
            self._tell(PACKING, self._packed, self._rows, "rows", finished.line)
        else:
            self._sorted += finished.examples
            self._tell(SORTING, self._sorted, self._examples, "examples", finished.line)

    def _tell(self, stage: str, done: int, total: int, unit: str, line: str) -> None:
        self._progress(StepProgress(stage=stage, done=done, total=total, unit=unit, finished=line))


def _whole(name: str, value: int | None) -> int | None:
    """The number, where there is one. SettingsError unless it is an integer of 1 or more."""
    return None if value is None else whole_number(name, value)


def _integer(name: str, value: int | None) -> int | None:
    """The number, where there is one. SettingsError unless it is an integer."""
    if value is not None and type(value) is not int:
        raise SettingsError(f"{name} is {value!r}, expected an integer")
    return value
