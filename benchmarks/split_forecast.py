"""Comparison of the planner's forecasts for split models with real updates: memory of a process, and seconds.

Each case is trained by separate processes with one thread each, on generated full sequences in flat batches.

Memory is how much the resident memory grows until its peak during several updates. malloc is set to return
large blocks at once, and a small model is trained first, so that the libraries are already loaded. The table
also has the peak of the tensors' bytes, which does not include tensors that FSDP2 frees in its own way.

Seconds are forecast from costs and bandwidths that the same processes measure just before, as with
--profile-layers. Forecasts and updates alternate, and the median of their ratios counts, because the speed of
a shared machine changes. The exit status is 1 if a forecast of seconds is wrong by more than BAR.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.split_cases import LENGTH, MASKED, MEMORY, TIME, Case
from bertdata.records import ShardLayout
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.run.runtime import make_model, open_runtime
from trainer.run.strategies import find_strategy
from trainer.splitting.pieces import find_planned_division
from trainer.splitting.placing import add_bandwidths
from trainer.splitting.plan.footprint import LiveBytes
from trainer.splitting.plan.plan import Plan, parse_plan
from trainer.splitting.plan.planner import make_plan
from trainer.splitting.plan.profile import measure_costs
from trainer.splitting.plan.request import PlanRequest
from trainer.update.strategy import UpdateNumber
from trainer.update.worker import Runtime

ROUNDS = 3
UPDATES = 2
"""Number of updates that are timed in a round. Their mean time counts."""

BAR = 0.2
"""Largest accepted error of a forecast of seconds, as a share of the measured seconds."""

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node")


def main(arguments: Sequence[str]) -> int:
    """Run all cases. Returns 1 if a forecast of seconds is wrong by more than BAR, otherwise 0."""
    if arguments[:1] == ["--worker"]:
        _, kind, number, folder = arguments
        run_process(kind, int(number), Path(folder))
        return 0
    status = 0
    kinds = {"memory": MEMORY, "time": TIME}
    wanted = arguments or list(kinds)
    for kind in wanted:
        print(HEADS[kind])
        errors = dict[str, float]()
        for number, case in enumerate(kinds[kind]):
            for rank, result in enumerate(run_case(kind, number, case.request.devices)):
                print(ROWS[kind](case, rank, result), flush=True)
                if kind == "time":
                    errors[f"{case.name}, process {rank}"] = result["ratio"] - 1
        print()
        if errors:
            line, holds = find_worst(errors)
            print(line)
            status = 0 if holds else 1
    return status


def find_worst(errors: Mapping[str, float]) -> tuple[str, bool]:
    """Return a line about the largest error, and True if this error is not larger than BAR.

    errors: error of each row of the table, by the row's name.
    """
    name = max(errors, key=lambda row: abs(errors[row]))
    holds = abs(errors[name]) <= BAR
    words = f"the bar of {BAR:.0%} was {'held' if holds else 'missed'}"
    return f"worst forecast of seconds: {errors[name]:+.1%} ({name}); {words}", holds


def run_case(kind: str, number: int, workers: int) -> list[dict[str, Any]]:
    """Run the processes of a case and return what each of them has measured.

    kind: "memory" or "time".
    number: number of the case.
    workers: number of processes.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = (
            (*TORCHRUN, str(workers), "-m", "benchmarks.split_forecast")
            if workers > 1
            else (sys.executable, "-m", "benchmarks.split_forecast")
        )
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if kind == "memory":
            environment["MALLOC_MMAP_THRESHOLD_"] = "65536"
        subprocess.run(
            (*command, "--worker", kind, str(number), folder),
            check=True,
            env=environment,
            capture_output=True,
        )
        return [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(workers)]


def run_process(kind: str, number: int, folder: Path) -> None:
    """Do the work of one process of a case, and write its result to the file RANK.json in the folder."""
    torch.set_num_threads(1)
    case = {"memory": MEMORY, "time": TIME}[kind][number]
    request = case.request
    keys = ("optimiser", "batch_size", "precision", "clipping")
    config = Config.of(**{name: getattr(request.update, name) for name in keys})
    runtime = open_runtime(config)
    rank = runtime.collective.rank
    measure = measure_memory if kind == "memory" else measure_time
    (folder / f"{rank}.json").write_text(json.dumps(measure(request, runtime)))
    runtime.collective.close()


def measure_memory(request: PlanRequest, runtime: Runtime) -> dict[str, Any]:
    """Return the forecast growth and the measured growth of this process's memory, in bytes."""
    plan = make_plan(request)
    warm_up(plan, request, runtime)
    before = read_resident_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # This resets the peak of the resident memory.
    with LiveBytes() as live:
        update = make_updater(plan, request, runtime)
        # The optimiser's moments exist only after the first update. So two updates are made, and the peak of
        # the second counts.
        for _ in range(2):
            update()
    stage = plan.stages[runtime.collective.rank // plan.copies]
    return {
        "forecast": stage.memory.total,
        "tensors": live.peak,
        "resident": read_resident_bytes("VmHWM") - before,
    }


def measure_time(request: PlanRequest, runtime: Runtime) -> dict[str, Any]:
    """Return the forecast seconds and the measured seconds of an update, and their ratio.

    Each of the three is the median of several rounds.
    """
    update = make_updater(make_profiled_plan(request, runtime), request, runtime)
    update()
    forecasts, measured = [], []
    for _ in range(ROUNDS):
        forecasts.append(make_profiled_plan(request, runtime).seconds)
        runtime.collective.barrier()
        start = time.perf_counter()
        for _ in range(UPDATES):
            update()
        measured.append((time.perf_counter() - start) / UPDATES)
    ratios = [forecast / found for forecast, found in zip(forecasts, measured, strict=True)]
    return {"forecast": median(forecasts), "measured": median(measured), "ratio": median(ratios)}


def make_profiled_plan(request: PlanRequest, runtime: Runtime) -> Plan:
    """Return the plan that the planner makes from costs and bandwidths that all processes have measured."""
    if runtime.collective.size > 1:
        request = add_bandwidths(request, runtime)
    plan = make_plan(request, measure_costs(request, runtime.device, runtime.collective))
    return parse_plan(runtime.on_rank_0(plan.as_json), "rank 0")


def make_updater(plan: Plan, request: PlanRequest, runtime: Runtime) -> Callable[[], object]:
    """Return a function that makes an update with a model that is split by the plan."""
    runtime = replace(runtime, model_share=find_planned_division(runtime.collective, plan))
    model = make_model(runtime, request.model)
    model.bert.recomputes = plan.stages[runtime.model_share.stage].recomputes
    strategy = find_strategy(runtime.worker(model))
    batches = make_micro_batches(request, plan.micro_batches)
    count = iter(range(1_000_000))
    return lambda: strategy.update([batches], 1e-4, UpdateNumber(0, step := next(count), step))


def make_micro_batches(request: PlanRequest, count: int) -> list[Batch]:
    """Return ``count`` flat micro-batches of sequences with the greatest length."""
    assert request.update.batch_size is not None
    layout = ShardLayout(max_seq_length=LENGTH, max_predictions_per_seq=MASKED)
    data = generate_data(layout, vocabulary_size=request.model.vocab_size, seed=1)
    form = make_form(Rows(data), batch_size=request.update.batch_size)
    loader = Loader(Rows(data), form=form, batch_size=request.update.batch_size)
    found = [update.batches[0] for update in islice(loader, count)]
    loader.close()
    return found


def warm_up(plan: Plan, request: PlanRequest, runtime: Runtime) -> None:
    """Make updates of a small model that is split in the same way.

    Afterwards all libraries that an update needs are loaded.
    """
    sizes = {"vocab_size": 64, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
    update = make_updater(plan, replace(request, model=replace(request.model, **sizes)), runtime)
    for _ in range(2):
        update()
    del update
    gc.collect()


def read_resident_bytes(name: str) -> int:
    """Return the value of an entry of /proc/self/status in bytes.

    name: name of the entry, such as VmHWM.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def _format_memory_row(case: Case, rank: int, result: dict[str, Any]) -> str:
    """Return the table's row about the memory of a process of a case."""
    forecast, tensors, grown = (result[name] / 2**20 for name in ("forecast", "tensors", "resident"))
    return (
        f"| {case.name} | {rank} | {forecast:,.0f} | {tensors:,.0f} | {forecast / tensors - 1:+.1%} "
        f"| {grown:,.0f} | {forecast / grown - 1:+.1%} |"
    )


def _format_time_row(case: Case, rank: int, result: dict[str, Any]) -> str:
    """Return the table's row about the seconds of an update of a case."""
    forecast, measured, ratio = (result[name] for name in ("forecast", "measured", "ratio"))
    return f"| {case.name} | {rank} | {forecast:.2f} | {measured:.2f} | {ratio - 1:+.1%} |"


HEADS = {
    "memory": "| case | process | forecast, MiB | tensors, MiB | forecast | resident, MiB | forecast |\n"
    "|---|---|---|---|---|---|---|",
    "time": "| case | process | forecast, s | update, s | forecast |\n|---|---|---|---|---|",
}
ROWS = {"memory": _format_memory_row, "time": _format_time_row}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
