"""Beam loaded, its flags checked, its runner made."""

import argparse
import gc
import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from beam_pipelines.options import PROGRAM
from bertdata.errors import MissingExtraError, SettingsError
from bertdata.io import storage

LOCAL_RUNNERS = ("directrunner", "direct", "switchingdirectrunner", "fnapirunner")
DASK_RUNNERS = ("daskrunner", "apache_beam.runners.dask.dask_runner.daskrunner")
OPEN_RUNNERS = ("portablerunner", "flinkrunner", "sparkrunner")
"""Runners that hand flags which Beam's Python side does not know on to a job server."""
DATAFLOW = "dataflowrunner"


def load_beam() -> None:
    """Import Beam with the garbage collector at rest, which finds nothing there, again and again.

    Freezing what is loaded spares the exit another walk. Together a third of Beam's start.
    """
    gc.disable()
    try:
        import apache_beam  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            f"{PROGRAM} needs the package apache-beam: pip install 'bertdata[beam]'"
        ) from None
    finally:
        gc.enable()
    gc.freeze()


def make_pipeline(words: list[str], flags: argparse.Namespace) -> Any:
    """An empty Pipeline with its runner.

    SettingsError for a word that neither we nor Beam know, and for what the runner cannot do.
    """
    load_beam()
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

    options = PipelineOptions(words)
    name = (options.view_as(StandardOptions).runner or "DirectRunner").lower()
    if name == DATAFLOW:
        _check_dataflow(options, flags)
    make_runner: Callable[[Any], Any] | None = None
    if name in LOCAL_RUNNERS:
        make_runner = _local_runner
    elif name in DASK_RUNNERS:
        make_runner = _load_dask_runner()
        options = PipelineOptions(words)  # again: Beam knows Dask's flags from now on
    if name not in OPEN_RUNNERS and (unknown := _unknown_words(words, options)):
        raise SettingsError(
            f"{', '.join(unknown)}: neither a flag of ours nor of Beam (see {PROGRAM} --help)"
        )
    try:
        pipeline = beam.Pipeline(runner=make_runner(options) if make_runner else None, options=options)
    except (ValueError, ImportError, AttributeError) as error:
        raise SettingsError(f"Beam refuses: {' '.join(str(error).split())}") from None
    if name in DASK_RUNNERS and not runs_here(pipeline):
        _check_cluster(flags)
    return pipeline


def runs_here(pipeline: Any) -> bool:
    """Whether the pipeline's workers end with this process."""
    runner = pipeline.runner
    return type(runner).__name__ == "FnApiRunner" or getattr(runner, "runs_here", False)


def _unknown_words(words: list[str], options: Any) -> list[str]:
    """Words that Beam would ignore: a misspelt flag must not silently make another dataset."""
    names = set(options.get_all_options(retain_unknown_options=True)) - set(options.get_all_options())
    flags = [word for word in words if word.split("=")[0].lstrip("-").replace("-", "_") in names]
    strays = [
        word
        for before, word in pairwise(["", *words])
        if not word.startswith("-") and (not before.startswith("-") or "=" in before)
    ]
    return flags + strays


def _check_dataflow(options: Any, flags: argparse.Namespace) -> None:
    """Nothing that would only fail on a worker, once machines are paid for."""
    if options.get_all_options().get("no_wait_until_finish"):
        raise SettingsError(
            "--no_wait_until_finish: this command waits for the job, to sum up what it made; "
            "stop it with Ctrl-C where it need not, the job goes on"
        )
    if flags.input_kind == "dump":
        raise SettingsError(
            "--input-kind dump: a dump is extracted on a file system that all workers share, and Dataflow's "
            "share none; run bertdata extract, copy the articles to gs:// and give --input-kind articles"
        )
    for flag, path in _places(flags):
        if not storage.is_remote(path):
            raise SettingsError(
                f"{flag} {path}: is on this machine, which Dataflow's workers cannot see; "
                "give a URL of gs://, and copy there what they shall read"
            )


def _check_cluster(flags: argparse.Namespace) -> None:
    """Workers that are there have a working directory of their own."""
    for flag, path in _places(flags):
        if not storage.is_remote(path) and not os.path.isabs(path.removeprefix("file://")):
            raise SettingsError(
                f"{flag} {path}: is relative to this directory, which need not be that of the cluster's "
                f"workers; give the whole path: {os.path.abspath(path)}"
            )


def _places(flags: argparse.Namespace) -> list[tuple[str, str]]:
    """Each path that workers read or write, and its flag; the vocabulary travels with the job."""
    places = [*(("--input", path) for path in flags.input), ("--output", flags.output)]
    if flags.input_kind != "parts":
        places.append(("--text", flags.text))
    return places


def _load_dask_runner() -> Callable[[Any], Any]:
    try:
        from beam_pipelines.runners.dask_runner import DaskRunner
    except ImportError as error:
        raise MissingExtraError(
            f"DaskRunner needs the package {error.name}: pip install 'bertdata[dask]'"
        ) from None
    return DaskRunner


def _local_runner(options: Any) -> Any:
    """Beam's Python runner, with worker processes of our own where several are asked for.

    Beam's DirectRunner would first try Prism, a program that it downloads, and fall back on this one
    where that fails. Its own worker processes print what they do, line by line; ours do not.
    """
    from apache_beam.options.pipeline_options import DirectOptions
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    from beam_pipelines.runners.local_workers import COMMAND, LocalWorkers

    direct = options.view_as(DirectOptions)
    if direct.direct_running_mode != "multi_processing":
        return FnApiRunner()
    direct.direct_running_mode = "in_memory"  # the default, with which the runner keeps the environment given
    return FnApiRunner(default_environment=LocalWorkers.from_command_string(COMMAND))
