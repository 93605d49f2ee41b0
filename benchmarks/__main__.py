"""Run all benchmarks whose figures are in docs/speed.md, each in its own process (``make bench``).

This takes 20 minutes.
"""

import subprocess
import sys

from benchmarks import corpus

ALWAYS = (
    "examples",
    "stages",
    "tokenizing",
    "byte_bpe",
    "two_workers",
    "beam_overhead",
    "long_run",
    "scaling",
    "loader",
    "dynamic_masks",
    "modernbert_loader",
    "fairseq_masks",
    "training",
    "modernbert_training",
    "flat_batches",
    "packed_training",
    "optimiser_step",
    "arrow",
    "records",
    "report_page",
)
WITH_THE_KIT = (
    "punkt",
    "segmenting",
    "bzip2",
    "extract",
    "wikipedia",
    "cost_model",
    "learning",
    "squad_features",
)


def main() -> None:
    # A child's peak memory includes the parent's memory at the fork, so this process stays small.
    """Run each benchmark in a new process, one after another."""
    for name in ALWAYS + (WITH_THE_KIT if corpus.find_kit() else ()):
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
    if corpus.find_kit() is None:
        print("no reference kit (BERTDATA_REFERENCE_KIT): benchmarks of the text stages were skipped")


if __name__ == "__main__":
    main()
