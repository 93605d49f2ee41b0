"""``python -m beam_pipelines.prepare``: sentence parts to verified shards on any Beam runner."""

import sys
from typing import Any

from beam_pipelines.failures import clear_error
from beam_pipelines.logs import show_warnings
from beam_pipelines.options import PROGRAM, parse_flags
from beam_pipelines.runners import make_pipeline, runs_here
from bertdata import _native, storage
from bertdata._native import Engine
from bertdata.errors import BertDataError
from bertdata.jobs import Target
from bertdata.manifest import MANIFEST_NAME, parse_json, summary
from bertdata.planning import chosen_settings, find_parts, plan_targets
from bertdata.settings_flags import given_settings


def main(arguments: list[str] | None = None) -> int:
    """Run the pipeline; the exit status: 0 done, 1 data at fault, 2 wrong usage, 130 interrupted."""
    try:
        return prepare(sys.argv[1:] if arguments is None else arguments)
    except BertDataError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print(
            f"{PROGRAM}: interrupted; finished shards are kept, run the same command to go on",
            file=sys.stderr,
        )
        return 130


def prepare(arguments: list[str]) -> int:
    flags, beam_words = parse_flags(arguments)
    if not _native.available():
        print(
            f"{PROGRAM}: the native engine is not built here; running the slow Python engine", file=sys.stderr
        )
    recipe, settings = chosen_settings(flags.recipe, flags.phase, given_settings(flags))
    parts = find_parts(flags.input)
    targets = plan_targets(flags.output, recipe, flags.phase, settings, parts, flags.vocab)
    show_warnings()
    pipeline = make_pipeline(beam_words)
    for target in targets:
        target.dataset.begin()
    try:
        totals = run_pipeline(pipeline, parts, flags.vocab, targets, flags.engine)
    except BaseException:
        if runs_here(pipeline):  # elsewhere a job may go on without us
            clear_away(targets)
        raise
    for target in targets:
        path = storage.join(target.dataset.directory, MANIFEST_NAME)
        print(summary(target.dataset.directory, parse_json(storage.read_bytes(path), path)))
    print(table(totals))
    return 0


def run_pipeline(
    pipeline: Any, parts: list[str], vocabulary: str, targets: tuple[Target, ...], engine: Engine | None
) -> dict[str, int]:
    """Make the datasets; the totals of the counters."""
    # Imported here, as in runners: loading Beam takes seconds that --help and wrong usage can do without.
    import apache_beam as beam

    from beam_pipelines.transforms import MakeShards, WriteManifests

    (
        pipeline
        | "list parts" >> beam.Create(parts, reshuffle=False)
        | "make shards" >> MakeShards(vocabulary, targets, engine)
        | "write manifests" >> WriteManifests(targets)
    )
    try:
        result = pipeline.run()
        result.wait_until_finish()
    except Exception as error:
        raise clear_error(error) from None
    return counter_totals(result)


def clear_away(targets: tuple[Target, ...]) -> None:
    """Remove files that a worker process was writing when it was stopped."""
    for target in targets:
        directory = target.dataset.unfinished
        for name in storage.list_files(directory):
            if name.endswith(".tmp"):
                storage.remove(storage.join(directory, name), missing_ok=True)


def counter_totals(result: Any) -> dict[str, int]:
    """The pipeline's counters by name, zero where nothing was counted."""
    from apache_beam.metrics import MetricsFilter

    from beam_pipelines.transforms import COUNTERS, NAMESPACE

    totals = dict.fromkeys(COUNTERS, 0)
    for counter in result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]:
        totals[counter.key.metric.name] += counter.result
    return totals


def table(totals: dict[str, int]) -> str:
    """One line for each counter, numbers aligned."""
    width = max(len(str(total)) for total in totals.values())
    return "\n".join(f"  {name:<14}{total:>{width}}" for name, total in totals.items())


if __name__ == "__main__":
    sys.exit(main())
