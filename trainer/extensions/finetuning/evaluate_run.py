"""Evaluation of a fine-tuned run by its own task."""

from collections.abc import Mapping, Sequence
from typing import Any

from bertdata.io import storage
from bertdata.io.assets import VOCABULARIES
from trainer.config.keys import section_keys
from trainer.config.section import PRETRAINING
from trainer.config.settings import Config
from trainer.extensions.finetuning.finetune import evaluate_task
from trainer.extensions.finetuning.task_config import make_task_config
from trainer.run.runtime import Runtime

_OF_THE_RUN = ("max_seq_length", "vocab")
_ASKED_FOR = ("task_train_file", "task_predict_file", "do_eval", "do_predict")
"""Keys of the section that say what a run did, not what its model is."""


def evaluate_fine_tuned(
    runtime: Runtime,
    trained: Mapping[str, Any],
    arguments: Sequence[str],
    prog: str,
    *,
    poll: bool,
    timeout: float,
) -> None:
    """Evaluate by the task; trained: the configuration in the checkpoint, whose keys go below those given."""
    known = runtime.share(lambda: fine_tuned_keys(runtime.config, trained))
    runtime = runtime.changed(make_task_config(arguments, prog, known).changed(do_train=False))
    runtime.name_idle_keys()
    evaluate_task(runtime, poll=poll, timeout=timeout)


def fine_tuned_keys(given: Config, found: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that the run to evaluate was fine-tuned with; none for another checkpoint.

    The file to evaluate on is left out where a directory is given, the vocabulary where it is gone.
    """
    if found.get("task", PRETRAINING) == PRETRAINING:
        return {}
    left_out = set(_ASKED_FOR)
    if given.finetuning.task_dir is not None:
        left_out.add("task_eval_file")
    if not (storage.exists(str(found.get("vocab"))) or found.get("vocab") in VOCABULARIES):
        left_out.add("vocab")  # a copy lies beside the features
    names = (*_OF_THE_RUN, *section_keys("finetuning"))
    return {name: found[name] for name in names if name in found and name not in left_out}
