"""``bertdata show``: print examples in readable form."""

from bertdata.cli.common.objective_flag import add_objective
from bertdata.cli.common.parser import Parser, parse_not_negative, parse_positive
from bertdata.io.terminal import say_text
from bertdata.shards.mds.names import IDS_TYPE_HELP, IDS_TYPES
from bertdata.steps.show import show

EXAMPLE = "  bertdata show shards/part-00000-of-00500.tfrecord --vocab vocab.txt --index 5 --num 2"

SUMMARY = """\
Prints examples of a shard in any file format: their words, their padding and their masks (position, whether
it now holds [MASK], its own token or a random one, and the original token). Words come from the vocabulary
next to the shard's manifest; words of BPE and Unigram include the blank before them. For a shard of another
tool, give --vocab: without it token ids are printed, and [MASK] cannot be told from a random token. In a
shard of packed rows, --index and --num count rows, and each row's sequences are printed in order."""


def make_parser() -> Parser:
    """Return the parser of ``bertdata show``."""
    parser = Parser("bertdata show", EXAMPLE, SUMMARY)
    parser.add_argument(
        "shard", metavar="SHARD", help="TFRecord, HDF5, Parquet or MDS file, or directory of MDS shards"
    )
    parser.add_argument(
        "--index",
        type=parse_not_negative,
        default=0,
        metavar="N",
        help="number of the first example (or packed row) to print, from 0 (default: 0)",
    )
    parser.add_argument(
        "--num",
        type=parse_positive,
        default=1,
        metavar="N",
        help="how many examples (or packed rows) to print (default: 1)",
    )
    parser.add_argument(
        "--vocab", metavar="FILE", help="vocabulary or tokenizer.json that the shard was made with"
    )
    parser.add_argument("--ids-type", choices=IDS_TYPES, metavar="TYPE", help=IDS_TYPE_HELP)
    add_objective(parser)
    return parser


def run(arguments: list[str]) -> int:
    """Print the examples and return the exit status."""
    args = make_parser().parse_args(arguments)
    for shown in show(
        args.shard,
        index=args.index,
        num=args.num,
        vocab=args.vocab,
        ids_type=args.ids_type,
        objective=args.objective,
    ):
        say_text(str(shown))
    return 0
