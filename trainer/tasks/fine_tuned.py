"""The tasks of fine-tuning by name, their flags, and a prediction of one."""

from argparse import Namespace
from typing import TYPE_CHECKING

from bertdata.cli.common.parser import Parser
from bertdata.sources.delimited import QUOTING
from trainer.plugins import FINE_TUNED, find

if TYPE_CHECKING:
    from trainer.tasks.prediction import Trained
from trainer.tasks.names import find_name
from trainer.tasks.task_data import FineTuningData


def predict_task(given: Namespace, opened: "Trained", task: str) -> None:
    """Print the prediction of one text by a fine-tuned model. task: the name of the task."""
    given.task = find_name(task)
    find("task", given.task).print_prediction(given, opened)


def find_data(name: str) -> FineTuningData:
    """The data side of the task of that name (``find_name``)."""
    kind: type[FineTuningData] = find("data of the task", find_name(name))
    return kind()


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
    heading = group.add_mutually_exclusive_group()
    heading.add_argument(
        "--no-heading",
        dest="heading",
        action="store_false",
        default=None,
        help="the first line is an example",
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
        help="csv: double quotes enclose a value, none: they are text (default: csv for .csv, none for .tsv)",
    )
