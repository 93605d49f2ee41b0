"""The files of a task of fine-tuning, and the datasets of their features."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bertdata.errors import BertDataError, InputError, MissingInputError, SettingsError
from bertdata.io import storage
from trainer.config.finetuning import SQUAD
from trainer.config.settings import Config
from trainer.extensions.finetuning.classification.features import pair_examples, settings_of
from trainer.extensions.finetuning.classification.presets import ClassificationSettings, FileNames
from trainer.extensions.finetuning.classification.reading import read_pairs, with_labels
from trainer.extensions.finetuning.classification.task import configured_task
from trainer.extensions.finetuning.feature_set import (
    FeatureSet,
    MakeExamples,
    Settings,
    feature_set_name,
    make_feature_set,
    read_source,
)
from trainer.extensions.finetuning.fine_tuning import configured_tokenizer
from trainer.extensions.finetuning.squad.features import SquadSettings, squad_examples
from trainer.extensions.finetuning.squad.reading import read_squad
from trainer.extensions.finetuning.squad.task import squad_settings

_SQUAD_NAMES = ("train-v1.1.json", "dev-v1.1.json", "dev-v1.1.json")
_SQUAD_2_NAMES = ("train-v2.0.json", "dev-v2.0.json", "dev-v2.0.json")
_KEYS = ("task_train_file", "task_eval_file", "task_predict_file")


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskFiles:
    """Paths of the files to train, to evaluate and to predict, or None for one that is not there."""

    train: str | None
    evaluation: str | None
    prediction: str | None


def find_files(config: Config) -> TaskFiles:
    """The given files, else those in task_dir under their usual names.

    SettingsError where neither is given, MissingInputError where a file that is asked for is not there.
    """
    given = config.finetuning
    names = _names_there(config)
    paths: list[str | None] = []
    needed = (config.run.do_train, given.do_eval, given.do_predict)
    for key, name, asked_for in zip(_KEYS, names, needed, strict=True):
        path = getattr(given, key)
        if given.task_dir is not None and (path is None or not storage.exists(path)):
            inside = storage.join(given.task_dir, name if path is None else path)
            path = inside if storage.exists(inside) else path
        if path is not None and asked_for and not storage.exists(path):
            raise MissingInputError(f"{path}: no such file or directory")
        paths.append(path)
    train, evaluation, prediction = paths
    if config.run.do_train and train is None:
        raise _missing(config, 0, f"task {given.task}: no file to train on; give --data-dir or --train-file")
    if given.do_predict and prediction is None:
        raise _missing(config, 2, "do_predict: no file to predict; give --predict-file")
    evaluation = evaluation if given.do_eval else None
    if not config.run.do_train and evaluation is None and prediction is None:
        raise _missing(config, 1, "nothing to evaluate or to predict: give --eval-file, or --predict-file")
    return TaskFiles(train=train, evaluation=evaluation, prediction=prediction)


def _missing(config: Config, kind: int, said: str) -> BertDataError:
    """The error for a missing file. It lists all names that were looked for in task_dir.

    kind: 0 to train on, 1 to evaluate on, 2 to predict. said: the error where there is no task_dir.
    """
    folder = config.finetuning.task_dir
    if folder is None or (kind == 1 and not config.finetuning.do_eval):
        return SettingsError(said)
    if not storage.is_directory(folder):
        return MissingInputError(f"{folder}: no such directory")
    flag = _KEYS[kind].removeprefix("task_").replace("_", "-")
    return MissingInputError(f"{folder}: holds no {names_looked_for(config, kind)}; give --{flag}")


def names_looked_for(config: Config, kind: int) -> str:
    """All usual names of a file, in words. kind: as of _missing."""
    return " and no ".join(names[kind] for names in _usual_names(config))


def _names_there(config: Config) -> FileNames:
    """The usual names that the files in task_dir have.

    All are of one distribution, because another's files to evaluate may hold examples to train on: of the
    first whose file to train on is there, else of the first that has any file there.
    """
    usual, folder = _usual_names(config), config.finetuning.task_dir
    if folder is None or len(usual) == 1:
        return usual[0]
    there = [[storage.exists(storage.join(folder, name)) for name in names] for names in usual]
    found = [names for names, (train, *_) in zip(usual, there, strict=True) if train]
    found += [names for names, any_of in zip(usual, there, strict=True) if any(any_of)]
    return found[0] if found else usual[0]


def _usual_names(config: Config) -> list[FileNames]:
    """The usual names of the task's files, of each distribution."""
    if config.finetuning.task == SQUAD:
        return [_SQUAD_2_NAMES if config.finetuning.version_2_with_negative else _SQUAD_NAMES]
    task = configured_task(config)
    return [task.files] if task.other_files is None else [task.files, task.other_files]


def check_evaluation(config: Config, files: TaskFiles) -> None:
    """InputError for a file to evaluate on that cannot be scored. Nothing has been written yet.

    By the rules of SQuAD 1.1 each question needs an answer; those of 2.0 take questions without one. The
    table of a classification is checked when its features are made.
    """
    given, path = config.finetuning, files.evaluation
    if given.task != SQUAD or path is None or given.version_2_with_negative:
        return
    for question in read_squad(path).questions:
        if not question.golds:
            raise InputError(
                f"{path}: question {question.id}: has no answers, expected 1 or more to evaluate on; "
                "--version-2-with-negative scores questions without any, --no-do-eval leaves evaluation out"
            )


def find_labels(config: Config, files: TaskFiles) -> list[str] | None:
    """The labels of a classification in the order of their numbers: given, the task's, or the file's."""
    if config.finetuning.task == SQUAD:
        return None
    task = configured_task(config)
    if task.labels is None and not task.regression:
        if files.train is None:
            raise SettingsError(
                f"task {task.name}: its labels are not known without a training file; give --labels"
            )
        task = with_labels(task, read_pairs(files.train, task))
    return None if task.labels is None else list(task.labels)


def feature_length(config: Config) -> int:
    """The ids in a feature: as configured, else the task's usual number."""
    if config.data.max_seq_length is not None:
        return config.data.max_seq_length
    kind = SquadSettings if config.finetuning.task == SQUAD else ClassificationSettings
    return kind().max_seq_length


def make_features(
    config: Config, path: str, *, training: bool, labelled: bool, tell: Callable[[str], None]
) -> FeatureSet:
    """The dataset of a file's features, below output_dir. An existing one is verified and kept.

    labelled: of a classification, whether its labels are read. tell: gets warnings, and a line.
    """
    source, tokenizer = read_source(path), configured_tokenizer(config)

    def made_by(settings: Settings, make: MakeExamples[Settings]) -> FeatureSet:
        name = feature_set_name(source, tokenizer.vocabulary, settings)
        directory = storage.join(str(config.run.output_dir), f"features/{name}")
        return make_feature_set(directory, source, tokenizer, settings, make)

    length = feature_length(config)
    if config.finetuning.task == SQUAD:
        made = made_by(squad_settings(config, length, training=training), squad_examples)
    else:
        task, lower_case = configured_task(config), config.finetuning.lower_case is not False
        sizes = ClassificationSettings(lower_case=lower_case, max_seq_length=length)
        made = made_by(settings_of(task, sizes, labelled=labelled), partial(pair_examples, task))
    for warning in made.warnings:
        tell(f"warning: {warning}")
    if not made.examples:
        raise InputError(f"{path}: gives no features")
    tell(f"{path}: {made.examples} features {'kept' if made.kept else 'made'} in {made.directory}")
    return made
