"""Whole fine-tuning runs of this trainer and of transformers' Trainer, scored by the same functions.

The results of finished runs are kept, so that an interrupted benchmark can continue.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import measure
from benchmarks.fine_tuning.task import BenchmarkTask, TaskData

OURS, PEER = "bertdata", "transformers"
PROGRAMS = (OURS, PEER)


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """Result of a run: the task's metric on the evaluation file, in points, and the time of the whole
    command.

    The time is in CPU seconds and in wall seconds.
    """

    points: float
    cpu: float
    wall: float


def make_command(program: str, task: BenchmarkTask, data: TaskData, seed: int, output_dir: Path) -> list[str]:
    """Return the command that trains on the task's files and predicts, with this trainer or another program.

    program: "trainer" for this trainer, or the name of the other program.
    """
    files = ["--train-file", str(data.train), "--eval-file", str(data.evaluation)]
    files += ["--output-dir", str(output_dir), "--seed", str(seed)]
    if program == PEER:
        weights = ["--weights", str(data.weights)]
        return [sys.executable, "-m", "benchmarks.fine_tuning.peer", task.name, *weights, *files]
    return [
        *(sys.executable, "-m", "trainer", "finetune", "--task", task.name),
        *("--start-from-ckpt", str(data.weights), *files),
        *("--max-seq-length", str(task.length), "--batch-size", str(task.batch_size)),
        *("--num-train-epochs", str(task.epochs), "--base-learning-rate", str(task.rate)),
        *("--optimiser", "adamw", "--weight-decay", "0"),
        *("--lr-schedule", "polynomial_decay", "--warmup", str(task.warmup)),
        *("--clipping", "per_update", "--max-grad-norm", "1.0"),
        *("--eval-every", "0", "--checkpoint-every", "0"),
    ]


def compute_score(task: BenchmarkTask, data: TaskData, output_dir: Path) -> float:
    """Score the predictions in the directory by the task's official metric, and return the points."""
    predictions = output_dir / f"predictions.{'json' if task.is_squad else 'tsv'}"
    files = [str(data.evaluation), str(predictions), "--json"]
    command = [sys.executable, "-m", "trainer", "score", "--task", task.name, *files]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    metric: float = json.loads(found.stdout)[task.metric]
    return task.points * metric


def find_or_make_run(program: str, task: BenchmarkTask, data: TaskData, seed: int, place: Path) -> Result:
    """Return the result of a run. The run is made only if there is no result for the same settings yet.

    place: directory in which results are kept.
    """
    settings = {**task.as_json(), "threads": os.environ["OMP_NUM_THREADS"]}
    output_dir = place / f"{task.name}-{program}-{seed}"
    kept = output_dir.with_suffix(".json")
    if kept.exists():
        value = json.loads(kept.read_text(encoding="utf-8"))
        if value["settings"] == settings:
            return Result(**value["result"])
    shutil.rmtree(output_dir, ignore_errors=True)
    cost = measure.measure_command(*make_command(program, task, data, seed, output_dir))
    result = Result(points=compute_score(task, data, output_dir), cpu=cost.cpu, wall=cost.wall)
    kept.write_text(json.dumps({"settings": settings, "result": asdict(result)}), encoding="utf-8")
    shutil.rmtree(output_dir)
    return result


def compare_runs(task: BenchmarkTask, data: TaskData, seeds: Sequence[int], place: Path) -> None:
    """Print a table of the runs of both trainers with each seed. The two trainers run alternately.

    place: directory in which results are kept.
    """
    place.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Result]] = {program: [] for program in PROGRAMS}
    for seed in seeds:
        for program in PROGRAMS:
            found[program].append(find_or_make_run(program, task, data, seed, place))
            one = found[program][-1]
            print(
                f"  {task.name}, seed {seed}, {program}: {task.metric} {one.points:.2f}, "
                f"{one.cpu:.0f} CPU s, {one.wall:.0f} s",
                flush=True,
            )
    means = {program: sum(one.points for one in results) / len(seeds) for program, results in found.items()}
    cpu = {program: sum(one.cpu for one in results) / len(seeds) for program, results in found.items()}
    for program in PROGRAMS:
        print(f"{task.name}, {len(seeds)} seeds, {program}: mean {task.metric} {means[program]:.2f}, "
              f"{cpu[program] / task.epochs:.0f} CPU s an epoch, start and evaluation included")  # fmt: skip
    print(f"{task.name}: ours {means[OURS] - means[PEER]:+.2f} points (wanted: at least -{task.bar:g})")
