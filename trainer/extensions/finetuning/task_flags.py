"""Flags of commands that read a task's data: the task, and the columns and labels of a table."""

from bertdata.cli.common.parser import Parser
from trainer.registry.extensions import FINE_TUNED


def add_task(parser: Parser) -> None:
    """The task."""
    parser.add_argument("--task", required=True, metavar="NAME", help=", ".join(FINE_TUNED))


def add_columns(parser: Parser) -> None:
    """Columns and labels of a table."""
    group = parser.add_argument_group(
        "tables", "TSV without quoting, .csv, .jsonl; a column is a name of the heading or a number from 0"
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


TABLE_FLAGS = ("text_column", "second_text_column", "label_column", "labels", "scores", "no_heading")
