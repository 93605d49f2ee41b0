"""Logs that a run writes only if the configuration asks for them."""

from pathlib import Path

from bertdata.io.terminal import say_error
from trainer.config.environment import DISABLED, OFFLINE, WANDB_MODE, read_wandb_mode
from trainer.config.settings import Config
from trainer.logs.curves import Curves
from trainer.logs.mllog import Mllog
from trainer.logs.reporter import Logger
from trainer.logs.scalars import TensorBoard, WeightsAndBiases
from trainer.tasks.task import Columns


def make_loggers(config: Config, folder: Path, columns: Columns, resume_step: int | None) -> list[Logger]:
    """Return the loggers that the configuration asks for in addition to the usual ones, for example
    TensorBoard's.

    folder: the run's output directory.
    columns: names of the columns that the task's metrics have in tables.
    resume_step: step after which the run resumes. Later entries are removed from the logs. None: a new run.
    """
    keys = config.loggers
    made: list[Logger] = []
    if (mllog := make_mllog(config, folder, columns, resume_step)) is not None:
        made.append(mllog)
    if keys.tensorboard:
        # TensorBoard shows one curve per directory. Phase 2 counts its updates from 0 again, so it gets a
        # directory of its own.
        events = folder / "tensorboard"
        made.append(TensorBoard(events / "phase2" if config.phase == 2 else events, resume_step))
    asked = keys.wandb or keys.wandb_offline
    mode = read_wandb_mode() if asked else None
    if mode == DISABLED:
        say_error(f"trainer: {WANDB_MODE} is disabled: nothing is written for Weights & Biases")
    elif asked:
        offline = keys.wandb_offline or mode == OFFLINE
        made.append(WeightsAndBiases(folder, config, offline=offline, resumes=resume_step is not None))
    # the curves are drawn from the tables, so there are none without tables
    if keys.curves and not config.reports.no_logs:
        made.append(Curves(folder))
    return made


def make_mllog(
    config: Config, folder: Path, columns: Columns, resume_step: int | None = None
) -> Mllog | None:
    """Return the logger for MLPerf's log, or None if it is not configured.

    folder: directory of the log if the configuration names no file.
    columns: names of the columns that the task's metrics have in tables.
    resume_step: step after which the run resumes. None: a new run.
    """
    if not config.loggers.mllog or config.reports.no_logs:
        return None
    return Mllog(Path(config.loggers.mllog_file or folder / "mllog.txt"), config, columns, resume_step)
