"""The function ``trainer.evaluate``."""

from dataclasses import replace
from typing import Any

from trainer.commands.pretrain import warn_of_contradictions
from trainer.config.flags import make_layered
from trainer.config.task_names import expand_task_flags
from trainer.errors import name_missing_extra
from trainer.functions.keys import make_words
from trainer.functions.progress import Progress, announce_torch, watch
from trainer.functions.results import EvaluationResult
from trainer.run.path_check import refuse_run_inputs

_PROG = "python -m trainer evaluate"


def evaluate(*, progress: Progress = None, **keys: Any) -> EvaluationResult:
    """Evaluate a checkpoint, as ``python -m trainer evaluate`` does, and return the result.

    The checkpoint is the newest in ``output_dir``, or that of ``resume_step``, or ``start_from_ckpt``. The
    keywords are the keys of the configuration, as for ``pretrain``. Pre-training is evaluated on
    ``eval_data``. A fine-tuned run is evaluated on its task, with the file that it was evaluated on before,
    or with ``eval_file``.

    progress: as for ``pretrain``.

    Raises UsageError (or a subclass) if a key is wrong, and DataError or TrainerError (or subclasses) if the
    data or the checkpoint are at fault.
    """
    with watch(progress) as watched, name_missing_extra("torch", "train"):
        words = make_words(keys)
        layered = make_layered(expand_task_flags(words), _PROG)
        warn_of_contradictions(layered)
        refuse_run_inputs([layered[-1].config], evaluates=True)
        announce_torch()
        from trainer.run.evaluate_run import evaluate_run

        evaluate_run(words, _PROG, loggers=[watched.logger])
    nothing = EvaluationResult(step=0, trained=0, examples=0, metrics={}, text="nothing was evaluated")
    (found,) = watched.logger.evaluations or [nothing]
    return replace(found, warnings=tuple(watched.warnings))
