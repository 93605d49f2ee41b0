"""The command line of ``python -m trainer features``."""

from argparse import Namespace
from typing import Any

from bertdata.cli.common.parser import Parser, positive
from bertdata.config.settings import FORMATS
from bertdata.io.terminal import say, say_error
from trainer.extensions.finetuning.classification.settings import ClassificationSettings
from trainer.extensions.finetuning.features import (
    Written,
    make_pair_dataset,
    make_squad_dataset,
    write_pair_features,
    write_squad_features,
)
from trainer.extensions.finetuning.squad.settings import SquadSettings
from trainer.extensions.finetuning.task_flags import (
    SQUAD,
    TABLE_FLAGS,
    add_columns,
    add_task,
    classification_of,
)
from trainer.run.predict_command import refuse

_EXAMPLE = """\
  python -m trainer features --task squad train-v1.1.json --training --vocab vocab.txt --output features.jsonl
  python -m trainer features --task mrpc train.tsv --vocab vocab.txt --dataset features"""
_SUMMARY = """\
Makes the features that a model is fine-tuned on: as text to compare them with another program's, or as a
dataset with a manifest."""
_SQUAD_FLAGS = ("doc_stride", "max_query_length", "shuffled", "version_2_with_negative")


def run(arguments: list[str]) -> None:
    """Write the features; say what was written, and warn of what was left out."""
    given = _parser().parse_args(arguments)
    given.task = given.task.lower()
    written = _write_squad(given) if given.task == SQUAD else _write_pairs(given)
    for warning in written.warnings:
        say_error(f"trainer: warning: {warning}")
    say(written.line)


def _parser() -> Parser:
    parser = Parser("python -m trainer features", _EXAMPLE, _SUMMARY)
    parser.add_argument("file", metavar="FILE", help="SQuAD's JSON, or a table")
    add_task(parser)
    parser.add_argument("--vocab", required=True, metavar="FILE|NAME", help="vocabulary of the tokeniser")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--output", metavar="FILE", help="write the features as text, one JSON object a line")
    target.add_argument(
        "--dataset",
        metavar="DIR",
        help="make a dataset of them, which bertdata verify-md5, show, stats and convert read; one of the "
        "same file and settings that is there already is checked and kept",
    )
    parser.add_argument("--format", choices=FORMATS, default="tfrecord", help="container of the dataset")
    parser.add_argument(
        "--no-lower-case", dest="lower_case", action="store_false", help="keep case and accents"
    )
    parser.add_argument(
        "--dialect",
        choices=("google", "nvidia"),
        default="google",
        help="whose tokeniser: google (default), or nvidia, which drops all of Unicode's categories C and "
        "has a limit of 100 characters a word, not 200",
    )
    parser.add_argument(
        "--max-seq-length",
        type=positive,
        metavar="N",
        help="ids in a feature (default: 384 for squad, else 128)",
    )
    squad = parser.add_argument_group("squad")
    squad.add_argument("--training", action="store_true", help="read the answers, as for training")
    squad.add_argument(
        "--doc-stride", type=positive, metavar="N", help="tokens from one span to the next (default: 128)"
    )
    squad.add_argument(
        "--max-query-length", type=positive, metavar="N", help="most tokens of a question (default: 64)"
    )
    squad.add_argument(
        "--version-2-with-negative", action="store_true", help="a question may have no answer (SQuAD 2.0)"
    )
    squad.add_argument(
        "--shuffled",
        action="store_true",
        help="questions in the order in which Google's program trains on them, not in the file's",
    )
    add_columns(parser)
    parser.add_argument("--no-labels", action="store_true", help="a table without labels: all are 0")
    return parser


def _write_squad(given: Namespace) -> Written:
    refuse(given, (*TABLE_FLAGS, "no_labels"))
    names = ("max_seq_length", "doc_stride", "max_query_length")
    settings = SquadSettings(
        format=given.format,
        dialect=given.dialect,
        lower_case=given.lower_case,
        training=given.training,
        version_2_with_negative=given.version_2_with_negative,
        **{name: value for name in names if (value := getattr(given, name)) is not None},
    )
    if given.dataset is not None:
        refuse(given, ("shuffled",))
        return make_squad_dataset(given.file, given.dataset, vocabulary=given.vocab, settings=settings)
    return write_squad_features(
        given.file, given.output, vocabulary=given.vocab, settings=settings, shuffled=given.shuffled
    )


def _write_pairs(given: Namespace) -> Written:
    refuse(given, _SQUAD_FLAGS)
    settings = ClassificationSettings(max_seq_length=given.max_seq_length or 128)
    shared: dict[str, Any] = {
        "vocabulary": given.vocab,
        "dialect": given.dialect,
        "lower_case": given.lower_case,
        "max_seq_length": settings.max_seq_length,
        "labelled": not given.no_labels,
    }
    task = classification_of(given)
    if given.dataset is not None:
        return make_pair_dataset(given.file, given.dataset, task, format=given.format, **shared)
    return write_pair_features(given.file, given.output, task, **shared)
