"""The logs that only some runs have, as they are asked for."""

from pathlib import Path

from trainer.config.run_options import LoggersSection
from trainer.config.settings import Config
from trainer.logs.reporter import Logger
from trainer.plugins import find
from trainer.tasks.task import Columns


def make_loggers(config: Config, folder: Path, columns: Columns, resume_step: int | None) -> list[Logger]:
    """The further loggers of a run in the folder. columns, resume_step: as of ``make_loggers``."""
    keys = config.section(LoggersSection)
    made: list[Logger] = []
    if keys.mllog:
        made.append(find("log", "mllog")(folder / "mllog.txt", columns))
    if keys.tensorboard:
        made.append(find("log", "tensorboard")(folder / "tensorboard", resume_step))
    if keys.wandb or keys.wandb_offline:
        made.append(find("log", "wandb")(folder, config, resumes=resume_step is not None))
    if keys.curves and not config.reports.no_logs:  # it is drawn from the tables
        made.append(find("log", "curves")(folder))
    return made
