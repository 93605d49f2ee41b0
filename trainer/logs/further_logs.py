"""Logs that a run has only if they are configured."""

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
    """Return the loggers that are used only if they are configured, for example TensorBoard's.

    folder: output directory. columns: the task's columns. resume_step: step after which the run resumes.
    Later entries in the logs are removed.
    """
    keys = config.loggers
    made: list[Logger] = []
    if (mllog := make_mllog(config, folder, columns, resume_step)) is not None:
        made.append(mllog)
    if keys.tensorboard:
        # TensorBoard shows one curve per directory. Phase 2 counts its updates from 0 again, so it needs
        # another directory than phase 1.
        events = folder / "tensorboard"
        made.append(TensorBoard(events / "phase2" if config.phase == 2 else events, resume_step))
    asked = keys.wandb or keys.wandb_offline
    mode = read_wandb_mode() if asked else None
    if mode == DISABLED:
        say_error(f"trainer: {WANDB_MODE} is disabled: nothing is written for Weights & Biases")
    elif asked:
        offline = keys.wandb_offline or mode == OFFLINE
        made.append(WeightsAndBiases(folder, config, offline=offline, resumes=resume_step is not None))
    # curves are drawn from the tables, so without tables there are none
    if keys.curves and not config.reports.no_logs:
        made.append(Curves(folder))
    return made


def make_mllog(
    config: Config, folder: Path, columns: Columns, resume_step: int | None = None
) -> Mllog | None:
    """Return MLPerf's log if it is configured, otherwise None. folder: where it is by default."""
    if not config.loggers.mllog or config.reports.no_logs:
        return None
    return Mllog(Path(config.loggers.mllog_file or folder / "mllog.txt"), config, columns, resume_step)
