"""Choice of a run's logs."""

import sys
from collections.abc import Sequence
from pathlib import Path

from bertdata.io import storage
from bertdata.io.notebook import is_in_notebook
from trainer.config.settings import Config
from trainer.logs.further_logs import make_loggers as further_loggers
from trainer.logs.logs import Dllogger, Tables, Terminal
from trainer.logs.notebook_bar import NotebookProgress
from trainer.logs.progress_bar import ProgressBar
from trainer.logs.reporter import Logger
from trainer.tasks.task import Columns


def make_loggers(
    config: Config,
    columns: Columns,
    start: float,
    resume_step: int | None = None,
    further: Sequence[Logger] = (),
) -> list[Logger]:
    """Return the loggers that the configuration asks for.

    columns: names of the columns that the task's metrics have in tables.
    start: time at which the run began, in seconds since 1970.
    resume_step: step after which the run resumes. Later rows are removed from the logs. None: a new run.
    further: logs that the caller of the run has made.
    """
    output_dir, reports = str(config.run.output_dir), config.reports
    storage.make_directory(output_dir)
    folder = Path(output_dir.removeprefix("file://"))
    wanted = further_loggers(config, folder, columns, resume_step)
    if not reports.no_logs:
        path = Path(reports.json_summary or folder / "dllogger.json")
        wanted.append(Dllogger(path, start, reports.json_summary_form, resume_step))
        wanted.append(Tables(folder, columns, resume_step))
    wanted += further
    if any(logger.replaces_terminal for logger in further):
        return wanted
    # The terminal comes last, so that it is closed first. Packages that the other logs import may print
    # lines.
    unit = config.steps_of_update
    steps = config.schedule.steps * unit
    if sys.stderr.isatty() and not reports.no_progress_bar:
        return [ProgressBar(columns, steps, resume_step or 0, unit), *wanted]
    if is_in_notebook() and not reports.no_progress_bar:
        return [NotebookProgress(columns, steps, unit), *wanted]
    return [Terminal(columns, steps, unit), *wanted]
