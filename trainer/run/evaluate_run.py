"""Evaluation by the command: of a run of pre-training, or of a fine-tuned one by its own task."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainer.config.finetuning import PRETRAINING
from trainer.config.flags import make_config
from trainer.config.schema import section_keys
from trainer.config.settings import Config
from trainer.config.task_config import make_task_config
from trainer.model.checkpoints.hub_cache import find_pretrained
from trainer.run.checkpoint import choose_checkpoint, find_checkpoints, read_state
from trainer.run.checkpoint_source import find_own
from trainer.run.evaluate import evaluate
from trainer.run.finetune import evaluate_task

_OF_THE_RUN = ("max_seq_length", "vocab")
_ASKED_FOR = ("task_train_file", "task_predict_file", "do_eval", "do_predict", "num_train_epochs")
"""Keys of the section that say what a run did, not what its model is."""


def evaluate_run(arguments: Sequence[str], prog: str, *, poll: bool, timeout: float) -> None:
    """Evaluate as the command line says; task and settings of a fine-tuned run are its checkpoint's."""
    given = make_task_config(arguments, prog)
    known = fine_tuned_keys(given)
    config = make_task_config(arguments, prog, known)
    if config.finetuning.is_finetuning:
        evaluate_task(config, poll=poll, timeout=timeout)
    else:
        evaluate(make_config(arguments, prog), poll=poll, timeout=timeout)


def fine_tuned_keys(given: Config) -> dict[str, Any]:
    """The keys that the run to evaluate was fine-tuned with; none for another checkpoint.

    The file to evaluate on is left out where a directory is given.
    """
    path = _checkpoint(given)
    found = read_state(path).config if path is not None else {}
    if found.get("task", PRETRAINING) == PRETRAINING:
        return {}
    left_out = {*_ASKED_FOR, *(("task_eval_file",) if given.finetuning.task_dir else ())}
    names = [*_OF_THE_RUN, *(name for name in section_keys("finetuning") if name not in left_out)]
    return {name: found[name] for name in names if name in found}


def _checkpoint(config: Config) -> Path | None:
    """The checkpoint of this trainer that would be evaluated first; None where there is none yet."""
    run = config.run
    if run.start_from_ckpt is not None:
        return find_own(find_pretrained(run.start_from_ckpt))
    if run.output_dir is None or not find_checkpoints(run.output_dir):
        return None
    return choose_checkpoint(run.output_dir, run.resume_step)
