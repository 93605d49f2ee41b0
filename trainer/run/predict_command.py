"""The command line of ``python -m trainer predict``."""

from argparse import Namespace
from typing import TYPE_CHECKING

from bertdata.cli.common.parser import Parser
from bertdata.errors import UsageError
from bertdata.io.terminal import say, say_error
from trainer.config.finetuning import PRETRAINING
from trainer.extensions.finetuning.task_flags import SQUAD, refuse
from trainer.run.tokenizer_flags import add_tokenizer
from trainer.extensions.finetuning.classification.presets import TASKS, find_classification

if TYPE_CHECKING:
    from trainer.run.trained import Trained

_WORDS = "words"
_EXAMPLE = """\
  python -m trainer predict run "Paris is the [MASK] of France."
  python -m trainer predict squad-run "Where did Anna go?" --context diary.txt
  python -m trainer predict squad-run "Where did Anna go?" --context "Anna went to the market."
  python -m trainer predict mrpc-run "The old harbour is closed." "They closed the harbour.\""""
_SUMMARY = """\
Tries a model by the task that its run has learned. Pre-training: the most probable words at each [MASK] of
the text, a line each. SQuAD: the answer to the question from the text of --context. A classification: the
label of the text, or of the pair of texts, and its probability; or the score."""


def run(arguments: list[str]) -> None:
    """Print the words, the answer or the label."""
    given = _parser().parse_args(arguments)
    from trainer.run.trained import open_trained  # imports torch, which help need not wait for

    opened = open_trained(
        given.model, vocabulary=given.vocab, train_data=given.train_data, lower_case=given.lower_case
    )
    given.task = _task(given.task, opened.config.finetuning.task)
    if given.task == _WORDS:
        _print_words(given, opened)
    elif given.task == SQUAD:
        _print_answer(given, opened)
    else:
        _print_label(given, opened)


def _parser() -> Parser:
    parser = Parser("python -m trainer predict", _EXAMPLE, _SUMMARY)
    parser.add_argument("model", metavar="RUN", help="run, or checkpoint of any program")
    parser.add_argument(
        "text",
        metavar="TEXT",
        nargs="+",
        help="a text, with [MASK] for each word to guess; a question; or one text or two to classify",
    )
    parser.add_argument(
        "--task",
        metavar="NAME",
        help=f"{_WORDS}, {SQUAD}, {', '.join(TASKS)} (default: the run's own; another program's "
        f"checkpoint: {_WORDS})",
    )
    parser.add_argument(
        "--context",
        metavar="FILE|TEXT",
        help="of squad: the file of the text that the answer is in; several words that name no file are the "
        "text itself",
    )
    parser.add_argument(
        "--labels", metavar="A,B", help="labels in the order of their ids (default: the run's)"
    )
    parser.add_argument("--num", type=int, metavar="N", help="words for each [MASK] (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON, with probabilities")
    add_tokenizer(parser)
    return parser


def _task(name: str | None, own: str) -> str:
    """The named task, else the run's own; words for a model that was not fine-tuned."""
    if name is None:
        return _WORDS if own == PRETRAINING else own
    return name.lower() if name.lower() in (_WORDS, SQUAD) else find_classification(name).name


def _print_words(given: Namespace, opened: "Trained") -> None:
    from trainer.run.predict import predict_lines

    refuse(given, ("context", "labels"))
    count = 5 if given.num is None else given.num
    say(*predict_lines(opened, _single(given), count=count, as_json=given.json))


def _print_answer(given: Namespace, opened: "Trained") -> None:
    """Print the answer; an empty line, and a message, where the text holds none."""
    from trainer.extensions.finetuning.answer import THE_TEXT, answer_line, find_context

    refuse(given, ("num", "labels"))
    question = _single(given)
    if given.context is None:
        raise UsageError(
            f"{given.model}: the task squad answers from a text: give it, or its file, by --context"
        )
    context = find_context(given.context)
    if context.name == THE_TEXT:
        say_error("trainer: --context names no file: it is taken as the text itself")
    line = answer_line(opened, question, context, as_json=given.json)
    say(line)
    if not line:
        say_error(f"trainer: {context.name}: holds no answer to the question")


def _print_label(given: Namespace, opened: "Trained") -> None:
    from trainer.extensions.finetuning.label import label_line

    refuse(given, ("num", "context"))
    labels = given.labels.split(",") if given.labels else None
    say(label_line(opened, given.task, given.text, labels=labels, as_json=given.json))


def _single(given: Namespace) -> str:
    """The text of a task that takes only one."""
    if len(given.text) > 1:
        raise UsageError(f"the task {given.task} takes one text, found {len(given.text)}; put it into quotes")
    text: str = given.text[0]
    return text
