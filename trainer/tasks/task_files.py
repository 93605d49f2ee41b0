"""Functions that find the files of a fine-tuning task, and make datasets of features from them."""

from collections.abc import Callable
from typing import NamedTuple

from bertdata.dataset.shared_shards import format_shared_warning
from bertdata.errors import BertDataError, InputError, MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.tokens.tokenizer import Tokenizer
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
from trainer.tasks.task_data import SettingsAndMaker

FEATURES = "features"
"""Name of the directory in output_dir that contains the datasets of features."""

_KEYS = ("task_train_file", "task_eval_file", "task_predict_file")


class TaskFiles(NamedTuple):
    """Paths of the files for training, evaluation and prediction. A file that is not used is None."""

    train: str | None
    evaluation: str | None
    prediction: str | None


def find_files(config: Config) -> TaskFiles:
    """Return the configured files, and for files that are not configured the usual ones in task_dir.

    Raises SettingsError if there is neither a configured file nor task_dir.
    Raises MissingInputError if a file that is needed does not exist.
    """
    given, trains = config.finetuning, config.run.do_train
    paths: list[str | None] = []
    needed = (trains, given.do_eval, given.do_predict)
    # A configured path is taken as it is if it exists. Otherwise it is taken inside task_dir: `--data-dir
    # glue --train-file small.tsv` means glue/small.tsv. A file without a configured path has its usual name
    # inside task_dir.
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
    """Return a list with a warning if the evaluation file has the same content as the training file."""
    train, evaluation = files.train, files.evaluation
    if train is None or evaluation is None or not storage.exists(train):
        return []
    if storage.read_size(train) != storage.read_size(evaluation) or compute_file_md5(
        train
    ) != compute_file_md5(evaluation):
        return []
    return [format_shared_warning(evaluation, train, "it is the")]


def _make_missing_file_error(given: FinetuningSection, kind: int, said: str) -> BertDataError:
    """Return the error for a file that is missing.

    Its message lists all file names that were tried in task_dir.

    kind: 0 for the training file, 1 for the evaluation file, 2 for the prediction file.
    said: the message if there is no task_dir.
    """
    folder = given.task_dir
    if folder is None or (kind == 1 and not given.do_eval):
        return SettingsError(said)
    if not storage.is_directory(folder):
        return MissingInputError(f"{folder}: no such directory")
    flag = _KEYS[kind].removeprefix("task_").replace("_", "-")
    return MissingInputError(f"{folder}: holds no {describe_usual_names(given, kind)}; give --{flag}")


def describe_usual_names(given: FinetuningSection, kind: int) -> str:
    """Return all usual names of a file as text.

    kind: 0 for the training file, 1 for the evaluation file, 2 for the prediction file.
    """
    return " and no ".join(names[kind] for names in find_task_data(given.task).list_usual_names(given))


def _find_usual_names(given: FinetuningSection) -> FileNames:
    """Return the usual names of the files in task_dir, from one published distribution of the task's data.

    All three names are from the same distribution, because another distribution's evaluation file may contain
    training examples. The first distribution whose training file exists is taken. If no training file exists,
    it is the first distribution with any existing file.
    """
    usual, folder = find_task_data(given.task).list_usual_names(given), given.task_dir
    if folder is None or len(usual) == 1:
        return usual[0]
    there = {names: [storage.exists(storage.join(folder, name)) for name in names] for names in usual}
    found = [names for names in usual if there[names][0]] + [names for names in usual if any(there[names])]
    return found[0] if found else usual[0]


def name_features(config: Config, path: str, *, training: bool, labelled: bool) -> str:
    """Return the name of the directory that ``make_features`` makes for a file, without making it."""
    source, tokenizer = read_file(path), load_configured_tokenizer(config)
    settings, _ = _prepare_features(config, tokenizer, training=training, labelled=labelled)
    return make_feature_set_name(source, tokenizer.vocabulary, settings)


def _prepare_features(
    config: Config, tokenizer: Tokenizer, *, training: bool, labelled: bool
) -> SettingsAndMaker:
    """Return the settings of the configured features, and the function that makes them."""
    task = find_task_data(config.task)
    length, vocabulary = task.choose_feature_length(config), tokenizer.vocabulary
    return task.prepare_configured_features(
        config.finetuning, length, vocabulary, training=training, labelled=labelled
    )


def make_features(
    config: Config, path: str, *, training: bool, labelled: bool, tell: Callable[[str], None]
) -> FeatureSet:
    """Make the dataset of a file's features in output_dir, or verify an existing dataset and use it again.

    training: whether the features are for training.
    labelled: whether the labels of a classification are read.
    tell: function that writes warnings and a summary to the log.
    """
    source, tokenizer = read_file(path), load_configured_tokenizer(config)
    settings, make = _prepare_features(config, tokenizer, training=training, labelled=labelled)
    name = make_feature_set_name(source, tokenizer.vocabulary, settings)
    directory = storage.join(str(config.run.output_dir), f"{FEATURES}/{name}")
    made = make_feature_set(directory, source, tokenizer, settings, make)
    for warning in made.warnings:
        tell(f"warning: {warning}")
    if not made.examples:
        raise InputError(f"{path}: gives no features")
    tell(f"{path}: {made.examples} features {'kept' if made.kept else 'made'} in {made.directory}")
    return made
