"""Quick checks of a run's paths, before torch is imported and workers are started.

The run repeats the checks that it depends on, because other programs may change the paths in the meantime.
"""

import os
from collections.abc import Sequence

from bertdata.dataset.mixture.weights import split_paths
from bertdata.errors import DatasetError, StorageError
from bertdata.io import storage
from bertdata.io.directory_lock import LOCK_NAME, lock_directory
from bertdata.io.directory_protocol import UNFINISHED
from bertdata.io.outputs import OutputFormat, check_output, refuse_input_as_output
from bertdata.io.patterns import expand_patterns
from trainer.config.sections.split import PLAN_FORM
from trainer.config.settings import Config
from trainer.workers.launchers import find_launcher

_DLLOGGER = OutputFormat(words="a log of dllogger's lines", begins=lambda head: head.startswith(b"DLLL "))
_MLLOG = OutputFormat(words="MLPerf's log", begins=lambda head: head.startswith(b":::MLLOG "))
_OTHER_NAME = "give another name"
RUN_FILES = ("checkpoints", "training.csv")
"""Names of files and folders in an output directory that show that a run has written to it."""


def check_paths(phases: Sequence[Config]) -> None:
    """Raise an error if data are missing, or if an output is also an input, cannot be written or is in use.

    Under a launcher (torchrun, horovodrun) every worker would print the same error. So there this function
    only refuses outputs that are inputs, and the run checks the rest. Paths in remote storage are not
    checked, because that takes time.
    """
    refuse_run_inputs(phases)
    if find_launcher() != "single":
        return
    if phases[0].run.do_train and not phases[0].is_finetuning:
        require_paths(phases)
    for config in phases:
        train_data = None if config.data.generated_data else config.data.train_data
        for paths in filter(None, (train_data, config.data.eval_data)):
            for path in split_paths(paths):
                if not storage.is_remote(path) and not storage.is_directory(path):
                    expand_patterns([path])
    first, output_dir = phases[0], phases[0].run.output_dir
    if output_dir is not None and not first.run.compile_only and not storage.is_remote(output_dir):
        _check_output(output_dir, first)


def refuse_run_inputs(phases: Sequence[Config], *, evaluates: bool = False) -> None:
    """Raise SettingsError if an output of the run is also an input, contains an input or lies inside one.

    If a run is continued or evaluated, its data may be in its output directory: the run was accepted like
    this when it first started, and it writes only files whose names it chooses itself.
    evaluates: True for a run that only evaluates, and writes no logs and no plan.
    """
    for config in phases:
        inputs = _list_data_paths(config)
        if not evaluates:
            inputs += [config.start.start_from_ckpt, config.start.resume_from]
        continues = config.start.continues_here
        output_dir = config.run.output_dir
        if output_dir is not None and not config.run.compile_only:
            refuse_input_as_output(output_dir, inputs, goes_on=evaluates or continues)
        files = [config.model.model_config, *inputs]
        if (log := config.reports.json_summary) is not None and not evaluates:
            check_output(log, files, _DLLOGGER, remedy=_OTHER_NAME)
        if config.loggers.mllog and (log := config.loggers.mllog_file) is not None:
            check_output(log, files, _MLLOG, remedy=_OTHER_NAME)
        split = config.split
        if split.save_plan is not None and not evaluates:
            check_output(split.save_plan, [split.plan, *files], PLAN_FORM, remedy=_OTHER_NAME)


def _list_data_paths(config: Config) -> list[str | None]:
    """Return the paths of all data that the run reads, that is, its datasets and the files of its task."""
    train_data = None if config.data.generated_data else config.data.train_data
    paths: list[str | None] = [
        path for paths in filter(None, (train_data, config.data.eval_data)) for path in split_paths(paths)
    ]
    if config.is_finetuning:
        task = config.finetuning
        paths += [task.task_dir, task.task_train_file, task.task_eval_file, task.task_predict_file]
    return paths


def require_paths(phases: Sequence[Config]) -> None:
    """Raise SettingsError if the settings name no pre-training data or no output directory."""
    for config in phases:
        if not config.data.generated_data:
            config.require("train_data")
        if not config.run.compile_only:
            config.require("output_dir")


def find_run_files(output_dir: str) -> list[str]:
    """Return those names in the directory that only a run writes, such as "checkpoints". [] if there is no
    run.
    """
    return [name for name in RUN_FILES if storage.exists(storage.join(output_dir, name))]


def check_output_is_free(output_dir: str) -> None:
    """Raise DatasetError if the output directory of a new run has the files of another run."""
    for used in find_run_files(output_dir):
        raise make_in_use_error(output_dir, used)


def make_in_use_error(output_dir: str, used: str) -> DatasetError:
    """Return the error for a new run whose output directory has the files of another run.

    used: name of a file or folder that shows the other run, for example "checkpoints".
    """
    return DatasetError(
        f"{output_dir}: is in use: holds {used}; give --resume to continue there, "
        "--overwrite-output-dir, or another --output-dir"
    )


def _check_output(output_dir: str, config: Config) -> None:
    """Raise an error if the output directory has the files of another run, is locked by one, or cannot be
    written.
    """
    continues = config.start.continues_here
    if config.run.do_train and not continues and not config.run.overwrite_output_dir:
        check_output_is_free(output_dir)
    folder = storage.join(output_dir, UNFINISHED)
    if storage.exists(storage.join(folder, LOCK_NAME)):
        with lock_directory(folder):
            pass
    local = os.path.abspath(output_dir.removeprefix("file://"))
    while not os.path.lexists(local):
        local = os.path.dirname(local)
    if not os.path.isdir(local):
        raise StorageError(f"{local}: is no directory, so nothing can be written below it; choose another")
    if not os.access(local, os.W_OK | os.X_OK):
        raise StorageError(f"{local}: may not be written to; choose another --output-dir")
