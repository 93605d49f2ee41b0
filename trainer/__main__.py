"""``python -m trainer COMMAND ...``: runs the command and turns errors into exit statuses."""

import sys

from bertdata.cli.common.dispatch import choose_command, end
from bertdata.errors import SettingsError
from trainer.collectives.launchers import EXAMPLES, as_worker, find_rank
from trainer.errors import naming_extra
from trainer.registry import find

USAGE = f"""\
Example:
{EXAMPLES}
Pre-trains BERT on the shards that bertdata makes.

usage: python -m trainer COMMAND ...    (python -m trainer COMMAND --help explains one)

"""

COMMANDS = {
    "pretrain": "train phase 1, phase 2 or both, with one worker or several",
    "finetune": "train a task (SQuAD, MRPC, a classification) from a checkpoint, evaluate and predict",
    "evaluate": "measure accuracy and loss of a checkpoint, or of each that appears (--poll)",
    "predict": "try a model on a text: words at its [MASK]s, the answer to a question, or its label",
    "features": "write the features of a file to fine-tune on as text, for audits",
    "score": "compare predictions with the right answers by a task's official metrics",
    "split": "plan how to divide a model over devices that cannot hold it alone; print and draw the plan",
    "convert": "convert a checkpoint from and to the forms of TensorFlow, NVIDIA and Hugging Face",
    "like": "run another program's command line with the meaning that it has there",
    "doctor": "list the devices, launchers and packages of this machine, and those that are missing",
}
"""The purpose of each command; trainer.registry names the functions."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status: 0 done, 1 data or training at fault, 2 wrong usage."""
    words = sys.argv[1:] if arguments is None else arguments
    interrupted = "interrupted; --resume continues from the last checkpoint"
    return end("trainer", lambda: _run(words), interrupted=interrupted, place=_place())


def _run(words: list[str]) -> int:
    name = choose_command(words, USAGE, COMMANDS)
    if name is None:
        return 0 if words else 2
    with as_worker(), naming_extra("torch", "train"):
        find("command", name)(words[1:])
    return 0


def _place() -> str:
    """This worker among several, for errors."""
    try:
        rank, size = find_rank()
    except SettingsError:  # which the command raises too
        return ""
    return f"rank {rank} of {size}: " if size > 1 else ""


if __name__ == "__main__":
    sys.exit(main())
