"""The seam between the commands of fine-tuning and a task's files: names, flags, features, scores."""

from abc import ABC, abstractmethod
from argparse import Namespace
from typing import Any, ClassVar, NamedTuple

from bertdata.config.settings import ExampleSettings
from trainer.config.sections.finetuning import FinetuningSection
from trainer.config.settings import Config
from trainer.tasks.data_file import DataFile
from trainer.tasks.feature_set import MakeExamples

FileNames = tuple[str, str, str]
"""Names of the files to train, to evaluate and to predict."""

TABLE_FLAGS = (
    "text_column",
    "second_text_column",
    "label_column",
    "labels",
    "scores",
    "no_heading",
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
    def check_files(
        self, given: FinetuningSection, train: str | None, evaluation: str | None
    ) -> list[str] | None:
        """The labels, if it has any, in the order of their numbers: given, the task's, or the file's.

        InputError for a file to evaluate on that cannot be scored. Nothing has been written yet.
        """

    @abstractmethod
    def configured(self, given: FinetuningSection, length: int, *, training: bool, labelled: bool) -> Making:
        """Settings and making of the configured features, of so many ids. labelled: labels are read."""

    @abstractmethod
    def asked_for(self, given: Namespace, source: DataFile, settings: Any) -> Making:
        """The same by the flags of ``features``. settings: as far as the flags alone tell them."""

    @abstractmethod
    def score(self, given: Namespace) -> Scores:
        """The task's official metrics of the files that the flags of ``score`` name."""
