"""The command line of ``python -m trainer finetune``."""

from bertdata.cli.common.print_config_flag import remove_print_config_flag
from trainer.commands.pretrain import import_torch, print_phases, warn_of_contradictions
from trainer.config.task_config import make_layered_task, require_task
from trainer.run.path_check import check_paths
from trainer.workers.launch import launch_workers


def run(arguments: list[str]) -> None:
    """Fine-tune a checkpoint on a task, evaluate and predict."""
    words, printing = remove_print_config_flag(arguments)
    layered = make_layered_task(words)
    warn_of_contradictions([layered])
    if printing:
        return print_phases("trainer finetune", [layered])
    config = layered.config
    require_task(config)
    check_paths([config])
    if launch_workers(config, "finetune", *arguments):
        return
    import_torch()
    from trainer.run.finetune import finetune

    finetune(config)
