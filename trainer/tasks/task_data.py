"""The interface between the fine-tuning commands and a task's files: names, flags, features, scores."""

from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from bertdata.config.settings import ExampleSettings
from bertdata.dataset.reader import OpenedDataset
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
"""Flags of ``features`` and ``score`` about tables. The function ``add_columns`` adds them to a parser."""

Making = tuple[ExampleSettings, MakeExamples[Any]]
"""What a task returns to the command that makes features: settings, and the function that makes the
examples.
"""


class Scores(NamedTuple):
    """Metrics by name, warnings, and a text about the metrics of a baseline that does not read the input."""

    metrics: dict[str, float]
    warnings: list[str]
    guess: str = ""


class CheckedFiles(NamedTuple):
    """The files of a fine-tuning run, and what is known about its starting checkpoint.

    train, evaluation: paths, or None.
    tell: function that writes a line to the log.
    trains: whether the training file is used.
    head: labels of the checkpoint's head. None: no such head, or it will be replaced.
    resumes: whether the checkpoint belongs to this run.
    """

    train: str | None
    evaluation: str | None
    tell: Callable[[str], None]
    trains: bool = True
    head: "HeadLabels | None" = None
    resumes: bool = False


class FineTuningData(ABC):
    """Interface with which commands check a fine-tuning task's files, make features and compute scores.

    settings: class of the settings that determine the task's features.
    feature_flags: flags of ``features`` that are settings of this task only.
    refused: flags of ``features`` and ``score`` that only other tasks have.
    """

    settings: type[ExampleSettings]
    feature_flags: ClassVar[tuple[str, ...]] = ()
    refused: ClassVar[tuple[str, ...]]

    @classmethod
    def choose_feature_length(cls, config: Config) -> int:
        """Return the number of token ids in a feature: the configured number, else the task's default."""
        return config.data.max_seq_length or cls.settings().max_seq_length

    @abstractmethod
    def list_usual_names(self, given: FinetuningSection) -> list[FileNames]:
        """Return the usual names of the task's files, one entry for each published distribution."""

    @abstractmethod
    def check_files(self, given: FinetuningSection, files: "CheckedFiles") -> dict[str, Any]:
        """Check the files before anything is written.

        Return the configuration keys that follow from the files and the checkpoint's head.

        A classification returns its labels in the order of their ids. They are the configured labels, the
        task's or the file's, reordered as in the checkpoint's head. InputError for an evaluation file
        that cannot be scored. DataError for a head that does not fit.
        """

    def tell(self, given: FinetuningSection, data: OpenedDataset) -> list[str]:
        """Return lines for the log about the answers in a dataset of features, such as the counts of
        labels.
        """
        return []

    @abstractmethod
    def prepare_configured_features(
        self, given: FinetuningSection, length: int, *, training: bool, labelled: bool
    ) -> Making:
        """Return the settings of the configured features, and the function that makes them.

        length: ids in a feature. labelled: whether labels are read.
        """

    @abstractmethod
    def prepare_requested_features(self, given: Namespace, source: DataFile, settings: Any) -> Making:
        """Return the settings of the features that the flags of ``features`` describe, and their function.

        settings: settings that follow from the flags alone, to be completed from the file.
        """

    @abstractmethod
    def score(self, given: Namespace) -> Scores:
        """Return the task's official metrics for the files in the flags of ``score``."""
