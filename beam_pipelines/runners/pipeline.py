"""Creation and running of a pipeline with its runner. All flags are checked before anything starts."""

import argparse
import os
from collections.abc import Callable
from contextlib import redirect_stderr
from difflib import get_close_matches
from io import StringIO
from itertools import pairwise
from typing import Any

from beam_pipelines.options import PROGRAM
from beam_pipelines.report.counters import RunMetrics, read_metrics
from beam_pipelines.report.errors import find_first_line, find_original_error
from beam_pipelines.report.logs import silence_printed_tracebacks
from beam_pipelines.runners.beam_import import import_beam
from beam_pipelines.runners.local_limits import limit_workers
from beam_pipelines.runners.long_jobs import watch_to_the_end
from beam_pipelines.runners.reach import check_servers
from bertdata.config.value_check import suggest_known
from bertdata.errors import BertDataError, MissingExtraError, SettingsError, install_extra
from bertdata.io import storage
from bertdata.io.terminal import say_error

LOCAL_RUNNERS = ("directrunner", "switchingdirectrunner", "fnapirunner")
DASK_RUNNERS = ("daskrunner", "apache_beam.runners.dask.dask_runner.daskrunner")
PORTABLE_RUNNERS = ("portablerunner", "flinkrunner", "sparkrunner")
"""Runners that pass flags unknown to Beam's Python code on to a job server."""
DATAFLOW = "dataflowrunner"
RUNNERS = ("DirectRunner", "DaskRunner", "DataflowRunner", "FlinkRunner", "SparkRunner", "PortableRunner")
"""Runners that error messages suggest. Beam knows more."""


def make_pipeline(arguments: list[str], flags: argparse.Namespace) -> Any:
    """Return an empty pipeline with the runner that Beam's arguments ask for.

    Raises SettingsError for an argument unknown to this package and Beam, and for anything the runner cannot
    do.
    """
    if any(word.partition("=")[0] == "--dry_run" for word in arguments):
        raise SettingsError("--dry_run: here Beam would ignore it and write the files; there is no dry run")
    import_beam()
    import apache_beam as beam

    options, name = _check_options(arguments, flags)
    make_runner: Callable[[Any], Any] | None = None
    if name in PORTABLE_RUNNERS:
        silence_printed_tracebacks()  # with LOOPBACK, workers are threads of this process
    if name in LOCAL_RUNNERS:
        make_runner = _make_local_runner
    elif name in DASK_RUNNERS:
        make_runner = _import_dask_runner()
        options = _parse_options(arguments)  # parse again, because importing Dask has added flags
    if name not in PORTABLE_RUNNERS and (unknown := _find_unknown_arguments(arguments, options)):
        known = [f"--{flag}" for flag in options.get_all_options()]
        told = [f"{word}: neither a flag of ours nor of Beam{suggest_known(word, known)}" for word in unknown]
        raise SettingsError(f"{', '.join(told)} (see {PROGRAM} --help)")
    try:
        pipeline = beam.Pipeline(runner=make_runner(options) if make_runner else None, options=options)
    except (ValueError, ImportError, AttributeError) as error:
        raise SettingsError(f"Beam refuses: {' '.join(str(error).split())}") from None
    if name in DASK_RUNNERS and not has_local_workers(pipeline):
        _check_cluster(flags)
    return pipeline


def check_runner(arguments: list[str], flags: argparse.Namespace) -> None:
    """Raise errors about a remote runner now, before inputs are listed or a job is sent to it.

    Does nothing if no runner is named, since importing Beam takes seconds.
    """
    if any(word.partition("=")[0] == "--runner" for word in arguments):
        import_beam()
        _check_options(arguments, flags)


def _check_options(arguments: list[str], flags: argparse.Namespace) -> tuple[Any, str]:
    """Return Beam's options and the runner's name in lower case.

    Raises SettingsError for what the runner cannot do.
    """
    from apache_beam.options.pipeline_options import StandardOptions

    options = _parse_options(arguments)
    name = _find_full_name(options.view_as(StandardOptions).runner or "DirectRunner")
    if name == DATAFLOW:
        _check_dataflow(options, flags)
    if name in PORTABLE_RUNNERS:
        check_servers(name, options)
        _check_environment(name, options)
    return options, name


def _parse_options(arguments: list[str]) -> Any:
    """Return Beam's options.

    Raises a SettingsError where Beam would print a list of all its flags and exit.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    printed = StringIO()
    try:
        with redirect_stderr(printed):
            options = PipelineOptions(arguments)
            options.get_all_options()
    except SystemExit:
        message = printed.getvalue().rpartition("error: ")[2]
        raise SettingsError(f"Beam refuses: {' '.join(message.split())}") from None
    return options


def run_pipeline(pipeline: Any) -> RunMetrics:
    """Run the pipeline to its end and return its metrics. Raises a clear error if it fails."""
    try:
        result = pipeline.run()
        watch_to_the_end(result)
        result.wait_until_finish()
    except Exception as error:
        clear = find_original_error(error)
        if clear is error and _has_remote_workers(pipeline):
            clear = BertDataError(
                f"{_name_runner(pipeline)}: {type(error).__name__}: {find_first_line(error)}"
            )
        raise clear from None
    try:
        return read_metrics(result)
    except Exception as error:  # the runner may raise anything; the output is complete already
        if not _has_remote_workers(pipeline):
            raise
        say_error(
            f"{PROGRAM}: warning: {_name_runner(pipeline)} tells no counters ({find_first_line(error)}); the "
            "files are whole, and their manifests have the numbers"
        )
        return RunMetrics()


def _name_runner(pipeline: Any) -> str:
    """Return the class name of the pipeline's runner."""
    return type(pipeline.runner).__name__


def _has_remote_workers(pipeline: Any) -> bool:
    """Return True if the workers run elsewhere, so that the full traceback is in the runner's log."""
    return not has_local_workers(pipeline) and _name_runner(pipeline) != "DaskRunner"


def _find_full_name(runner: str) -> str:
    """Return the runner's name in lower case. As in Beam, "direct" is short for "directrunner".

    A name with dots is the path of a class, which Beam imports. Raises SettingsError for an unknown name.
    """
    from apache_beam.options.pipeline_options import StandardOptions

    name = runner.lower()
    known = [*map(str.lower, StandardOptions.KNOWN_RUNNER_NAMES), *map(str.lower, RUNNERS)]
    if "." in name or name in known:
        return name
    if f"{name}runner" in known:
        return f"{name}runner"
    short = {one.lower().removesuffix("runner"): one for one in RUNNERS}
    near = get_close_matches(name.removesuffix("runner"), short, n=1)
    hint = f"did you mean {short[near[0]]}? " if near else ""
    raise SettingsError(
        f"--runner {runner}: no such runner; {hint}known are {', '.join(RUNNERS)}, "
        "and any other by the full name of its class"
    )


def has_local_workers(pipeline: Any) -> bool:
    """Return True if the workers are processes or threads of this run, which end with it."""
    runner = pipeline.runner
    return type(runner).__name__ == "FnApiRunner" or getattr(runner, "runs_here", False)


def _find_unknown_arguments(arguments: list[str], options: Any) -> list[str]:
    """Return the arguments that Beam would ignore. A misspelt flag must not silently change the dataset."""
    names = set(options.get_all_options(retain_unknown_options=True)) - set(options.get_all_options())
    flags = [word for word in arguments if word.split("=")[0].lstrip("-").replace("-", "_") in names]
    strays = [
        word
        for before, word in pairwise(["", *arguments])
        if not word.startswith("-") and (not before.startswith("-") or "=" in before)
    ]
    return flags + strays


def _check_dataflow(options: Any, flags: argparse.Namespace) -> None:
    """Raise SettingsError for flags with which a Dataflow worker would fail, before machines are paid for."""
    if options.get_all_options().get("no_wait_until_finish"):
        raise SettingsError(
            "--no_wait_until_finish: this command waits for the job, to print a summary of what it made; "
            "press Ctrl-C to stop waiting, the job goes on"
        )
    for flag, path in _list_worker_paths(flags):
        if not storage.is_remote(path):
            raise SettingsError(
                f"{flag} {path}: is on this machine, which Dataflow's workers cannot see; "
                "copy it to a bucket and give its gs:// URL"
            )
    given = options.get_all_options()
    places = {name: given[name] for name in ("temp_location", "staging_location")}
    for name, place in places.items():
        if place is not None and not place.startswith("gs://"):
            raise SettingsError(f"--{name} {place}: expected a directory of a bucket, gs://BUCKET/DIRECTORY")
    if not any(places.values()):
        raise SettingsError(
            "--temp_location is missing: give a directory of a bucket of yours, gs://BUCKET/DIRECTORY, for "
            "the job's files; Dataflow would make a bucket for them"
        )
    if not any(given[name] for name in _PACKAGES):
        raise SettingsError(
            "--setup_file is missing, and so is --sdk_container_image: Dataflow's workers would have no "
            f"{PROGRAM.partition('.')[0]}; give --setup_file ./setup.py of this project, or an image with it"
        )


_PACKAGES = ("setup_file", "extra_packages", "sdk_container_image")
"""Beam's flags that install this package on workers elsewhere."""


def _check_environment(name: str, options: Any) -> None:
    """Raise SettingsError if the workers would be Beam's containers, which do not have this package."""
    given = options.get_all_options()
    kind = given["environment_type"]
    if kind is None and name != "portablerunner":
        master = given["flink_master" if name == "flinkrunner" else "spark_master_url"]
        if "://" not in master and ":" not in master:  # such as [local]: workers are in this process
            return
    has_image = given["environment_config"] or given["environment_options"]
    if (kind or "DOCKER").upper() == "DOCKER" and not has_image and not any(given[one] for one in _PACKAGES):
        raise SettingsError(
            "--environment_type is missing, or names no image: the workers would be containers without "
            f"{PROGRAM.partition('.')[0]}; give --environment_type DOCKER --environment_config IMAGE, "
            "EXTERNAL with the address of worker pools, or LOOPBACK for workers in this process"
        )


def _check_cluster(flags: argparse.Namespace) -> None:
    """Raise SettingsError for relative paths, since a cluster's workers have other working directories."""
    for flag, path in _list_worker_paths(flags):
        if not storage.is_remote(path) and not os.path.isabs(path.removeprefix("file://")):
            raise SettingsError(
                f"{flag} {path}: is relative to this directory, which need not be that of the cluster's "
                f"workers; give the whole path: {os.path.abspath(path)}"
            )


def _list_worker_paths(flags: argparse.Namespace) -> list[tuple[str, str]]:
    """Return each path that workers use, with the flag that names it.

    The vocabulary's path is not included, since the job contains the file.
    """
    paths = [*(("--input", path) for path in flags.input), ("--output", flags.output)]
    if flags.input_kind != "parts":
        paths.append(("--text", flags.text))
    return paths


def _import_dask_runner() -> Callable[[Any], Any]:
    """Return the Dask runner's class. Raises MissingExtraError if Dask is not installed."""
    try:
        from beam_pipelines.runners.dask_runner import DaskRunner
    except ImportError as error:
        raise MissingExtraError(
            f"DaskRunner needs the package {error.name}: {install_extra('dask')}"
        ) from None
    return DaskRunner


def _make_local_runner(options: Any) -> Any:
    """Return Beam's Python runner, with this package's worker processes if several are asked for.

    Beam's DirectRunner would first try Prism, a program that it downloads, and fall back to this runner.
    Beam's own worker processes log every step, while this package's are silent.
    """
    from apache_beam.options.pipeline_options import DirectOptions
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    from beam_pipelines.runners.local_workers import MODULE, LocalWorkers

    direct = options.view_as(DirectOptions)
    if not 0 <= direct.direct_num_workers <= limit_workers():
        raise SettingsError(
            f"--direct_num_workers {direct.direct_num_workers}: expected 0, for one on each core, or up to "
            f"{limit_workers()} on this machine"
        )
    silence_printed_tracebacks()
    if direct.direct_running_mode != "multi_processing":
        return FnApiRunner()
    direct.direct_running_mode = "in_memory"  # otherwise the runner would replace default_environment
    return FnApiRunner(default_environment=LocalWorkers.from_command_string(MODULE))
