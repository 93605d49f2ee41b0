"""Repeat recorded training runs of original programs, and compare the losses (``docs/reliability.md``).

    python -m benchmarks.trajectories [--runs DIR] [--only NAME]

DIR contains the folders ``runs``, ``examples`` and ``init``, or is itself the folder ``runs``. By default it
is the reference kit's. The exit status is 1 if the losses of one of the first updates differ by BOUND or
more.
"""

import argparse
import sys
import time
from pathlib import Path

import torch

from benchmarks import corpus
from benchmarks.trajectories.recorded import RecordedRun, read_run
from benchmarks.trajectories.training import Losses, train_again

BOUND = 1e-4
BOUND_UPDATES = 100
"""Number of updates at the beginning whose losses are compared with the bound.

Small models are chaotic: later, a difference in rounding may be enough to separate two runs.
"""


def main() -> None:
    """Repeat the runs with this trainer and print the table of differences."""
    given = _parse_arguments()
    directory = given.runs / "runs" if (given.runs / "runs").is_dir() else given.runs
    runs = sorted(directory.glob("*.json"))
    if not runs:
        sys.exit(f"{given.runs}: holds no recorded runs")
    root = directory.parent
    print("| run | updates | to update 100 | to the end | bound | known to differ |")
    print("|---|---|---|---|---|---|", flush=True)
    fell = 0
    for path in runs:
        if given.only and given.only not in path.stem:
            continue
        run = read_run(path, root)
        begun = time.monotonic()
        losses = train_again(run, root)
        fell += _print_run(run, losses)
        print(f"{run.name}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
    if fell:
        sys.exit(f"{fell} of the runs differ by {BOUND:g} or more within {BOUND_UPDATES} updates")


def _print_run(run: RecordedRun, losses: Losses) -> bool:
    """Print the run's line of the table. Returns True if a loss differs by BOUND or more."""
    early = losses.find_largest_difference(min(BOUND_UPDATES, run.updates))
    falls = not early < BOUND  # This is not written with >=, so that NaN counts as a difference too.
    verdict = f"{BOUND:g}{', fell' if falls else ''}"
    end = losses.find_largest_difference(run.updates)
    cells = (run.name, run.updates, f"{early:.1e}", f"{end:.1e}", verdict, _describe_differences(run, losses))
    print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return falls


def _describe_differences(run: RecordedRun, losses: Losses) -> str:
    """Return the known differences between our repetition of a run and the run's command line."""
    found = []
    if losses.late:
        found.append(f"{losses.late} rates of the update after: the program gives no order for its counter")
    if run.clips_whole:
        found.append("the original was changed to clip by whole gradients")
    return "; ".join(found)


def _parse_arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        description="Compare the losses of recorded trainings with the product's."
    )
    kit = corpus.find_kit()
    usual = None if kit is None else Path(kit, "trajectories", "runs")
    parser.add_argument("--runs", type=Path, default=usual, help="directory of runs (default: the kit's)")
    parser.add_argument("--only", help="runs whose name has this in it")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if given.runs is None:
        parser.error("there is no reference kit (BERTDATA_REFERENCE_KIT); give --runs")
    torch.set_num_threads(given.threads)
    return given


if __name__ == "__main__":
    main()
