"""Flags of commands that read a task's data: the task, and the columns and labels of a table."""

from argparse import Namespace
from dataclasses import replace

from bertdata.cli.common.parser import Parser
from trainer.config.finetuning import SQUAD
from trainer.extensions.finetuning.classification.presets import (
    TASKS,
    ClassificationTask,
    TableColumns,
    find_classification,
)


def add_task(parser: Parser) -> None:
    """The task."""
    parser.add_argument("--task", required=True, metavar="NAME", help=f"{SQUAD}, {', '.join(TASKS)}")


def add_columns(parser: Parser) -> None:
    """Columns and labels of a table."""
    group = parser.add_argument_group(
        "tables", "TSV without quoting, .csv, .jsonl; a column is a name of the heading or a number from 0"
    )
    group.add_argument(
        "--text-column",
        "--first-column",
        metavar="NAME",
        help="first text (default: the task's, or text)",
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


def classification_of(given: Namespace) -> ClassificationTask:
    """The named task with the columns and labels of the command line."""
    task = find_classification(given.task)
    columns = TableColumns(
        first=given.text_column or task.columns.first,
        second=given.second_text_column or task.columns.second,
        label=given.label_column or task.columns.label,
    )
    task = replace(task, columns=columns, test=None if columns != task.columns else task.test)
    if given.labels is not None:
        task = replace(task, labels=tuple(given.labels.split(",")), regression=False)
    if given.scores:
        task = replace(task, labels=None, regression=True, metrics="correlation")
    return replace(task, heading=False, test=None) if given.no_heading else task
