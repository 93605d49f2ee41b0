"""The files of a task of fine-tuning, and the datasets of their features."""

from collections.abc import Callable
from typing import NamedTuple

from bertdata.dataset.shared_shards import same_data
from bertdata.errors import BertDataError, InputError, MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.file_check import file_md5
from trainer.config.sections.finetuning import FinetuningSection
from trainer.config.settings import Config
from trainer.tasks.data_file import read_file
from trainer.tasks.feature_set import (
    FeatureSet,
    feature_set_name,
    make_feature_set,
)
from trainer.tasks.fine_tuned import find_data
from trainer.tasks.fine_tuning import configured_tokenizer
from trainer.tasks.names import FileNames

FEATURES = "features"
"""Folder of output_dir that holds the datasets of features."""

_KEYS = ("task_train_file", "task_eval_file", "task_predict_file")


class TaskFiles(NamedTuple):
    """Paths of the files to train, to evaluate and to predict, or None for one that is not there."""

    train: str | None
    evaluation: str | None
    prediction: str | None


def find_files(config: Config) -> TaskFiles:
    """The given files, else those in task_dir under their usual names.

    SettingsError where neither is given, MissingInputError where a file that is asked for is not there.
    """
    given, trains = config.finetuning, config.run.do_train
    paths: list[str | None] = []
    needed = (trains, given.do_eval, given.do_predict)
    for key, name, asked_for in zip(_KEYS, _names_there(given), needed, strict=True):
        path = getattr(given, key)
        if given.task_dir is not None and (path is None or not storage.exists(path)):
            inside = storage.join(given.task_dir, name if path is None else path)
            path = inside if storage.exists(inside) else path
        if path is not None and asked_for and not storage.exists(path):
            raise MissingInputError(f"{path}: no such file or directory")
        paths.append(path)
    train, evaluation, prediction = paths
    if trains and train is None:
        raise _missing(given, 0, f"task {given.task}: no file to train on; give --data-dir or --train-file")
    if given.do_predict and prediction is None:
        raise _missing(given, 2, "do_predict: no file to predict; give --predict-file")
    evaluation = evaluation if given.do_eval else None
    if not trains and evaluation is None and prediction is None:
        raise _missing(given, 1, "nothing to evaluate or to predict: give --eval-file, or --predict-file")
    return TaskFiles(train=train, evaluation=evaluation, prediction=prediction)


def same_file_warnings(files: TaskFiles) -> list[str]:
    """Return a warning where the file to evaluate on is the one to train on, or a copy."""
    train, evaluation = files.train, files.evaluation
    if train is None or evaluation is None or not storage.exists(train):
        return []
    if storage.size(train) != storage.size(evaluation) or file_md5(train) != file_md5(evaluation):
        return []
    return [same_data(evaluation, train, "it is the")]


def _missing(given: FinetuningSection, kind: int, said: str) -> BertDataError:
    """The error for a missing file. It lists all names that were looked for in task_dir.

    kind: 0 to train on, 1 to evaluate on, 2 to predict. said: the error where there is no task_dir.
    """
    folder = given.task_dir
    if folder is None or (kind == 1 and not given.do_eval):
        return SettingsError(said)
    if not storage.is_directory(folder):
        return MissingInputError(f"{folder}: no such directory")
    flag = _KEYS[kind].removeprefix("task_").replace("_", "-")
    return MissingInputError(f"{folder}: holds no {names_looked_for(given, kind)}; give --{flag}")


def names_looked_for(given: FinetuningSection, kind: int) -> str:
    """All usual names of a file, in words. kind: as of _missing."""
    return " and no ".join(names[kind] for names in find_data(given.task).usual_names(given))


def _names_there(given: FinetuningSection) -> FileNames:
    """The usual names that the files in task_dir have.

    All are of one distribution, because another's files to evaluate may hold examples to train on: of the
    first whose file to train on is there, else of the first that has any file there.
    """
    usual, folder = find_data(given.task).usual_names(given), given.task_dir
    if folder is None or len(usual) == 1:
        return usual[0]
    there = {names: [storage.exists(storage.join(folder, name)) for name in names] for names in usual}
    found = [names for names in usual if there[names][0]] + [names for names in usual if any(there[names])]
    return found[0] if found else usual[0]


def make_features(
    config: Config, path: str, *, training: bool, labelled: bool, tell: Callable[[str], None]
) -> FeatureSet:
    """The dataset of a file's features, below output_dir. An existing one is verified and kept.

    labelled: of a classification, whether its labels are read. tell: gets warnings, and a line.
    """
    source, tokenizer = read_file(path), configured_tokenizer(config)
    task = find_data(config.task)
    length = task.feature_length(config)
    settings, make = task.configured(config.finetuning, length, training=training, labelled=labelled)
    name = feature_set_name(source, tokenizer.vocabulary, settings)
    directory = storage.join(str(config.run.output_dir), f"{FEATURES}/{name}")
    made = make_feature_set(directory, source, tokenizer, settings, make)
    for warning in made.warnings:
        tell(f"warning: {warning}")
    if not made.examples:
        raise InputError(f"{path}: gives no features")
    tell(f"{path}: {made.examples} features {'kept' if made.kept else 'made'} in {made.directory}")
    return made
