"""The seam between the commands of fine-tuning and a task's files: names, flags, features, scores."""

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
)
"""The flags of a table, as ``add_columns`` adds them."""

Making = tuple[ExampleSettings, MakeExamples[Any]]
"""The settings of features, and the function that makes them."""


class Scores(NamedTuple):
    """Metrics by name, warnings, and the metrics of a guess that looks at no text, in words."""

    metrics: dict[str, float]
    warnings: list[str]
    guess: str = ""


class CheckedFiles(NamedTuple):
    """The files of a run of fine-tuning, and the checkpoint that it begins with.

    train, evaluation: their paths, or None. trains: the first is trained on. head: the labels that the
    checkpoint's head has learned; None: it has no such head, or it is drawn anew. resumes: the checkpoint is
    the run's own. tell: gets lines for the log.
    """

    train: str | None
    evaluation: str | None
    tell: Callable[[str], None]
    trains: bool = True
    head: "HeadLabels | None" = None
    resumes: bool = False


class FineTuningData(ABC):
    """The data side of a task of fine-tuning, for every task that the registry names it for.

    settings: the class of its features' settings. feature_flags: the flags of ``features`` that are settings
    of this task alone. refused: the flags of ``features`` and ``score`` that only other tasks have.
    """

    settings: type[ExampleSettings]
    feature_flags: ClassVar[tuple[str, ...]] = ()
    refused: ClassVar[tuple[str, ...]]

    @classmethod
    def feature_length(cls, config: Config) -> int:
        """Return the ids in a feature: as configured, else the task's usual number."""
        return config.data.max_seq_length or cls.settings().max_seq_length

    @abstractmethod
    def usual_names(self, given: FinetuningSection) -> list[FileNames]:
        """The usual names of the task's files, of each distribution."""

    @abstractmethod
    def check_files(self, given: FinetuningSection, files: "CheckedFiles") -> dict[str, Any]:
        """Return the keys of the configuration that the files and the checkpoint's head decide.

        They are the labels in the order of their numbers, if the task has any: given, the task's, or the
        file's, in the order of the head. InputError for a file to evaluate on that cannot be scored,
        DataError for a head that does not fit. Nothing has been written yet.
        """

    def tell(self, given: FinetuningSection, data: OpenedDataset) -> list[str]:
        """Return lines for the log about the answers in a dataset of features."""
        return []

    @abstractmethod
    def configured(self, given: FinetuningSection, length: int, *, training: bool, labelled: bool) -> Making:
        """Settings and making of the configured features, of so many ids. labelled: labels are read."""

    @abstractmethod
    def asked_for(self, given: Namespace, source: DataFile, settings: Any) -> Making:
        """The same by the flags of ``features``. settings: as far as the flags alone tell them."""

    @abstractmethod
    def score(self, given: Namespace) -> Scores:
        """The task's official metrics of the files that the flags of ``score`` name."""
