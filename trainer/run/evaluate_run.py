"""The command ``evaluate``, for pre-training and for the task on which a run was fine-tuned."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertdata.io import storage
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.formats.hub_cache import find_pretrained
from trainer.checkpoints.learned_task import make_learned_task_config
from trainer.checkpoints.reading import choose_best_checkpoint, choose_checkpoint, read_state
from trainer.checkpoints.source import find_trainer_checkpoint, open_checkpoint
from trainer.config.flags import make_config
from trainer.config.settings import Config
from trainer.config.task_config import make_task_config, select_fine_tuned_keys
from trainer.config.task_names import expand_task_flags
from trainer.errors import CheckpointError
from trainer.logs.reporter import Logger
from trainer.plugins import FINE_TUNED
from trainer.run.evaluate import evaluate_checkpoints
from trainer.run.remote_output import list_changed_flags, localise_evaluation, naming_urls
from trainer.run.runtime import connect_workers
from trainer.tasks.task_files import find_files, warn_of_same_file
from trainer.update.worker import Runtime


def evaluate_run(
    arguments: Sequence[str],
    prog: str,
    *,
    poll: bool = False,
    timeout: float = math.inf,
    loggers: Sequence[Logger] = (),
) -> None:
    """Run the command ``evaluate``.

    Task and settings of a fine-tuned run are read from its checkpoint.
    arguments: the words of the command line.
    prog: name of the command, for help and error messages.
    poll: evaluate each checkpoint that appears in the run's directory.
    timeout: seconds without a new checkpoint after which polling ends.
    loggers: further logs of the caller, which get everything that is logged.
    """
    given = make_config(expand_task_flags(arguments), prog)
    given.require("output_dir")
    runtime = replace(localise_evaluation(connect_workers(given), poll=poll), loggers=tuple(loggers))
    with naming_urls(runtime):
        _evaluate_run(runtime, given, arguments, prog, poll=poll, timeout=timeout)
    runtime.collective.close()


def _evaluate_run(
    runtime: Runtime, given: Config, arguments: Sequence[str], prog: str, *, poll: bool, timeout: float
) -> None:
    """Evaluate a run, after the workers have been connected and URLs replaced by local directories.

    given: the configuration with URLs.
    """
    # Later flags override earlier ones.
    arguments = [*arguments, *list_changed_flags(given, runtime.config)]
    given = runtime.config
    trained = runtime.on_rank_0(lambda: read_trained_settings(given))
    if given.is_finetuning or trained.get("task") in FINE_TUNED:
        evaluate_fine_tuned(runtime, trained, arguments, prog, poll=poll, timeout=timeout)
    else:
        runtime = runtime.changed(make_config(arguments, prog))
        runtime.on_rank_0(lambda: runtime.config.require("eval_data"))
        runtime.log_idle_keys()
        evaluate_checkpoints(runtime, poll=poll, timeout=timeout)


def read_trained_settings(config: Config) -> dict[str, Any]:
    """Return the configuration stored in the checkpoint that would be evaluated first, or {} if there is
    none.

    If the checkpoint is another program's, and the configuration names a file of labelled data, the model's
    head (its output layer) determines the task.
    """
    path = _find_first_checkpoint(config)
    if path is None:
        return _find_head_settings(config)
    try:
        return read_state(path).config
    except CheckpointError:
        if path.exists():
            raise
        # The checkpoint was removed after it was found, because the run has written a newer one. So search
        # again.
        return read_trained_settings(config)


def _find_head_settings(config: Config) -> dict[str, Any]:
    """Return the task and the labels that the head (output layer) of another program's model determines.

    Returns {} if the configuration has a task, or names no file of labelled data.
    """
    given, path = config.finetuning, config.start.start_from_ckpt
    has_files = given.task_eval_file or given.task_predict_file or given.task_dir
    if path is None or given.is_finetuning or not has_files:
        return {}
    model_config = config.model.model_config
    checkpoint = open_checkpoint(find_pretrained(path), model_config=model_config, with_moments=False)
    learned = make_learned_task_config(checkpoint)
    names = ("task", "labels", "regression")
    return {name: learned.values()[name] for name in names} if learned.is_finetuning else {}


def _find_first_checkpoint(config: Config) -> Path | None:
    """Return this trainer's checkpoint that would be evaluated first, or None if there is none yet."""
    run, start = config.run, config.start
    if start.start_from_ckpt is not None:
        path = start.start_from_ckpt
        if (own := find_trainer_checkpoint(path)) is not None or storage.exists(path):
            return own
        return find_trainer_checkpoint(find_pretrained(path))
    if run.output_dir is None or not find_checkpoints(run.output_dir):
        return None
    if start.resume_step is None:
        return choose_best_checkpoint(run.output_dir)[0]
    return choose_checkpoint(run.output_dir, start.resume_step)


def evaluate_fine_tuned(
    runtime: Runtime,
    trained: Mapping[str, Any],
    arguments: Sequence[str],
    prog: str,
    *,
    poll: bool,
    timeout: float,
) -> None:
    """Evaluate the task on which a run was fine-tuned.

    trained: configuration stored in the checkpoint. Settings of the command line override it.
    arguments: the words of the command line.
    prog: name of the command, for error messages.
    poll: evaluate each checkpoint that appears in the run's directory.
    timeout: seconds without a new checkpoint after which polling ends.
    """
    from trainer.run.finetune import run_task

    known = runtime.on_rank_0(lambda: select_fine_tuned_keys(runtime.config, trained))
    runtime = runtime.changed(make_task_config(arguments, prog, known).changed(do_train=False))
    runtime.log_idle_keys()
    runtime.on_rank_0(lambda: _warn_of_trained_file(runtime, trained.get("task_train_file")))
    run_task(runtime, poll=poll, timeout=timeout)


def _warn_of_trained_file(runtime: Runtime, train_file: str | None) -> None:
    """Log a warning if the file to evaluate on is also the file that the run was trained on."""
    for warning in warn_of_same_file(find_files(runtime.config)._replace(train=train_file)):
        runtime.log(f"warning: {warning}")
