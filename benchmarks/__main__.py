"""All figures of the README: ``make bench`` (some minutes). Each benchmark runs in a process of its own."""

import subprocess
import sys

from benchmarks import corpus

ALWAYS = (
    "examples",
    "stages",
    "tokenizing",
    "two_workers",
    "beam_overhead",
    "long_run",
    "scaling",
    "loader",
    "training",
)
WITH_THE_KIT = ("punkt", "segmenting", "extract", "wikipedia", "cost_model", "learning")


def main() -> None:
    # A child's peak memory counts that of the parent it was forked from: this parent stays small.
    for name in ALWAYS + (WITH_THE_KIT if corpus.kit() else ()):
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
    if corpus.kit() is None:
        print("no reference kit (BERTDATA_REFERENCE_KIT): the text stages are left out")


if __name__ == "__main__":
    main()
