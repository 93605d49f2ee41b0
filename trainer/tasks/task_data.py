"""The interface between fine-tuning commands and a task's files: file names, flags, features and scores."""

from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from bertdata.config.settings import ExampleSettings
from bertdata.dataset.reader import OpenedDataset
from bertdata.records import Vocabulary
from trainer.config.sections.finetuning import FinetuningSection
from trainer.config.settings import Config
from trainer.tasks.data_file import DataFile
from trainer.tasks.feature_set import MakeExamples
from trainer.tasks.names import FileNames

if TYPE_CHECKING:
    from trainer.tasks.classification.head_labels import HeadLabels

TABLE_FLAGS = (
    "text_column",
    "second_text_column",
    "label_column",
    "labels",
    "scores",
    "heading",
    "quoting",
    "skip_bad_records",
)
"""Flags of the commands ``features`` and ``score`` about tables.

The function ``add_column_flags`` adds them to a parser.
"""

SettingsAndMaker = tuple[ExampleSettings, MakeExamples[Any]]
"""Settings of features, and the function that makes the examples with these settings."""


class Scores(NamedTuple):
    """Metrics by name, warnings, and a text about the metrics of a baseline that does not read the input."""

    metrics: dict[str, float]
    warnings: list[str]
    guess: str = ""


class CheckedFiles(NamedTuple):
    """The files of a fine-tuning run, and what is known about the checkpoint from which it starts.

    train: path of the training file, or None.
    evaluation: path of the evaluation file, or None.
    tell: function that writes a line to the log.
    trains: whether the training file is used.
    head: labels of the checkpoint's classification head. None if there is no such head, or if
        it will be replaced.
    resumes: whether the checkpoint belongs to this run, which is resumed.
    """

    train: str | None
    evaluation: str | None
    tell: Callable[[str], None]
    trains: bool = True
    head: "HeadLabels | None" = None
    resumes: bool = False


class FineTuningData(ABC):
    """Interface through which commands check a fine-tuning task's files, make features and compute scores.

    settings: class of the settings that determine the task's features.
    feature_flags: flags of the command ``features`` for settings that only this task has.
    refused: flags of the commands ``features`` and ``score`` that only other tasks have.
    counts_training_labels: whether an evaluation has a baseline that follows from the training set's labels.
    """

    settings: type[ExampleSettings]
    feature_flags: ClassVar[tuple[str, ...]] = ()
    refused: ClassVar[tuple[str, ...]]
    counts_training_labels: ClassVar[bool] = False

    @classmethod
    def choose_feature_length(cls, config: Config) -> int:
        """Return the number of token ids in a feature. If none is configured, it is the task's default."""
        return config.data.max_seq_length or cls.settings().max_seq_length

    def choose_feature_defaults(
        self, given: Mapping[str, Any], vocabulary: Vocabulary
    ) -> tuple[dict[str, Any], list[str]]:
        """Return settings whose default gives way to another setting, and a line for the log about each.

        given: settings of the features by name. A setting that is None has its default.
        vocabulary: the tokeniser's vocabulary.
        """
        return {}, []

    @abstractmethod
    def list_usual_names(self, given: FinetuningSection) -> list[FileNames]:
        """Return the usual names of the task's files, with one entry for each published
        distribution of its data.
        """

    @abstractmethod
    def check_files(self, given: FinetuningSection, files: "CheckedFiles") -> dict[str, Any]:
        """Check the files, before anything is written, and return the configuration keys
        that follow from them.

        The keys also follow from the checkpoint's head. For example, a classification returns its labels
        in the order of their ids. These are the configured labels, the task's or the file's, in the
        order of the head's rows.
        Raises InputError for an evaluation file that cannot be scored.
        Raises DataError for a head that does not fit the task.
        """

    def tell(self, given: FinetuningSection, data: OpenedDataset) -> list[str]:
        """Return lines for the log about the answers in a dataset of features, such as counts of labels."""
        return []

    @abstractmethod
    def prepare_configured_features(
        self,
        given: FinetuningSection,
        length: int,
        vocabulary: Vocabulary,
        *,
        training: bool,
        labelled: bool,
    ) -> SettingsAndMaker:
        """Return the settings of the configured features, and the function that makes these features.

        length: number of ids in a feature.
        vocabulary: the tokeniser's vocabulary.
        training: whether the features are for training.
        labelled: whether labels are read.
        """

    @abstractmethod
    def prepare_requested_features(
        self, given: Namespace, source: DataFile, settings: Any
    ) -> SettingsAndMaker:
        """Return the settings of the features that the flags of ``features`` describe, and the
        function that makes them.

        settings: settings that follow from the flags alone. They are completed from the file.
        """

    @abstractmethod
    def score(self, given: Namespace) -> Scores:
        """Return the task's official metrics, for the files in the flags of the command ``score``."""
