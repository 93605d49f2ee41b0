"""Program that packs several examples of a dataset into each row, on any Beam runner.

It is run with ``python -m beam_pipelines.pack``.
"""

import argparse
import sys
from dataclasses import fields, replace
from typing import Any

from beam_pipelines.report.counters import RunMetrics, format_metrics
from beam_pipelines.report.logs import show_warnings, silence_lost_connections
from beam_pipelines.runners.pipeline import check_runner, has_local_workers, make_pipeline, run_pipeline
from beam_pipelines.transport.bundled_file import BundledFile
from bertdata.cli.common.dispatch import run_to_exit_status
from bertdata.cli.common.parser import Parser
from bertdata.cli.common.request_flags import add_flags, make_request
from bertdata.dataset.manifest import format_summary
from bertdata.dataset.writer import Dataset
from bertdata.errors import BertDataError
from bertdata.io import storage
from bertdata.io.home import expand_words
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.io.scratch_files import delete_scratch_files
from bertdata.io.terminal import say, say_error, say_text
from bertdata.packing.input_dataset import InputDataset
from bertdata.packing.planned_pack import PlannedPack
from bertdata.packing.settings import PackSettings
from bertdata.steps.pack import find_pack_source
from bertdata.steps.pack_request import GivenPackSettings, PackRequest

PROGRAM = "beam_pipelines.pack"

EXAMPLE = """\
  python -m beam_pipelines.pack shards --output packed --layout habana \\
      --direct_running_mode multi_processing --direct_num_workers 2
  python -m beam_pipelines.pack gs://BUCKET/shards --output gs://BUCKET/packed --runner DataflowRunner ..."""

SUMMARY = """\
Pack a dataset on any Beam runner, with the same bytes as bertdata pack. All workers count lengths, and one
worker plans the rows. Until all examples are sorted, they take about three bytes per token in the output
directory. Flags that are not listed here are passed on to Beam and its runner."""

UNKNOWN_SETTINGS = ("packing_plan", "shuffle", "inputs")
"""Keys of the output directory's plan file whose values depend on the lengths of all examples.

They are not compared with an earlier run's when the directory is locked, because at that time the examples
have not been read.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the packing program.

    Returns the exit status: 0 done, 1 wrong data, 2 wrong usage, 130 interrupted.
    """
    words = expand_words(sys.argv[1:] if arguments is None else arguments)
    interrupted = "interrupted; finished shards are kept, run the same command to go on"
    return run_to_exit_status(PROGRAM, lambda: pack(words), interrupted=interrupted)


def make_parser() -> Parser:
    """Return the parser of this pipeline's flags."""
    parser = Parser(PROGRAM, EXAMPLE, SUMMARY, has_others=True)
    parser.add_argument(
        "path", metavar="DIR", help="directory or URL of the dataset; with --unverified, files"
    )
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="directory or URL of the packed dataset"
    )
    add_flags(parser, PackRequest, *(item.name for item in fields(GivenPackSettings)))
    return parser


def pack(arguments: list[str]) -> int:
    """Run the packing pipeline and print a summary of the packed dataset.

    Errors and interrupts are not caught here. ``main`` turns them into messages and an exit status.
    """
    flags, beam_arguments = make_parser().parse_known_args(arguments)
    request = make_request(PackRequest, flags)
    settings = request.settings()
    paths = argparse.Namespace(input=[flags.path], input_kind="parts", output=flags.output)
    check_runner(beam_arguments, paths)
    source = find_pack_source(request, settings)
    vocabulary = source.vocabulary_path()
    silence_lost_connections()
    pipeline = make_pipeline(beam_arguments, paths)
    if not has_local_workers(pipeline) and not storage.is_remote(vocabulary):
        source = replace(source, vocabulary=BundledFile(vocabulary))
    with show_warnings():
        metrics = run_packing(pipeline, source, settings, flags.output)
    path = storage.join(flags.output, MANIFEST_NAME)
    say(format_summary(flags.output, parse_json(storage.read_bytes(path), path)))
    say_text(format_metrics(metrics, "dataset"))
    return 0


def run_packing(pipeline: Any, source: InputDataset, settings: PackSettings, output: str) -> RunMetrics:
    """Run the packing pipeline while the output directory is locked, and return its metrics.

    If a run with local workers fails, its half-written files are deleted.
    """
    # Imported here because importing Beam takes seconds, too long for --help and wrong usage.
    import apache_beam as beam

    from beam_pipelines.stages.packs import MakePacks, PackStages

    dataset = make_preliminary_dataset(source, settings, output)
    stages = PackStages(source=source, settings=settings, output=output)
    numbers = list(range(len(source.opened.shards)))
    _ = pipeline | "list shards" >> beam.Create(numbers, reshuffle=False) | "pack" >> MakePacks(stages)
    with dataset.commit.locked(unknown=UNKNOWN_SETTINGS):
        try:
            return run_pipeline(pipeline)
        except BaseException as error:
            if has_local_workers(pipeline):
                # The data or the settings are wrong, so they will be changed before the next run. That run
                # cannot use these scratch files.
                if isinstance(error, BertDataError):
                    delete_scratch_files(dataset.commit)
                dataset.give_up()
            elif isinstance(error, KeyboardInterrupt):
                say_error(f"{PROGRAM}: the job goes on where it runs; stop it there")
            raise


def make_preliminary_dataset(source: InputDataset, settings: PackSettings, output: str) -> Dataset:
    """Return the packed dataset with a preliminary plan of its rows.

    It is used to lock the output directory, and to find the notes about finished shards there, before the
    lengths of the examples are known.
    """
    from bertdata.packing.pack_plan import make_plan

    # The real plan is not known yet, so a plan with a single row of one token is used. The lock does not
    # depend on the plan.
    nothing = make_plan(source.opened.layout.max_seq_length, {(1,): 1})
    settings = replace(settings, num_shards=1)
    return PlannedPack(source=source, settings=settings, counts=(), plan=nothing).dataset(output)


if __name__ == "__main__":
    sys.exit(main())
