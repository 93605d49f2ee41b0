"""The logs that only some runs have, as they are asked for."""

from pathlib import Path

from trainer.config.settings import Config
from trainer.logs.curves import Curves
from trainer.logs.mllog import Mllog
from trainer.logs.reporter import Logger
from trainer.logs.scalars import TensorBoard, WeightsAndBiases
from trainer.tasks.task import Columns


def make_loggers(config: Config, folder: Path, columns: Columns, resume_step: int | None) -> list[Logger]:
    """The further loggers of a run in the folder. columns, resume_step: as of ``make_loggers``."""
    keys = config.loggers
    made: list[Logger] = []
    if keys.mllog:
        made.append(Mllog(folder / "mllog.txt", columns))
    if keys.tensorboard:
        # A directory is a curve there: phase 2, whose updates are counted from 0 again, has its own.
        events = folder / "tensorboard"
        made.append(TensorBoard(events / "phase2" if config.phase == 2 else events, resume_step))
    if keys.wandb or keys.wandb_offline:
        made.append(WeightsAndBiases(folder, config, resumes=resume_step is not None))
    if keys.curves and not config.reports.no_logs:  # it is drawn from the tables
        made.append(Curves(folder))
    return made
