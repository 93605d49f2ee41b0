"""The command line of ``python -m trainer features``: write a task's features as text or as a dataset."""

from argparse import Namespace

from bertdata.cli.common.parser import Parser, add_overwrite, parse_not_negative, parse_positive
from bertdata.config.settings import FORMATS
from bertdata.errors import UsageError
from bertdata.io import storage
from bertdata.io.assets import warn_about_local_name
from bertdata.io.outputs import JSON_LINES, check_output, refuse_input_as_output
from bertdata.io.terminal import say, say_error
from bertdata.tokens.files import TokenizerJson, VocabularyFile
from bertdata.tokens.fit import warn_of_casing
from bertdata.tokens.load import tokenizer_of
from bertdata.tokens.tokenizer import Tokenizer
from trainer.data.named_tokenizer import change_casing, find_named_tokenizer, find_vocabulary_warnings
from trainer.tasks.data_file import read_file
from trainer.tasks.feature_set import format_json_line, make_feature_set
from trainer.tasks.fine_tuned import add_column_flags, add_task_flag, find_task_data
from trainer.tasks.prediction import refuse_flags

_EXAMPLE = """\
  python -m trainer features --task squad train-v1.1.json --training --vocab vocab.txt --output features.jsonl
  python -m trainer features --task mrpc train.tsv --vocab vocab.txt --dataset features"""
_SUMMARY = """\
Makes the features that a model is fine-tuned on: as text to compare them with another program's, or as a
dataset with a manifest."""
_FLAGS = ("format", "dialect", "lower_case", "max_seq_length")
"""Flags whose values are settings of the features of every task. Further flags belong to a single task."""


def run(arguments: list[str]) -> None:
    """Write a task's examples as features, that is, as token ids for the model. Print what was written.

    A warning is printed if examples were left out.
    """
    given = _make_parser().parse_args(arguments)
    given.task = given.task.lower()
    task = find_task_data(given.task)
    refuse_flags(given, task.refused)
    tokenizer, casing, warnings = _open_tokenizer(given)
    values = {name: getattr(given, name) for name in (*_FLAGS, *task.feature_flags)} | {"lower_case": casing}
    fitted, lines = task.choose_feature_defaults(values, tokenizer.vocabulary)
    for line in lines:
        say_error(f"trainer: {line}")
    values |= fitted
    settings = task.settings(**{name: value for name, value in values.items() if value is not None})
    if given.dataset is not None:
        refuse_flags(given, ("shuffled",))
    inputs = [given.file, given.vocab]
    if given.dataset is not None:
        refuse_input_as_output(given.dataset, inputs)
    else:
        check_output(given.output, inputs, JSON_LINES, overwrite=given.overwrite)
    source = read_file(given.file)
    settings, make = task.prepare_requested_features(given, source, settings)
    if given.dataset is not None:
        found = make_feature_set(given.dataset, source, tokenizer, settings, make)
        line = f"{found.directory}: {'kept' if found.kept else 'made'} {found.examples} examples"
        warnings += found.warnings
    else:
        made = make(source, tokenizer, settings)
        with storage.open_output(given.output) as file:
            for value in made.values:
                file.write(format_json_line(value).encode("ascii"))
        line = f"{given.output}: {made.count}"
        warnings += made.warnings
    for warning in warnings:
        say_error(f"trainer: warning: {warning}")
    say(line)


def _make_parser() -> Parser:
    parser = Parser("python -m trainer features", _EXAMPLE, _SUMMARY)
    parser.add_argument("file", metavar="FILE", help="questions in SQuAD's JSON, or a table of texts")
    add_task_flag(parser)
    parser.add_argument(
        "--vocab",
        required=True,
        metavar="FILE|NAME",
        help="vocabulary: its file, the name of a published one, or a directory that contains it; or a "
        "tokenizer.json",
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument(
        "--output", metavar="FILE", help="write the features as text, one JSON object per line"
    )
    target.add_argument(
        "--dataset",
        metavar="DIRECTORY",
        help="write the features as a dataset for bertdata verify-md5, show, stats and convert; an existing "
        "dataset from the same file and settings is checked and kept",
    )
    add_overwrite(parser)
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="tfrecord",
        help="file format of the dataset's shards (default: tfrecord)",
    )
    parser.add_argument(
        "--no-lower-case",
        dest="lower_case",
        action="store_false",
        default=None,
        help="keep case and accents",
    )
    parser.add_argument(
        "--dialect",
        choices=("google", "nvidia"),
        default="google",
        help="program whose tokeniser to follow: google, or nvidia, which drops all characters of Unicode's "
        "categories C and limits words to 100 characters instead of 200 (default: google)",
    )
    parser.add_argument(
        "--max-seq-length",
        type=parse_positive,
        metavar="N",
        help="most token ids in a feature (default: 384 for squad, else 128)",
    )
    squad = parser.add_argument_group("squad")
    squad.add_argument("--training", action="store_true", help="make features for training, with the answers")
    squad.add_argument(
        "--doc-stride",
        type=parse_positive,
        metavar="N",
        help="number of tokens from the start of one span of a long context to the start of the next span "
        "(default: 128)",
    )
    squad.add_argument(
        "--doc-overlap",
        type=parse_not_negative,
        metavar="N",
        help="number of tokens that two neighbouring spans of a long context share, as in run_qa.py; "
        "replaces --doc-stride",
    )
    squad.add_argument(
        "--max-query-length",
        type=parse_not_negative,
        metavar="N",
        help="most tokens of a question, 0: no limit (default: 64, or the largest number that fits in "
        "--max-seq-length)",
    )
    squad.add_argument(
        "--first-answer",
        action="store_true",
        help="with --training: use the first answer to a question with several answers; a question without "
        "answers counts as impossible",
    )
    squad.add_argument(
        "--version-2-with-negative", action="store_true", help="allow questions without an answer (SQuAD 2.0)"
    )
    squad.add_argument(
        "--shuffled",
        action="store_true",
        help="write questions in the order in which Google's program trains on them, not in the file's order",
    )
    add_column_flags(parser)
    parser.add_argument(
        "--no-labels", action="store_true", help="read a table without labels, and write 0 as every label"
    )
    return parser


def _open_tokenizer(given: Namespace) -> tuple[Tokenizer, bool | None, list[str]]:
    """Return the tokeniser, whether it lower-cases, and warnings.

    The second value is None for a tokenizer.json, which determines the casing itself. A warning is returned
    if the name or the words of a vocabulary contradict the requested casing.
    """
    file = find_named_tokenizer(given.vocab, given.dialect)
    if isinstance(file, TokenizerJson):
        if given.dialect != "google":
            raise UsageError(f"--dialect {given.dialect}: goes with a vocabulary, and {file.path} is none")
        return (
            tokenizer_of(change_casing(file, given.lower_case)),
            None,
            find_vocabulary_warnings(given.vocab),
        )
    file = change_casing(file, given.lower_case)
    assert isinstance(file, VocabularyFile)
    tokenizer = tokenizer_of(file)
    words = tokenizer.vocabulary
    warnings = [
        *find_vocabulary_warnings(given.vocab),
        *warn_about_local_name(file.path, words.md5),
        *warn_of_casing(words, file.lower_case),
    ]
    return tokenizer, file.lower_case, warnings
