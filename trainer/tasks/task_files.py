"""The files of a fine-tuning task, and the datasets of features made from them."""

from collections.abc import Callable
from typing import NamedTuple

from bertdata.dataset.shared_shards import format_shared_warning
from bertdata.errors import BertDataError, InputError, MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from trainer.config.sections.finetuning import FinetuningSection
from trainer.config.settings import Config
from trainer.tasks.data_file import read_file
from trainer.tasks.feature_set import (
    FeatureSet,
    make_feature_set,
    make_feature_set_name,
)
from trainer.tasks.fine_tuned import find_task_data
from trainer.tasks.fine_tuning import load_configured_tokenizer
from trainer.tasks.names import FileNames

FEATURES = "features"
"""Name of the directory in output_dir that contains the datasets of features."""

_KEYS = ("task_train_file", "task_eval_file", "task_predict_file")


class TaskFiles(NamedTuple):
    """Paths of the files for training, evaluation and prediction. None for a file that is not used."""

    train: str | None
    evaluation: str | None
    prediction: str | None


def find_files(config: Config) -> TaskFiles:
    """Return the configured files, or else the files in task_dir under their usual names.

    SettingsError if neither is configured. MissingInputError if a needed file does not exist.
    """
    given, trains = config.finetuning, config.run.do_train
    paths: list[str | None] = []
    needed = (trains, given.do_eval, given.do_predict)
    # For each of train, evaluation and prediction: the configured path as it is, else inside task_dir
    # (`--data-dir glue --train-file small.tsv` means glue/small.tsv), else the usual name inside task_dir.
    for key, name, asked_for in zip(_KEYS, _find_usual_names(given), needed, strict=True):
        path = getattr(given, key)
        if given.task_dir is not None and (path is None or not storage.exists(path)):
            inside = storage.join(given.task_dir, name if path is None else path)
            path = inside if storage.exists(inside) else path
        if path is not None and asked_for and not storage.exists(path):
            raise MissingInputError(f"{path}: no such file or directory")
        paths.append(path)
    train, evaluation, prediction = paths
    if trains and train is None:
        raise _make_missing_file_error(
            given, 0, f"task {given.task}: no file to train on; give --data-dir or --train-file"
        )
    if given.do_predict and prediction is None:
        raise _make_missing_file_error(given, 2, "do_predict: no file to predict; give --predict-file")
    evaluation = evaluation if given.do_eval else None
    if not trains and evaluation is None and prediction is None:
        raise _make_missing_file_error(
            given, 1, "nothing to evaluate or to predict: give --eval-file, or --predict-file"
        )
    return TaskFiles(train=train, evaluation=evaluation, prediction=prediction)


def warn_of_same_file(files: TaskFiles) -> list[str]:
    """Return a warning if the evaluation file has the same content as the training file."""
    train, evaluation = files.train, files.evaluation
    if train is None or evaluation is None or not storage.exists(train):
        return []
    if storage.read_size(train) != storage.read_size(evaluation) or compute_file_md5(
        train
    ) != compute_file_md5(evaluation):
        return []
    return [format_shared_warning(evaluation, train, "it is the")]


def _make_missing_file_error(given: FinetuningSection, kind: int, said: str) -> BertDataError:
    """Return the error for a missing file. It lists all file names that were tried in task_dir.

    kind: 0 for training, 1 for evaluation, 2 for prediction. said: the message if there is no task_dir.
    """
    folder = given.task_dir
    if folder is None or (kind == 1 and not given.do_eval):
        return SettingsError(said)
    if not storage.is_directory(folder):
        return MissingInputError(f"{folder}: no such directory")
    flag = _KEYS[kind].removeprefix("task_").replace("_", "-")
    return MissingInputError(f"{folder}: holds no {describe_usual_names(given, kind)}; give --{flag}")


def describe_usual_names(given: FinetuningSection, kind: int) -> str:
    """Return all usual names of a task's file as text.

    kind: 0 for training, 1 for evaluation, 2 for prediction.
    """
    return " and no ".join(names[kind] for names in find_task_data(given.task).list_usual_names(given))


def _find_usual_names(given: FinetuningSection) -> FileNames:
    """Return the usual file names of the published distribution of the task's data that is in task_dir.

    All three names come from the same distribution. Another distribution's evaluation file may contain
    training examples. The first distribution whose training file exists is taken, else the first with any
    existing file.
    """
    usual, folder = find_task_data(given.task).list_usual_names(given), given.task_dir
    if folder is None or len(usual) == 1:
        return usual[0]
    there = {names: [storage.exists(storage.join(folder, name)) for name in names] for names in usual}
    found = [names for names in usual if there[names][0]] + [names for names in usual if any(there[names])]
    return found[0] if found else usual[0]


def make_features(
    config: Config, path: str, *, training: bool, labelled: bool, tell: Callable[[str], None]
) -> FeatureSet:
    """Make the dataset of a file's features in output_dir, or verify and keep an existing one.

    labelled: for a classification, whether its labels are read.
    tell: function that writes warnings and a summary to the log.
    """
    source, tokenizer = read_file(path), load_configured_tokenizer(config)
    task = find_task_data(config.task)
    length = task.choose_feature_length(config)
    settings, make = task.prepare_configured_features(
        config.finetuning, length, training=training, labelled=labelled
    )
    name = make_feature_set_name(source, tokenizer.vocabulary, settings)
    directory = storage.join(str(config.run.output_dir), f"{FEATURES}/{name}")
    made = make_feature_set(directory, source, tokenizer, settings, make)
    for warning in made.warnings:
        tell(f"warning: {warning}")
    if not made.examples:
        raise InputError(f"{path}: gives no features")
    tell(f"{path}: {made.examples} features {'kept' if made.kept else 'made'} in {made.directory}")
    return made
