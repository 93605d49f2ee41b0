"""Evaluation by the command: of a run of pre-training, or of a fine-tuned one by its own task."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertdata.io import storage
from trainer.checkpoint.reading import choose_checkpoint, read_state
from trainer.checkpoint.source import find_own
from trainer.checkpoint.state import find_checkpoints
from trainer.config.flags import make_config
from trainer.config.section import PRETRAINING
from trainer.config.settings import Config
from trainer.config.task_names import task_flags
from trainer.errors import CheckpointError
from trainer.registry import find
from trainer.run.evaluate import evaluate_checkpoints
from trainer.run.runtime import connect


def evaluate_run(arguments: Sequence[str], prog: str, *, poll: bool, timeout: float) -> None:
    """Evaluate as the command line says. A fine-tuned run's task and settings are its checkpoint's."""
    given = make_config(task_flags(arguments), prog)
    given.require("output_dir")
    runtime = connect(given)
    trained = runtime.on_rank_0(lambda: trained_keys(given))
    if given.is_finetuning or trained.get("task", PRETRAINING) != PRETRAINING:
        evaluate = find("fine-tuned model", "evaluation")
        evaluate(runtime, trained, arguments, prog, poll=poll, timeout=timeout)
    else:
        runtime = runtime.changed(make_config(arguments, prog))
        runtime.on_rank_0(lambda: runtime.config.require("eval_data"))
        runtime.name_idle_keys()
        evaluate_checkpoints(runtime, poll=poll, timeout=timeout)
    runtime.workers.close()


def trained_keys(config: Config) -> dict[str, Any]:
    """The configuration in the checkpoint that would be evaluated first, or none where it has none."""
    path = _checkpoint(config)
    if path is None:
        return {}
    try:
        return read_state(path).config
    except CheckpointError:
        if path.exists():
            raise
        return trained_keys(config)  # removed meanwhile, because there is a newer one


def _checkpoint(config: Config) -> Path | None:
    """The checkpoint of this trainer that would be evaluated first, or None where there is none yet."""
    run = config.run
    if run.start_from_ckpt is not None:
        path = run.start_from_ckpt
        if (own := find_own(path)) is not None or storage.exists(path):
            return own
        return find_own(find("checkpoint", "by name")(path))
    if run.output_dir is None or not find_checkpoints(run.output_dir):
        return None
    return choose_checkpoint(run.output_dir, run.resume_step)
