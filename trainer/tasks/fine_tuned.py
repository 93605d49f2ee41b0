"""Functions for commands: they find a fine-tuning task by its name, add flags, and predict a single text."""

from argparse import Namespace
from typing import TYPE_CHECKING

from bertdata.cli.common.parser import Parser
from bertdata.sources.delimited import QUOTING
from trainer.plugins import FINE_TUNED, find

if TYPE_CHECKING:
    from trainer.tasks.prediction import Prediction, Trained
from trainer.tasks.names import find_task_name
from trainer.tasks.task_data import FineTuningData


def predict_task(given: Namespace, opened: "Trained", task: str) -> "Prediction":
    """Return the prediction of a fine-tuned model for the text on the command line.

    task: name of the task, in upper or lower case.
    """
    given.task = find_task_name(task)
    found: Prediction = find("task", given.task).predict(given, opened)
    return found


def find_task_data(name: str) -> FineTuningData:
    """Return the object that reads a task's files and makes its features. Unknown names raise an error."""
    kind: type[FineTuningData] = find("data of the task", find_task_name(name))
    return kind()


def add_task_flag(parser: Parser) -> None:
    """Add the flag ``--task`` to a parser."""
    parser.add_argument(
        "--task", required=True, metavar="NAME", help=f"fine-tuning task of the file: {', '.join(FINE_TUNED)}"
    )


def add_column_flags(parser: Parser) -> None:
    """Add the flags about the columns and labels of a table to a parser."""
    group = parser.add_argument_group(
        "tables", "files .tsv, .csv, .jsonl; COLUMN is a name in the heading, or a number from 0"
    )
    group.add_argument(
        "--text-column",
        "--first-column",
        metavar="COLUMN",
        help="column of the first text (default: the task's usual column, else the column text)",
    )
    group.add_argument(
        "--second-text-column",
        "--second-column",
        metavar="COLUMN",
        help="column of the second text, for pairs of texts (default: the task's usual column)",
    )
    group.add_argument(
        "--label-column",
        metavar="COLUMN",
        help="column of the label (default: the task's usual column, else the column label)",
    )
    group.add_argument(
        "--labels",
        metavar="A,B",
        help="labels in the order of their ids (default: the task's labels; for your own table its labels, "
        "sorted)",
    )
    group.add_argument(
        "--scores",
        "--regression",
        action="store_true",
        help="the table has scores (numbers) instead of labels",
    )
    heading = group.add_mutually_exclusive_group()
    heading.add_argument(
        "--no-heading",
        dest="heading",
        action="store_false",
        default=None,
        help="the first line is an example, not a heading",
    )
    heading.add_argument(
        "--heading",
        dest="heading",
        action="store_true",
        default=None,
        help="the first line names the columns",
    )
    group.add_argument(
        "--quoting",
        choices=QUOTING,
        help="meaning of double quotes: csv (they enclose a value) or none (they are text) (default: csv for "
        ".csv, none for .tsv)",
    )
    group.add_argument(
        "--skip-bad-records",
        action="store_true",
        help="leave out and count rows that are malformed, lack a column, or have a bad label or score; "
        "without this flag the first such row ends the command with an error",
    )
