"""The function ``trainer.pretrain``."""

from typing import Any

from trainer.commands.pretrain import warn_of_contradictions
from trainer.config.flags import make_layered
from trainer.errors import name_missing_extra
from trainer.functions.keys import format_call, make_words
from trainer.functions.progress import Progress, announce_torch, watch
from trainer.functions.results import TrainingResult
from trainer.run.path_check import check_paths


def pretrain(*, progress: Progress = None, **keys: Any) -> TrainingResult:
    """Pre-train a model, as ``python -m trainer pretrain`` does, and return what the run has logged.

    The keywords are the keys of the configuration (docs/configuration.md): ``train_data``, ``output_dir``,
    ``steps`` and so on. ``config`` names a file of keys, or a configuration that comes with the trainer, such
    as "tiny". A list of two values gives a key one value for each phase.

    An interrupt (Ctrl-C, or the stop button of a notebook) ends the run with a checkpoint, and the result
    says that it was stopped. ``resume=True`` continues it.

    progress: None prints the lines of the command, and a bar on a terminal or in a notebook. False prints
        nothing. A function is called with a TrainingProgress after every ``log_every`` updates and after each
        evaluation.

    Raises UsageError (or a subclass) if a key is wrong, and DataError or TrainerError (or subclasses) if the
    data or the training are at fault.
    """
    with watch(progress) as watched, name_missing_extra("torch", "train"):
        layered = make_layered(make_words(keys))
        warn_of_contradictions(layered)
        phases = [phase.config for phase in layered]
        check_paths(phases)
        announce_torch()
        from trainer.functions.training import describe_training
        from trainer.run.pretrain import pretrain as run_phases

        run_phases(phases, loggers=[watched.logger], call=format_call("pretrain", keys))
    return describe_training(phases[-1], watched)
