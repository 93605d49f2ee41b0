"""The command line of ``python -m trainer predict``."""

from argparse import Namespace
from typing import TYPE_CHECKING

from bertdata.cli.common.parser import Parser, positive
from bertdata.io.terminal import say
from trainer.run.tokenizer_flags import add_tokenizer
from trainer.tasks.prediction import refuse, single_text

if TYPE_CHECKING:
    from trainer.tasks.prediction import Trained

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
    from trainer.run.trained_model import open_trained  # imports torch, which help need not wait for
    from trainer.tasks.fine_tuned import predict_task

    opened = open_trained(
        given.model,
        model_config=given.model_config,
        vocabulary=given.vocab,
        train_data=given.train_data,
        lower_case=given.lower_case,
    )
    task = given.task or (opened.config.task if opened.config.is_finetuning else _WORDS)
    if task.lower() == _WORDS:
        given.task = _WORDS
        _print_words(given, opened)
    else:
        predict_task(given, opened, task)


def _parser() -> Parser:
    parser = Parser("python -m trainer predict", _EXAMPLE, _SUMMARY)
    parser.add_argument("model", metavar="RUN", help="run, or checkpoint of any program")
    parser.add_argument(
        "text",
        metavar="TEXT",
        nargs="+",
        help="a text, with [MASK] or the tokeniser's own mask for each word to guess; a question; or one "
        "text or two to classify",
    )
    parser.add_argument(
        "--task",
        metavar="NAME",
        help=f"{_WORDS}, or a task of finetune by its name (default: the run's own; another program's "
        f"checkpoint: by its head, else {_WORDS})",
    )
    parser.add_argument(
        "--context",
        metavar="FILE|TEXT",
        help="of squad: the file of the text that the answer is in; several words that name no file are the "
        "text itself",
    )
    parser.add_argument(
        "--labels", metavar="A,B", help="labels in the order of their ids (default: the checkpoint's own)"
    )
    parser.add_argument("--num", type=positive, metavar="N", help="words for each [MASK] (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON, with probabilities")
    parser.add_argument(
        "--model-config",
        metavar="FILE",
        help="bert_config.json, for another program's checkpoint (default: the one beside the weights)",
    )
    add_tokenizer(parser)
    return parser


def _print_words(given: Namespace, opened: "Trained") -> None:
    from trainer.run.predict import predict_lines

    refuse(given, ("context", "labels"))
    count = 5 if given.num is None else given.num
    say(*predict_lines(opened, single_text(given), count=count, as_json=given.json))
