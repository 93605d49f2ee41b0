"""The step that packs a dataset's examples into rows of several examples each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertdata.errors import MissingInputError
from bertdata.io.outputs import refuse_input_as_output
from bertdata.steps.keywords import accept_keywords
from bertdata.steps.open_dataset import require_package
from bertdata.steps.pack_request import PackRequest
from bertdata.steps.progress import OnProgress, StepProgress, choose_progress
from bertdata.steps.values import convert_optional_path, convert_path, count_workers

if TYPE_CHECKING:
    from bertdata.dataset.manifest import Manifest
    from bertdata.dataset.sorted_runs import SortedExamples
    from bertdata.packing.forecast import PackForecast
    from bertdata.packing.gather import PackedShard
    from bertdata.packing.input_dataset import InputDataset
    from bertdata.packing.planned_pack import PlannedPack
    from bertdata.packing.settings import PackSettings

COUNTING = "reading lengths"
SORTING = "sorting examples"
PACKING = "packing rows"


@dataclass(frozen=True, kw_only=True, slots=True)
class PackResult:
    """The result of ``pack``.

    forecast: statistics of the planned rows, such as the share of positions that hold a token.
    directory: directory of the packed dataset. None if only the plan was asked for.
    manifest: manifest of the packed dataset. None if only the plan was asked for.
    kept: number of shards that an earlier run had finished.
    """

    forecast: PackForecast
    directory: str | None = None
    manifest: Manifest | None = None
    kept: int = 0


@accept_keywords(PackRequest)
def pack(request: PackRequest) -> PackResult:
    """Pack the examples of the dataset at ``path`` into rows in ``output``, as ``bertdata pack`` does.

    Shards that an earlier run finished are kept. With plan_only, the result describes the planned rows.
    Nothing is written, and no output is needed. vocab is required for files without a manifest, or for a
    dataset that has lost its copy of the vocabulary.
    """
    return pack_rows(request)


def pack_rows(request: PackRequest) -> PackResult:
    """Pack the request's dataset into rows, and return a description of the packed dataset."""
    require_package("numpy", "pack", "packing")
    from bertdata.packing.forecast import make_forecast
    from bertdata.packing.planned_pack import plan_pack
    from bertdata.packing.run import count_all_lengths, make_pack

    processes, on_progress = count_workers(request.workers), choose_progress(request.progress)
    settings = request.settings()
    if request.output is None and not request.plan_only:
        raise MissingInputError("no output directory given; plan_only needs none")
    source = find_pack_source(request, settings)
    counts = count_all_lengths(source, processes, _CountingProgress(on_progress, len(source.opened.shards)))
    planned = plan_pack(source, settings, counts)
    forecast = make_forecast(planned, convert_path(request.path), with_bound=request.plan_only)
    if request.plan_only or request.output is None:
        return PackResult(forecast=forecast)
    directory = convert_path(request.output)
    made = make_pack(planned, directory, processes, _WritingProgress(on_progress, planned))
    return PackResult(forecast=forecast, directory=directory, manifest=made.manifest, kept=made.kept)


def find_pack_source(request: PackRequest, settings: PackSettings) -> InputDataset:
    """Open the dataset to pack. Raises SettingsError if the output overlaps with it."""
    from bertdata.packing.input_dataset import find_input_dataset

    path, vocabulary = convert_path(request.path), convert_optional_path(request.vocab)
    if request.output is not None:
        refuse_input_as_output(convert_path(request.output), [path, vocabulary])
    return find_input_dataset(path, vocabulary, request.unverified, settings.rows, request.objective)


class _CountingProgress:
    """Callback that reports progress while the lengths of the examples are read."""

    def __init__(self, progress: OnProgress, shards: int) -> None:
        self._progress, self._shards, self._done = progress, shards, 0
        progress(StepProgress(stage=COUNTING, done=0, total=shards, unit="files"))

    def __call__(self) -> None:
        self._done += 1
        self._progress(StepProgress(stage=COUNTING, done=self._done, total=self._shards, unit="files"))


class _WritingProgress:
    """Callback that reports progress while examples are sorted, and then while shards are written."""

    def __init__(self, progress: OnProgress, planned: PlannedPack) -> None:
        self._progress = progress
        self._shards = len(planned.cuts.starts) - 1
        self._examples, self._rows = planned.plan.examples, planned.plan.rows
        self._sorted = self._packed = 0

    def __call__(self, finished: SortedExamples | PackedShard) -> None:
        from bertdata.packing.gather import PackedShard

        if isinstance(finished, PackedShard):
            self._packed += finished.entry.rows or 0
            self._report(PACKING, self._packed, self._rows, "rows", finished.line)
        else:
            self._sorted += finished.examples
            self._report(SORTING, self._sorted, self._examples, "examples", finished.line)

    def _report(self, stage: str, done: int, total: int, unit: str, line: str) -> None:
        """Pass the progress on to the caller's callback."""
        self._progress(StepProgress(stage=stage, done=done, total=total, unit=unit, finished=line))
