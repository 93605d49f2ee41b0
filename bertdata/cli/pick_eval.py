"""``bertdata pick-eval``: pick evenly spaced records for evaluation, as MLPerf's script does."""

from typing import BinaryIO

from bertdata.cli.common.parser import Parser, add_engine, add_overwrite, parse_positive
from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.outputs import TFRECORD, check_output
from bertdata.io.terminal import say, say_error
from bertdata.shards.pick import pick_records
from bertdata.shards.tfrecord import TFRecordReader

EXAMPLE = """\
  bertdata pick-eval eval.txt.tfrecord eval_10k --num-examples 10000
  bertdata pick-eval --input_tfrecord=eval.txt.tfrecord --output_tfrecord=eval_10k"""

SUMMARY = """\
Picks N evenly spaced records of a TFRecord file, whatever tool wrote it: of n records, those numbered
int(i * n / N) for i = 0 ... N - 1. Writes them in canonical form. The flags with underscores are those of
MLPerf's pick_eval_samples.py."""


def make_parser() -> Parser:
    """Return the parser of ``bertdata pick-eval``."""
    parser = Parser("bertdata pick-eval", EXAMPLE, SUMMARY)
    parser.add_argument("input", nargs="?", metavar="INPUT", help="TFRecord file to pick from")
    parser.add_argument("output", nargs="?", metavar="OUTPUT", help="TFRecord file to write")
    parser.add_argument(
        "--input_tfrecord", metavar="FILE", help="TFRecord file to pick from; the same as INPUT"
    )
    parser.add_argument(
        "--output_tfrecord", metavar="FILE", help="TFRecord file to write; the same as OUTPUT"
    )
    parser.add_argument(
        "--num-examples",
        "--num_examples_to_pick",
        type=parse_positive,
        default=10_000,
        metavar="N",
        help="number of records to pick (default: 10000)",
    )
    for name, what in (("max_seq_length", "ids"), ("max_predictions_per_seq", "masked positions")):
        parser.add_argument(
            f"--{name}",
            type=parse_positive,
            metavar="INT",
            help=f"refuse the file unless its records have room for this many {what}",
        )
    add_overwrite(parser)
    add_engine(parser)
    return parser


def run(arguments: list[str]) -> int:
    """Run ``bertdata pick-eval`` and return the exit status."""
    parser = make_parser()
    args = parser.parse_args(arguments)
    flags = {"INPUT": args.input_tfrecord, "OUTPUT": args.output_tfrecord}
    places = [*filter(None, (args.input, args.output))]
    for name, given in flags.items():
        if given is None and not places:
            parser.error(f"the following arguments are required: {name}")
        flags[name] = places.pop(0) if given is None else given
    if places:
        parser.error(f"{places[0]} is one file too many: INPUT and OUTPUT are given already")
    source, target = flags.values()
    check_output(target, [source], TFRECORD, overwrite=args.overwrite)
    with storage.open_input(source) as file, storage.open_output(target) as output:
        _check_lengths(file, source, args.max_seq_length, args.max_predictions_per_seq)
        picked, records = pick_records(file, source, args.num_examples, output.write, args.engine)
        if not records:
            raise InputError(f"{source}: holds no records to pick from")
    repeated = max(0, picked - records)
    if repeated:
        say_error(
            f"bertdata: warning: {source}: holds {records} records, {picked} were asked for: {repeated} are "
            f"picked a second time or more, as by MLPerf's program; ask for --num-examples {records}"
        )
    say(f"{target}: {picked} of {records} records" + (f", {repeated} of them repeats" if repeated else ""))
    return 0


def _check_lengths(file: BinaryIO, name: str, ids: int | None, masks: int | None) -> None:
    """Raise InputError if the first record does not have the numbers of ids and masks that the flags state.

    ids: expected number of token ids of a record. None means that it is not checked.
    masks: expected number of masked positions of a record. None means that it is not checked.
    """
    if ids is None and masks is None:
        return
    layout = TFRecordReader(file, name).layout
    for found, expected, what in (
        (layout.max_seq_length, ids, "ids"),
        (layout.max_predictions_per_seq, masks, "masked positions"),
    ):
        if expected is not None and found != expected:
            raise InputError(f"{name}: record 0: room for {found} {what}, expected {expected}")
