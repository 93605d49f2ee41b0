"""``bertdata convert``: convert a shard to another file format, or a dataset to another program's layout."""

import argparse
from dataclasses import replace

from bertdata.cli.common.objective_flag import add_objective, load_objective
from bertdata.cli.common.parser import Parser, add_overwrite, add_workers, parse_positive
from bertdata.cli.common.step_progress import StepProgressDisplay
from bertdata.dataset.discover import find_shard
from bertdata.dataset.manifest import format_summary
from bertdata.errors import UsageError
from bertdata.io import storage
from bertdata.io.outputs import check_output
from bertdata.io.terminal import say
from bertdata.shards.containers import (
    ARROW,
    FAIRSEQ,
    LDDL,
    MDS,
    NVIDIA_MLPERF,
    find_container,
    find_writable_format,
    make_writer,
    open_reader,
)
from bertdata.shards.mds.names import IDS_TYPE_HELP, IDS_TYPES
from bertdata.shards.packed.packs import unpack_layout
from bertdata.steps.binarise import binarise
from bertdata.steps.convert import convert

EXAMPLE = """\
  bertdata convert part-00000.tfrecord part-00000.hdf5
  bertdata convert shards varlength --to nvidia-mlperf --num-shards 4320 --shuffled
  bertdata convert eval_10k part_eval_10k.hdf5 --to nvidia-mlperf
  bertdata convert shards lddl --to lddl --bin-size 64
  bertdata convert blocks mds --to mds --compression zstd:9 --hashes sha1,xxh64
  bertdata convert shards arrow --to arrow
  bertdata convert parts data-bin --to fairseq --tokenizer roberta"""

SUMMARY = """\
Without --to, converts one shard to another file format, which the name's ending selects: .tfrecord, .hdf5,
.parquet or .mds. Nothing is lost: a file whose examples hold more than the target can is refused. Examples
in Graphcore's remasked order, which only TFRecord can hold, come out in the usual order. Packed rows are
unpacked into single sequences (bertdata pack makes packed rows).

With --to, converts a dataset's directory to another program's layout, with a manifest: NVIDIA's MLPerf
shards with rows of varying length (also a single file, if DST ends in .hdf5), LDDL's Parquet, Mosaic's
MDS, or the Arrow files that datasets.load_from_disk reads. After a crash, run the same command again: it
makes only what is missing. A directory of MDS shards can also be read as one shard.

--to fairseq makes train.bin, train.idx and dict.txt. With --tokenizer, SRC is text: each line becomes an
item and blank lines are kept, as in fairseq-preprocess. Without it, SRC is a dataset of unmasked blocks and
each block becomes an item."""

_BATCH = 512
_DATASET_FLAGS = (
    "num_shards",
    "shuffled",
    "bin_size",
    "size_limit",
    "compression",
    "hashes",
    "len",
    "unverified",
    "workers",
    "tokenizer",
)
"""Flags that are allowed only together with --to."""


def make_parser() -> Parser:
    """Return the parser of ``bertdata convert``."""
    parser = Parser("bertdata convert", EXAMPLE, SUMMARY)
    parser.add_argument("source", metavar="SRC", help="shard of any tool, or directory of a dataset")
    parser.add_argument("target", metavar="DST", help="shard to write, or with --to a directory")
    layouts = (NVIDIA_MLPERF, LDDL, MDS, ARROW, FAIRSEQ)
    parser.add_argument("--to", choices=layouts, help="layout of the dataset to write")
    group = parser.add_argument_group("with --to")
    group.add_argument(
        "--num-shards",
        type=parse_positive,
        metavar="N",
        help="number of shards to make. Required for nvidia-mlperf, whose published datasets have 2048 or "
        "4320; for other layouts the default is as many as SRC has",
    )
    group.add_argument(
        "--shuffled",
        action="store_true",
        help="with --to nvidia-mlperf: shuffle all examples as NVIDIA's program does, instead of keeping "
        "their order",
    )
    group.add_argument(
        "--bin-size",
        type=parse_positive,
        metavar="N",
        help="with --to lddl: split each shard into files by length: examples of 1 to N ids, N + 1 to 2 N, "
        "...",
    )
    group.add_argument(
        "--size-limit",
        type=parse_positive,
        metavar="BYTES",
        help="with --to mds: largest size of a shard in bytes, before compression (default: 67108864)",
    )
    group.add_argument(
        "--compression",
        metavar="NAME[:LEVEL]",
        help="with --to mds: compression zstd, gz, bz2, br or snappy, with an optional level, as in zstd:9",
    )
    group.add_argument(
        "--hashes",
        metavar="NAME,...",
        help="with --to mds: hashes to put into index.json, such as sha1,xxh64",
    )
    group.add_argument(
        "--len", action="store_true", help="with --to mds: add a column len with the number of token ids"
    )
    group.add_argument(
        "--unverified",
        action="store_true",
        help="read files that other tools wrote and that have no manifest; needs --vocab",
    )
    group.add_argument(
        "--tokenizer",
        metavar="FILE|DIR",
        help="with --to fairseq: read SRC as text (files, a pattern, the parts of bertdata segment) with "
        "this tokenizer.json, model's directory or dict.txt",
    )
    add_workers(group)
    parser.add_argument(
        "--vocab",
        metavar="FILE|NAME",
        help="vocabulary that the examples were made with; without --to it is needed only to read LDDL's "
        "words (default: vocab.txt next to SRC)",
    )
    parser.add_argument("--ids-type", choices=IDS_TYPES, metavar="TYPE", help=IDS_TYPE_HELP)
    add_objective(parser)
    add_overwrite(parser)
    return parser


def run(arguments: list[str]) -> int:
    """Run ``bertdata convert`` and return the exit status."""
    parser = make_parser()
    args = parser.parse_args(arguments)
    if args.to is None:
        given = [name for name in _DATASET_FLAGS if getattr(args, name)]
        if given:
            parser.error(f"--{given[0].replace('_', '-')} goes with --to")
        return _convert_shard(args, find_target_format(args.target))
    if args.to == NVIDIA_MLPERF and args.target.endswith(".hdf5"):
        if args.num_shards not in (None, 1) or args.shuffled:
            parser.error(f"{args.target} is one file, expected a directory for --num-shards and --shuffled")
        return _convert_shard(args, NVIDIA_MLPERF)
    if args.tokenizer is not None:
        if args.to != FAIRSEQ:
            parser.error("--tokenizer goes with --to fairseq")
        names = {*_DATASET_FLAGS, "vocab", "objective"} - {"workers", "tokenizer"}
        given = [name for name in sorted(names) if getattr(args, name)]
        if given:
            parser.error(f"--{given[0].replace('_', '-')} goes with a dataset, --tokenizer with text")
        return _convert_text(args)
    if args.ids_type is not None:
        parser.error("--ids-type goes without --to: convert SRC to a shard first, all.tfrecord for instance")
    return _convert_dataset(args)


def _convert_text(args: argparse.Namespace) -> int:
    """Convert text files to fairseq's binary format."""
    with StepProgressDisplay() as progress:
        made = binarise(
            args.source, args.target, tokenizer=args.tokenizer, workers=args.workers, progress=progress
        )
    say(f"{made.directory}: {made.lines} lines, {made.tokens} tokens")
    return 0


def _convert_dataset(args: argparse.Namespace) -> int:
    """Convert a dataset directory to the layout that --to names."""
    with StepProgressDisplay() as progress:
        made = convert(
            args.source,
            args.target,
            to=args.to,
            num_shards=args.num_shards,
            shuffled=args.shuffled,
            bin_size=args.bin_size,
            size_limit=args.size_limit,
            compression=args.compression,
            hashes=args.hashes.split(",") if args.hashes else (),
            with_len=args.len,
            unverified=args.unverified,
            vocab=args.vocab,
            objective=args.objective,
            workers=args.workers,
            progress=progress,
        )
    say(format_summary(made.directory, made.manifest.as_json()))
    return 0


def _convert_shard(args: argparse.Namespace, format: str) -> int:
    """Convert one shard to another file format.

    Packed examples, and examples for which masks were drawn again, become ordinary examples.
    """
    load_objective(args.objective)
    form = find_container(format).form
    check_output(args.target, [args.source, args.vocab], form, overwrite=args.overwrite)
    _, shard = find_shard(args.source, args.objective)
    with (
        open_reader(
            shard.path,
            objective=shard.objective,
            vocabulary=args.vocab,
            padding_id=shard.padding_id,
            ids_type=args.ids_type,
        ) as reader,
        storage.open_output(args.target) as file,
    ):
        layout = unpack_layout(replace(reader.layout, remask=False))
        writer = make_writer(format, file, layout)
        examples = 0
        for batch in reader.batches(_BATCH):
            writer.write(batch)
            examples += len(batch)
        writer.close()
    say(f"{args.target}: {examples} examples")
    return 0


def find_target_format(name: str) -> str:
    """Return the file format that the ending of the target's name selects.

    Raises UsageError for an unknown ending.
    """
    try:
        return find_writable_format(name)
    except Exception as error:
        raise UsageError(str(error)) from None
