"""The result of a training run, made from its directory and from what it has logged.

This module imports torch.
"""

from bertdata.io import storage
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.config.settings import Config
from trainer.functions.progress import Watched
from trainer.functions.results import TrainingResult


def describe_training(config: Config, watched: Watched) -> TrainingResult:
    """Return the result of a run that has just ended.

    config: configuration of the run, or of its last phase.
    watched: what the run has printed and logged.
    """
    output_dir, logged = str(config.run.output_dir), watched.logger
    checkpoints = find_checkpoints(output_dir)
    newest = max(checkpoints, default=None)
    predicted = storage.join(output_dir, "predict")
    has_predictions = config.finetuning.do_predict and storage.exists(predicted)
    return TrainingResult(
        output_dir=output_dir,
        is_finished=not logged.is_stopped,
        step=logged.rows[-1]["step"] if logged.rows else newest or 0,
        checkpoint=None if newest is None else str(checkpoints[newest]),
        loss=logged.summary.get("final_loss"),
        rows=tuple(logged.rows),
        evaluations=tuple(logged.evaluations),
        predictions=predicted if has_predictions else None,
        seconds=watched.seconds,
        warnings=tuple(watched.warnings),
    )
