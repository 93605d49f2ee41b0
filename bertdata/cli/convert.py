"""``bertdata convert``: a shard from one container to another."""

from dataclasses import replace

from bertdata.cli.common.example_flags import add_objective, load_objective
from bertdata.cli.common.parser import Parser
from bertdata.dataset.discover import find_shard
from bertdata.errors import UsageError
from bertdata.io import storage
from bertdata.io.terminal import say
from bertdata.shards.containers import format_of_name, make_writer, open_reader
from bertdata.shards.packed.packs import unpacked

EXAMPLE = """\
  bertdata convert part-00000.tfrecord part-00000.hdf5
  bertdata convert shard.hdf5 shard.parquet"""

SUMMARY = """\
The containers' names end in .tfrecord, .hdf5 or .parquet. No example loses anything: weights and
padding follow from the rest, and a file whose examples hold more is refused. Graphcore's remasked
order exists in TFRecord only; its examples come out in their usual order. Packed rows are unpacked, one
sequence after the other; bertdata pack makes them."""

_BATCH = 512


def make_parser() -> Parser:
    parser = Parser("bertdata convert", EXAMPLE, SUMMARY)
    parser.add_argument("source", metavar="SRC", help="shard to read, whatever tool wrote it")
    parser.add_argument("target", metavar="DST", help="shard to write; its name tells the container")
    add_objective(parser)
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    format = format_of_target(args.target)
    load_objective(args.objective)
    _, shard = find_shard(args.source, args.objective)
    with (
        open_reader(shard.path, objective=shard.objective) as reader,
        storage.open_output(args.target) as file,
    ):
        layout = unpacked(replace(reader.layout, remask=False))
        writer = make_writer(format, file, layout)
        examples = 0
        for batch in reader.batches(_BATCH):
            writer.write(batch)
            examples += len(batch)
        writer.close()
    say(f"{args.target}: {examples} examples")
    return 0


def format_of_target(name: str) -> str:
    """The container that the target's name asks for."""
    try:
        return format_of_name(name)
    except Exception as error:
        raise UsageError(str(error)) from None
