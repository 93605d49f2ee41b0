"""The command line of ``python -m trainer score``: metrics of predictions stored in files."""

import json

from bertdata.cli.common.parser import Parser, parse_number
from bertdata.io.terminal import say, say_error
from trainer.tasks.fine_tuned import add_column_flags, add_task_flag, find_task_data
from trainer.tasks.prediction import refuse_flags

_EXAMPLE = """\
  python -m trainer score --task squad dev-v1.1.json predictions.json
  python -m trainer score --task squad dev-v2.0.json predictions.json --na-prob-file null_odds.json
  python -m trainer score --task mrpc dev.tsv test_results.tsv --json"""
_SUMMARY = """\
Compares predictions with a file of right answers, using the task's official metrics: for SQuAD exact match
and F1 in per cent, for GLUE values from 0 to 1. Predictions for a table have one label per line, or a heading
and an index as written by run_glue.py, or a probability for each label as written by run_classifier.py.
Standard error shows the score of guessing without reading: always the most frequent label, or for SQuAD 2.0
always no answer."""


def run(arguments: list[str]) -> None:
    """Print one metric per line, or all metrics as a JSON object."""
    parser = Parser("python -m trainer score", _EXAMPLE, _SUMMARY)
    parser.add_argument("data", metavar="DATA", help="SQuAD's JSON, or a table with labels")
    parser.add_argument("predictions", metavar="PREDICTIONS", help="predictions.json, or a table of labels")
    add_task_flag(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument(
        "--version-2-with-negative",
        action="store_true",
        help="use the rules of SQuAD 2.0 (default: if a question in DATA has no answer)",
    )
    parser.add_argument(
        "--na-prob-file",
        metavar="FILE",
        help="null_odds.json, or a JSON file with the probability of no answer for each question id; adds "
        "scores with the best thresholds (SQuAD 2.0)",
    )
    parser.add_argument(
        "--na-prob-thresh",
        type=parse_number,
        metavar="NUMBER",
        help="count a question as having no answer if its number in --na-prob-file is above this threshold "
        "(default: 1, as in SQuAD's official program)",
    )
    add_column_flags(parser)
    given = parser.parse_args(arguments)
    given.task = given.task.lower()
    task = find_task_data(given.task)
    refuse_flags(given, task.refused)
    found = task.score(given)
    for warning in found.warnings:
        say_error(f"trainer: warning: {warning}")
    if given.json:
        say(json.dumps(found.metrics))
    else:
        say(*(f"{name} {value}" for name, value in found.metrics.items()))
    if found.guess:
        say_error(f"trainer: beside it: {found.guess}")
