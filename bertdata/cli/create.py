"""``bertdata create``: sentence parts to shards."""

import argparse
from collections.abc import Sequence
from typing import Any

from bertdata.build.dataset_file import GivenSettings
from bertdata.build.dry_run import show_previews
from bertdata.cli.common.example_flags import add_settings, given_settings
from bertdata.cli.common.parser import (
    Parser,
    add_config,
    add_dry_run,
    add_engine,
    add_shuffle,
    add_skip_bad_inputs,
    add_tokenizer,
    add_workers,
    names_config,
)
from bertdata.cli.common.step_progress import ShownProgress
from bertdata.cli.common.text_flags import (
    INPUT_KIND_HELP,
    SHARED_FLAGS,
    add_language_settings,
    add_part_settings,
    given_part_settings,
)
from bertdata.dataset.manifest import summary
from bertdata.io.freed_memory import keep_less_freed_memory
from bertdata.io.terminal import NOTHING_WRITTEN, say, say_error
from bertdata.sources.kinds import CHOSEN_KINDS
from bertdata.steps.create import ShardRun, check_given, plan_run
from bertdata.steps.source_parts import holds_records, make_parts, preview_parts
from bertdata.steps.values import workers_of

EXAMPLE = """\
  bertdata create results --output shards --vocab vocab.txt --recipe mlperf
  bertdata create corpus/*.jsonl.zst --output shards --vocab vocab.txt --text-field text
  bertdata create results/part-* --output shards --vocab vocab.txt --recipe mlperf
  bertdata create results/part-* --output shards --vocab vocab.txt --recipe nvidia --phase 2
  bertdata create results --output shards --vocab vocab.txt --config dataset.toml
  bertdata create results/part-* --output shards --tokenizer roberta-base/tokenizer.json --objective mlm
  bertdata create results/part-* --output shards --vocab vocab.txt --shuffle global --num-shards 500"""

SUMMARY = """\
One shard for each part (a text file with one sentence a line and a blank line between documents),
then manifest.json and MD5SUMS. Of a directory that bertdata segment made, the parts to train on are
taken, without eval.txt and NVIDIA's test shards. A recipe of two phases writes DIR/phase1 and
DIR/phase2. Run again after a crash, it makes only what is missing, and ends with the same bytes.
With --shuffle global, documents are first mixed over all parts, and --num-shards says how many shards
they become; sorted documents wait in DIR/unfinished meanwhile, half a byte for a byte of text."""


def make_parser(arguments: Sequence[str] = ()) -> Parser:
    parser = Parser("bertdata create", EXAMPLE, SUMMARY)
    parser.add_argument(
        "parts",
        nargs="+",
        metavar="PART",
        help="text file, pattern, URL, directory made by segment, or a source of records (JSON lines, "
        "Parquet, Arrow, extracted articles; other kinds by --input-kind)",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="directory of the dataset, or its URL")
    add_config(parser, "container, objective, tokenizer, and of sources text")
    add_tokenizer(parser, required=not names_config(arguments))
    add_shuffle(parser)
    parser.set_defaults(shuffle=None)  # so that a file's counts where no flag is given
    add_settings(parser, arguments)
    add_skip_bad_inputs(parser)
    sources = parser.add_argument_group(
        "sources", "files of records in place of parts, made to parts in OUTPUT.text as bertdata segment does"
    )
    sources.add_argument("--input-kind", choices=CHOSEN_KINDS, metavar="KIND", help=INPUT_KIND_HELP)
    add_language_settings(sources)
    add_part_settings(sources)
    add_dry_run(parser)
    add_workers(parser)
    add_engine(parser)
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser(arguments).parse_args(arguments)
    keep_less_freed_memory()
    of_sources = _source_settings(args)
    if holds_records(args.parts, of_sources, args.skip_bad_inputs):
        flags = GivenSettings(
            recipe=args.recipe,
            changes=given_settings(args),
            vocab=args.vocab,
            tokenizer=args.tokenizer,
            roles=tuple(args.roles),
            shuffle=args.shuffle,
            num_shards=args.num_shards,
        )
        check_given(flags, args.phase, args.config, args.engine, workers_of(args.workers))
        if args.dry_run:
            say(*preview_parts(args.parts, args.output, of_sources, args.config), NOTHING_WRITTEN)
            return 0
        with ShownProgress() as progress:
            args.parts = make_parts(
                args.parts,
                args.output,
                of_sources,
                config=args.config,
                workers=workers_of(args.workers),
                engine=args.engine,
                progress=progress,
            )
    if args.dry_run:
        work = planned(args)
        say(*work.notes)
        for warning in work.warnings():
            say_error(f"bertdata: warning: {warning}")
        previews = work.previews()
        show_previews(previews, work.estimate(previews, workers_of(args.workers)))
        return 0
    work = planned(args)
    say(*work.notes)
    with ShownProgress() as progress:
        made = work.make(workers_of(args.workers), progress)
    for dataset in made.datasets:
        for warning in dataset.warnings:
            say_error(f"bertdata: warning: {warning}")
        share = f", {dataset.ones}" if dataset.ones else ""
        say(summary(dataset.directory, dataset.manifest.as_json()) + share)
    return 0


def _source_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of sources that the command line names."""
    own = {name: getattr(args, name) for name in SHARED_FLAGS}
    return given_part_settings(args) | {name: value for name, value in own.items() if value is not None}


def planned(args: argparse.Namespace) -> ShardRun:
    """The run that the command line describes."""
    return plan_run(
        args.parts,
        args.output,
        vocab=args.vocab,
        tokenizer=args.tokenizer,
        roles=args.roles,
        recipe=args.recipe,
        phase=args.phase,
        changes=given_settings(args),
        shuffle=args.shuffle,
        num_shards=args.num_shards,
        config=args.config,
        skip_bad_inputs=args.skip_bad_inputs,
        engine=args.engine,
    )
