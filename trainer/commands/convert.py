"""The command line of ``python -m trainer convert``: convert checkpoints between programs."""

from bertdata.cli.common.parser import Parser
from bertdata.io.terminal import say
from trainer.run.tokenizer_flags import add_tokenizer_flags

SOURCES = ("bertdata", "tf1", "tf2", "nvidia", "habana", "graphcore", "huggingface")
TARGETS = ("bertdata", "tf1", "tf2", "nvidia", "huggingface")
"""Checkpoint formats that ``convert`` writes. ``SOURCES`` lists the formats that it reads."""


def run(arguments: list[str]) -> None:
    """Convert a checkpoint and print what was written."""
    start = "  python -m trainer convert"
    examples = f"{start} run bert-tiny\n{start} tf1/model.ckpt-28252 start\n{start} run tf --to tf1"
    summary = """\
Converts a checkpoint, or the newest checkpoint of a run: weights, and the optimiser's moments and number of
updates if both formats have them."""
    parser = Parser("python -m trainer convert", examples, summary)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="run, checkpoint, directory or file of weights, or prefix of a TensorFlow checkpoint, on this "
        "machine or at a URL",
    )
    parser.add_argument("target", metavar="DIRECTORY", help="directory to write, or its URL")
    parser.add_argument(
        "--from",
        dest="kind",
        choices=SOURCES,
        help="format of the source, as a program's name (default: recognised from the files)",
    )
    parser.add_argument(
        "--to",
        choices=TARGETS,
        help="format to write (default: huggingface for a checkpoint of this trainer, else bertdata)",
    )
    parser.add_argument(
        "--model-config",
        metavar="FILE",
        help="bert_config.json of the model (default: found next to the weights)",
    )
    parser.add_argument(
        "--without-moments",
        dest="moments",
        action="store_false",
        help="leave out the optimiser's moments, which are two thirds of a checkpoint",
    )
    parser.add_argument(
        "--task",
        metavar="PACKAGE.MODULE:CLASS",
        help="your own task that the run was trained on; loads this class",
    )
    add_tokenizer_flags(parser)
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace what an earlier conversion wrote to DIRECTORY; other files in it are never replaced",
    )
    given = parser.parse_args(arguments)
    from trainer.checkpoints.formats.convert import convert
    from trainer.remote.copies import bring_checkpoint

    values = vars(given)
    values["source"] = bring_checkpoint(given.source)
    say(convert(**values))
