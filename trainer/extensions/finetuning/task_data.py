"""The seam between the commands of fine-tuning and a task's files: names, flags, features, scores."""

from abc import ABC, abstractmethod
from argparse import Namespace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from bertdata.cli.common.parser import Parser
from bertdata.config.settings import ExampleSettings
from bertdata.errors import SettingsError
from bertdata.sources.delimited import QUOTING
from trainer.config.finetuning import FinetuningSection
from trainer.extensions.finetuning.data_file import DataFile
from trainer.extensions.finetuning.feature_set import MakeExamples
from trainer.registry import find
from trainer.registry.extensions import FINE_TUNED

if TYPE_CHECKING:
    from trainer.run.trained_model import Trained

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


def predict_task(given: Namespace, opened: "Trained", task: str) -> None:
    """Print the prediction of one text by a fine-tuned model. task: the name of the task."""
    given.task = find_name(task)
    find("task", given.task).print_prediction(given, opened)


def find_data(name: str) -> FineTuningData:
    """The data side of the task of that name (``find_name``)."""
    kind: type[FineTuningData] = find("data of the task", find_name(name))
    return kind()


def find_name(name: str) -> str:
    """The task of fine-tuning of that name, in any case, hyphens or underscores or none (STS-B, sts_b, stsb).

    SettingsError for another name.
    """
    plain = {task.replace("-", ""): task for task in FINE_TUNED}
    found = plain.get(name.lower().replace("-", "").replace("_", ""))
    if found is None:
        raise SettingsError(f"task {name!r}: no such task; known are {', '.join(FINE_TUNED)}")
    return found


def add_task(parser: Parser) -> None:
    """The task."""
    parser.add_argument("--task", required=True, metavar="NAME", help=", ".join(FINE_TUNED))


def add_columns(parser: Parser) -> None:
    """Columns and labels of a table."""
    group = parser.add_argument_group(
        "tables", ".tsv, .csv, .jsonl; a column is a name of the heading or a number from 0"
    )
    group.add_argument(
        "--text-column", "--first-column", metavar="NAME", help="first text (default: the task's, or text)"
    )
    group.add_argument(
        "--second-text-column", "--second-column", metavar="NAME", help="second text, where there is one"
    )
    group.add_argument("--label-column", metavar="NAME", help="label (default: the task's, or label)")
    group.add_argument(
        "--labels", metavar="A,B", help="labels in the order of their ids (default: the task's, else sorted)"
    )
    group.add_argument("--scores", "--regression", action="store_true", help="labels are numbers")
    group.add_argument("--no-heading", action="store_true", help="the first line is an example")
    group.add_argument(
        "--quoting",
        choices=QUOTING,
        help="csv: double quotes enclose a value, none: they are text (default: csv for .csv, none for .tsv)",
    )
