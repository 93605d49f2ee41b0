"""The command ``python -m trainer finetune``."""

from bertdata.cli.common.door_words import take_print_config
from trainer.collectives.launchers import launched
from trainer.extensions.finetuning.task_config import make_task_config
from trainer.run.path_check import check_paths
from trainer.run.pretrain_command import announce_torch, print_phases


def run(arguments: list[str]) -> None:
    """Train a task from a checkpoint, evaluate and predict."""
    words, printing = take_print_config(arguments)
    config = make_task_config(words)
    if printing:
        return print_phases("trainer finetune", [config])
    check_paths([config])
    if launched(config, "finetune", *arguments):
        return
    announce_torch()
    from trainer.extensions.finetuning.finetune import finetune

    finetune(config)
