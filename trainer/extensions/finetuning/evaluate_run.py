"""Evaluation by the command: of a run of pre-training, or of a fine-tuned one by its own task."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertdata.io import storage
from bertdata.io.assets import VOCABULARIES
from trainer.config.finetuning import PRETRAINING
from trainer.config.flags import make_config
from trainer.config.schema import section_keys
from trainer.config.settings import Config
from trainer.extensions.finetuning.task_config import make_task_config, task_flags
from trainer.errors import CheckpointError
from trainer.extensions.formats.hub_cache import find_pretrained
from trainer.checkpoint.state import choose_checkpoint, find_checkpoints, read_state
from trainer.checkpoint.source import find_own
from trainer.run.evaluate import evaluate_checkpoints
from trainer.extensions.finetuning.finetune import evaluate_task
from trainer.run.runtime import connect

_OF_THE_RUN = ("max_seq_length", "vocab")
_ASKED_FOR = ("task_train_file", "task_predict_file", "do_eval", "do_predict")
"""Keys of the section that say what a run did, not what its model is."""


def evaluate_run(arguments: Sequence[str], prog: str, *, poll: bool, timeout: float) -> None:
    """Evaluate as the command line says; task and settings of a fine-tuned run are its checkpoint's."""
    given = make_config(task_flags(arguments), prog)
    given.require("output_dir")
    runtime = connect(given)
    known = runtime.share(lambda: fine_tuned_keys(given))
    if known or given.finetuning.is_finetuning:
        runtime = runtime.changed(make_task_config(arguments, prog, known).changed(do_train=False))
        runtime.name_idle_keys()
        evaluate_task(runtime, poll=poll, timeout=timeout)
    else:
        runtime = runtime.changed(make_config(arguments, prog))
        runtime.share(lambda: runtime.config.require("eval_data"))
        runtime.name_idle_keys()
        evaluate_checkpoints(runtime, poll=poll, timeout=timeout)
    runtime.workers.close()


def fine_tuned_keys(given: Config) -> dict[str, Any]:
    """The keys that the run to evaluate was fine-tuned with; none for another checkpoint.

    The file to evaluate on is left out where a directory is given, the vocabulary where it is gone.
    """
    found = _trained_keys(given)
    if found.get("task", PRETRAINING) == PRETRAINING:
        return {}
    left_out = set(_ASKED_FOR)
    if given.finetuning.task_dir is not None:
        left_out.add("task_eval_file")
    if not (storage.exists(str(found.get("vocab"))) or found.get("vocab") in VOCABULARIES):
        left_out.add("vocab")  # a copy lies beside the features
    names = (*_OF_THE_RUN, *section_keys("finetuning"))
    return {name: found[name] for name in names if name in found and name not in left_out}


def _trained_keys(config: Config) -> dict[str, Any]:
    """The configuration in the checkpoint that would be evaluated first; none where it has none."""
    path = _checkpoint(config)
    if path is None:
        return {}
    try:
        return read_state(path).config
    except CheckpointError:
        if path.exists():
            raise
        return _trained_keys(config)  # removed meanwhile, because there is a newer one


def _checkpoint(config: Config) -> Path | None:
    """The checkpoint of this trainer that would be evaluated first; None where there is none yet."""
    run = config.run
    if run.start_from_ckpt is not None:
        return find_own(find_pretrained(run.start_from_ckpt))
    if run.output_dir is None or not find_checkpoints(run.output_dir):
        return None
    return choose_checkpoint(run.output_dir, run.resume_step)
