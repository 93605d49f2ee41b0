"""The command ``python -m trainer convert``."""

from bertdata.cli.common.parser import Parser
from bertdata.io.terminal import say
from trainer.run.tokenizer_flags import add_tokenizer

SOURCES = ("bertdata", "tf1", "tf2", "nvidia", "habana", "graphcore", "huggingface")
TARGETS = ("bertdata", "tf1", "tf2", "nvidia", "huggingface")
"""Kinds of checkpoints that ``convert`` reads and writes."""


def run(arguments: list[str]) -> None:
    """Convert a checkpoint."""
    start = "  python -m trainer convert"
    examples = f"{start} run bert-tiny\n{start} tf1/model.ckpt-28252 start\n{start} run tf --to tf1"
    summary = """\
Converts a checkpoint, or a run's newest: weights, moments and number of updates, where the form has them."""
    parser = Parser("python -m trainer convert", examples, summary)
    parser.add_argument("source", help="run, checkpoint, directory or file of weights, TensorFlow's prefix")
    parser.add_argument("target", help="directory to write")
    parser.add_argument("--from", dest="kind", choices=SOURCES, help="the source's kind (default: as found)")
    parser.add_argument("--to", choices=TARGETS,
                        help="form to write (default: huggingface for our own, else bertdata)")  # fmt: skip
    parser.add_argument("--model-config", metavar="FILE",
                        help="bert_config.json (default: the one beside the weights)")  # fmt: skip
    parser.add_argument("--without-moments", dest="moments", action="store_false",
                        help="leave out the optimiser's moments, two thirds of a checkpoint")  # fmt: skip
    parser.add_argument("--task", metavar="PACKAGE.MODULE:CLASS",
                        help="task of your own that the run has learned, which is loaded")  # fmt: skip
    add_tokenizer(parser)
    given = parser.parse_args(arguments)
    from trainer.checkpoints.formats.convert import convert

    say(convert(**vars(given)))
