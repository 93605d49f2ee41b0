"""The command ``python -m trainer score``: metrics of predictions in files."""

import json

from bertdata.cli.common.parser import Parser, number
from bertdata.io.terminal import say, say_error
from trainer.tasks.fine_tuned import add_columns, add_task, find_data
from trainer.tasks.prediction import refuse

_EXAMPLE = """\
  python -m trainer score --task squad dev-v1.1.json predictions.json
  python -m trainer score --task squad dev-v2.0.json predictions.json --na-prob-file null_odds.json
  python -m trainer score --task mrpc dev.tsv test_results.tsv --json"""
_SUMMARY = """\
Compares predictions with a file of right answers by the task's official metrics: SQuAD's exact match and F1
in per cent, GLUE's from 0 to 1. Predictions of a table: one label a line, or with a heading and an index as
run_glue.py writes them, or a probability for each label as run_classifier.py does. Standard error tells what
a guess without reading would score: always the most frequent label; for SQuAD 2.0 always no answer."""


def run(arguments: list[str]) -> None:
    """Print each metric on a line, or all as one JSON object."""
    parser = Parser("python -m trainer score", _EXAMPLE, _SUMMARY)
    parser.add_argument("data", metavar="DATA", help="SQuAD's JSON, or a table with labels")
    parser.add_argument("predictions", metavar="PREDICTIONS", help="predictions.json, or a table of labels")
    add_task(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument(
        "--version-2-with-negative",
        action="store_true",
        help="by the rules of SQuAD 2.0 (default: where a question has no answer)",
    )
    parser.add_argument(
        "--na-prob-file",
        metavar="FILE",
        help="null_odds.json, or a probability of no answer by each question's id: scores with the best "
        "thresholds are told too (SQuAD 2.0)",
    )
    parser.add_argument(
        "--na-prob-thresh",
        type=number,
        metavar="X",
        help="a question with a number above this counts as having no answer (default: 1, as the official "
        "program has it)",
    )
    add_columns(parser)
    given = parser.parse_args(arguments)
    given.task = given.task.lower()
    task = find_data(given.task)
    refuse(given, task.refused)
    found = task.score(given)
    for warning in found.warnings:
        say_error(f"trainer: warning: {warning}")
    if given.json:
        say(json.dumps(found.metrics))
    else:
        say(*(f"{name} {value}" for name, value in found.metrics.items()))
    if found.guess:
        say_error(f"trainer: beside it: {found.guess}")
