"""The function ``trainer.finetune``."""

from typing import Any

from trainer.commands.pretrain import warn_of_contradictions
from trainer.config.task_config import make_layered_task, require_task
from trainer.errors import name_missing_extra
from trainer.functions.keys import format_call, make_words
from trainer.functions.progress import Progress, announce_torch, watch
from trainer.functions.results import TrainingResult
from trainer.run.path_check import check_paths


def finetune(*, progress: Progress = None, **keys: Any) -> TrainingResult:
    """Fine-tune a model on a task, as ``python -m trainer finetune`` does, and return what was logged.

    The keywords are the keys of the configuration, as for ``pretrain``: ``task``, ``start_from_ckpt``,
    ``train_file``, ``eval_file``, ``output_dir`` and so on (docs/finetuning.md).

    progress: as for ``pretrain``.

    Raises UsageError (or a subclass) if a key is wrong, and DataError or TrainerError (or subclasses) if the
    data or the training are at fault.
    """
    with watch(progress) as watched, name_missing_extra("torch", "train"):
        layered = make_layered_task(make_words(keys))
        warn_of_contradictions([layered])
        require_task(layered.config)
        check_paths([layered.config])
        announce_torch()
        from trainer.functions.training import describe_training
        from trainer.run.finetune import finetune as run_task

        run_task(layered.config, loggers=[watched.logger], call=format_call("finetune", keys))
    return describe_training(layered.config, watched)
