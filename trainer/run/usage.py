"""The help of ``python -m trainer``: its commands, and examples for a first run."""

from bertdata.cli.common.dispatch import choose_command

EXAMPLES = """\
  python -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
  horovodrun -np 2 python -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
  torchrun --nproc-per-node 2 -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
"""
"""Examples for a first run: with one worker, and with two workers started by each kind of launcher."""

USAGE = f"""\
Example:
{EXAMPLES}
Trains and fine-tunes BERT and its relatives on datasets made by bertdata.

usage: python -m trainer COMMAND ...    (python -m trainer COMMAND --help explains one)

"""

COMMANDS = {
    "pretrain": "train phase 1, phase 2 or both, with one worker or several",
    "finetune": "fine-tune a checkpoint on a task (SQuAD, GLUE, your own table), evaluate and predict",
    "evaluate": "measure accuracy and loss of a checkpoint, or of each new checkpoint (--poll)",
    "predict": "try a model on a text: words at [MASK], the answer to a question, or a label",
    "features": "write the features of a fine-tuning file as text or as a dataset",
    "score": "compare predictions with the right answers, using a task's official metrics",
    "split": "plan how to split a model that is too large for one device; print and draw the plan",
    "report": "make an HTML page about one or several runs: curves, evaluations, settings, data",
    "convert": "convert checkpoints from and to the formats of TensorFlow, NVIDIA and Hugging Face",
    "like": "run another program's command line with the same meaning",
    "doctor": "list the devices, launchers and packages of this machine, and what is missing",
}
"""One line about each command. ``trainer.plugins`` has the function that runs a command."""


def print_usage(words: list[str]) -> int:
    """Print the help. Return the exit status: 0 if a word asks for help, otherwise 2.

    Raises UsageError if the first word is not a command.
    """
    choose_command(words, USAGE, COMMANDS)
    return 0 if words else 2
