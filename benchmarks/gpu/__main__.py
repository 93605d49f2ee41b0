"""Test and measure the trainer on a GPU: ``python -m benchmarks.gpu [STAGE ...]``.

Each measured value is written as a line of JSON to FOLDER/figures.jsonl as soon as it is known. The output of
each step is in FOLDER/logs. docs/devices.md describes the stages.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.corpus import ROOT
from benchmarks.gpu.figures import file_size, read_figures
from benchmarks.gpu.runner import end_with_children, run_stage
from benchmarks.gpu.stages import STAGES, USUAL, StageSettings, find_stage, list_step_names
from benchmarks.gpu.summary import summarise

CONTEXT_SECONDS = 120.0
"""Seconds in which the device must answer. After them it counts as missing."""


PROCESSES = max(1, min(8, (os.cpu_count() or 1) // 2))
"""Number of processes that run the tests, if the command line does not say."""


def main(words: list[str] | None = None) -> int:
    """Run the stages that the command line names.

    Returns 0 if every step succeeded, 1 if a step failed, and 2 for wrong usage or a missing device.

    words: the command line. None: that of this process.
    """
    given = _make_parser().parse_args(words)
    names = given.stages or list(USUAL)
    folder = Path(given.output).resolve()
    plan = StageSettings(
        folder=folder,
        device=given.device,
        small=given.small or given.device == "cpu",
        processes=given.processes,
    )
    only = [name for name in given.only.split(";") if name]
    if fault := find_wrong_names(names, only, plan):
        print(f"benchmarks.gpu: {fault}", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    start = file_size(folder)
    context = find_context(given.device)
    if isinstance(context, str):
        print(f"{context}; python -m trainer doctor says more", file=sys.stderr)
        return 2
    plan = replace(plan, context=context)
    end_with_children()
    sound = [run_stage(find_stage(name, plan, only), folder, context) for name in names]
    print(f"{context['device']}; torch {context['torch']}")
    print("\n".join(summarise(read_figures(folder, start))))
    print(f"all steps done: {'yes' if all(sound) else 'no'}; figures: {folder / 'figures.jsonl'}")
    return 0 if all(sound) else 1


def find_wrong_names(stages: list[str], only: list[str], plan: StageSettings) -> str | None:
    """Return an error message if the command line names an unknown stage or step. Returns None otherwise.

    only: the steps that --only names.
    """
    for name in stages:
        if name not in STAGES:
            return f"there is no stage {name!r}; the stages are {', '.join(STAGES)}"
    known = [step for name in stages for step in list_step_names(name, plan)]
    for name in only:
        if name not in known:
            return f"--only: {', '.join(stages)} has no step {name!r}; the steps are {'; '.join(known)}"
    return None


def find_context(device: str) -> dict[str, str] | str:
    """Return the device's name and torch's version, or an error message if the device cannot be used.

    They are found in another process, because a broken device may let it hang.
    """
    command = [sys.executable, "-m", "benchmarks.gpu.context", device]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=CONTEXT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"benchmarks.gpu: device {device!r} was not found within {CONTEXT_SECONDS:.0f} s"
    if done.returncode:
        return done.stderr.strip()
    context: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    return context


def _make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument(
        "stages", nargs="*", metavar="STAGE", help=f"{', '.join(STAGES)}; default: all but options"
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: a rehearsal")
    parser.add_argument("--output", default="gpu-output", metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="STEP;STEP", help="steps of the stages to run")
    parser.add_argument("--small", action="store_true", help="tiny sizes on a GPU too")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="those that run the tests")
    return parser


if __name__ == "__main__":
    sys.exit(main())
