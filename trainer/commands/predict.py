"""The command line of ``python -m trainer predict``: try a trained model on a text."""

from bertdata.cli.common.parser import Parser, parse_positive
from bertdata.io.terminal import dump_printable_json, say
from trainer.run.tokenizer_flags import add_tokenizer_flags

_WORDS = "words"
_EXAMPLE = """\
  python -m trainer predict run "Paris is the [MASK] of France."
  python -m trainer predict squad-run "Where did Anna go?" --context diary.txt
  python -m trainer predict squad-run "Where did Anna go?" --context "Anna went to the market."
  python -m trainer predict mrpc-run "The old harbour is closed." "They closed the harbour.\""""
_SUMMARY = """\
Tries a model on a text, with the task that it was trained for. Pre-training: the most probable words at each
[MASK], one per line. SQuAD: the answer to the question, taken from the text of --context. Classification: the
label of a text or of two texts, with its probability, or a score."""


def run(arguments: list[str]) -> None:
    """Predict with a trained model and print the result: words for the masks, an answer, or a label."""
    given = _make_parser().parse_args(arguments)
    from trainer.run.predict import predict_text  # imports torch, which help need not wait for

    found = predict_text(given)
    say(*([dump_printable_json(found.as_json())] if given.json else str(found).split("\n")))


def _make_parser() -> Parser:
    parser = Parser("python -m trainer predict", _EXAMPLE, _SUMMARY)
    parser.add_argument(
        "model",
        metavar="RUN",
        help="directory of a run, or a checkpoint of this trainer or another program, on this machine or "
        "at a URL",
    )
    parser.add_argument(
        "text",
        metavar="TEXT",
        nargs="+",
        help="text with [MASK] (or the tokeniser's mask token) for each word to guess; or a question; or one "
        "or two texts to classify",
    )
    parser.add_argument(
        "--task",
        metavar="NAME",
        help=f"{_WORDS}, or the name of a fine-tuning task (default: the run's task; for another program's "
        f"checkpoint the task of its head, else {_WORDS})",
    )
    parser.add_argument(
        "--context",
        metavar="FILE|TEXT",
        help="for squad: file with the text that contains the answer, or the text itself (several words that "
        "are not a file's name)",
    )
    parser.add_argument(
        "--labels", metavar="A,B", help="labels in the order of their ids (default: from the checkpoint)"
    )
    parser.add_argument(
        "--num",
        type=parse_positive,
        metavar="N",
        help="number of words to print for each [MASK] (default: 5)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with probabilities")
    parser.add_argument(
        "--model-config",
        metavar="FILE",
        help="bert_config.json of another program's checkpoint (default: found next to the weights)",
    )
    add_tokenizer_flags(parser)
    return parser
