"""``bertdata pick-eval``: MLPerf's evaluation examples, evenly spaced among a file's records."""

from bertdata.cli.common.parser import Parser, add_engine, positive
from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.shards.pick import pick_records

EXAMPLE = "  bertdata pick-eval eval.txt.tfrecord eval_10k --num-examples 10000"

SUMMARY = """\
Of n records, takes number int(i * n / N) for i = 0 .. N-1 and writes them in canonical form. Takes a
TFRecord file of any tool."""


def make_parser() -> Parser:
    parser = Parser("bertdata pick-eval", EXAMPLE, SUMMARY)
    parser.add_argument("input", metavar="INPUT", help="TFRecord file to pick from")
    parser.add_argument("output", metavar="OUTPUT", help="TFRecord file to write")
    parser.add_argument(
        "--num-examples", type=positive, default=10_000, metavar="N", help="records to pick (default: 10000)"
    )
    add_engine(parser)
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    with storage.open_input(args.input) as file, storage.open_output(args.output) as output:
        picked, records = pick_records(file, args.input, args.num_examples, output.write, args.engine)
        if not records:
            raise InputError(f"{args.input}: holds no records to pick from")
    print(f"{args.output}: {picked} of {records} records")
    return 0
