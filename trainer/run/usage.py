"""The help of ``python -m trainer``: its commands, and a first run."""

from bertdata.cli.common.dispatch import choose_command

EXAMPLES = """\
  python -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
  horovodrun -np 2 python -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
  torchrun --nproc-per-node 2 -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
"""
"""A first run, started without and with each launcher."""

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
    "report": "make one page of a run, or of several over each other: curves, evaluations, settings, data",
    "convert": "convert a checkpoint from and to the forms of TensorFlow, NVIDIA and Hugging Face",
    "like": "run another program's command line with the meaning that it has there",
    "doctor": "list the devices, launchers and packages of this machine, and those that are missing",
}
"""One line about each command. ``trainer.plugins`` names the functions."""


def print_usage(words: list[str]) -> int:
    """Print the help. Return exit status 2 if no word asks for help.

    Raises UsageError if the first word is not a command.
    """
    choose_command(words, USAGE, COMMANDS)
    return 0 if words else 2
