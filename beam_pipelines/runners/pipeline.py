"""Creating an empty pipeline with the user's runner, and running it. All flags are checked before that."""

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
from beam_pipelines.runners.long_jobs import renew_expired_requests
from beam_pipelines.runners.reach import check_servers
from bertdata.config.value_check import suggest_known
from bertdata.errors import BertDataError, MissingExtraError, SettingsError, install_extra
from bertdata.io import storage
from bertdata.io.terminal import say_error

LOCAL_RUNNERS = ("directrunner", "switchingdirectrunner", "fnapirunner")
DASK_RUNNERS = ("daskrunner", "apache_beam.runners.dask.dask_runner.daskrunner")
PORTABLE_RUNNERS = ("portablerunner", "flinkrunner", "sparkrunner")
"""Runners that send the pipeline to a job server.

Flags that Beam's Python code does not know are passed on to this server, so they are not refused here.
"""
DATAFLOW = "dataflowrunner"
RUNNERS = ("DirectRunner", "DaskRunner", "DataflowRunner", "FlinkRunner", "SparkRunner", "PortableRunner")
"""Runners that error messages list. Beam has further runners."""


def make_pipeline(arguments: list[str], flags: argparse.Namespace) -> Any:
    """Return an empty pipeline with the runner that the arguments for Beam name.

    Raises SettingsError for an argument that neither this package nor Beam knows, and for settings with which
    the runner would fail.
    """
    if any(word.partition("=")[0] == "--dry_run" for word in arguments):
        raise SettingsError("--dry_run: here Beam would ignore it and write the files; there is no dry run")
    import_beam()
    import apache_beam as beam

    options, name = _check_options(arguments, flags)
    make_runner: Callable[[Any], Any] | None = None
    if name in PORTABLE_RUNNERS:
        # With --environment_type LOOPBACK, the workers are threads of this process.
        silence_printed_tracebacks()
    if name in LOCAL_RUNNERS:
        make_runner = _make_local_runner
    elif name in DASK_RUNNERS:
        make_runner = _import_dask_runner()
        # The arguments are parsed again, because importing Dask has added flags to Beam's parser.
        options = _parse_options(arguments)
    if name not in PORTABLE_RUNNERS and (unknown := _find_unknown_arguments(arguments, options)):
        known = [f"--{flag}" for flag in options.get_all_options()]
        told = [f"{word}: neither a flag of ours nor of Beam{suggest_known(word, known)}" for word in unknown]
        raise SettingsError(f"{', '.join(told)} (see {PROGRAM} --help)")
    try:
        pipeline = beam.Pipeline(runner=make_runner(options) if make_runner else None, options=options)
    except (ValueError, ImportError, AttributeError) as error:
        raise SettingsError(f"Beam refuses: {' '.join(str(error).split())}") from None
    if name in DASK_RUNNERS and not has_local_workers(pipeline):
        _refuse_relative_paths(flags)
    return pipeline


def check_runner(arguments: list[str], flags: argparse.Namespace) -> None:
    """Raise SettingsError now for what would make a remote runner fail later.

    This comes before the inputs are listed and before a job is sent to the runner. If the arguments name no
    runner, nothing is checked, because importing Beam for the check takes seconds.
    """
    if any(word.partition("=")[0] == "--runner" for word in arguments):
        import_beam()
        _check_options(arguments, flags)


def _check_options(arguments: list[str], flags: argparse.Namespace) -> tuple[Any, str]:
    """Check the arguments for Beam. Return Beam's options, and the runner's name in lower case.

    Raises SettingsError for settings with which the runner would fail.
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
    """Return the options that Beam parses from the arguments.

    For wrong arguments Beam would print a list of all its flags and exit. Here a SettingsError is raised
    instead.
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
    """Run the pipeline to its end and return its metrics.

    If it fails, the error that a worker raised is raised here, or an error of one line.
    """
    try:
        result = pipeline.run()
        renew_expired_requests(result)
        result.wait_until_finish()
    except Exception as error:
        clear = find_original_error(error)
        if clear is error and _has_remote_workers(pipeline):
            clear = BertDataError(
                f"{_get_runner_name(pipeline)}: {type(error).__name__}: {find_first_line(error)}"
            )
        raise clear from None
    try:
        return read_metrics(result)
    # The runner may raise anything here. The output is already complete, so the run has not failed.
    except Exception as error:
        if not _has_remote_workers(pipeline):
            raise
        say_error(
            f"{PROGRAM}: warning: {_get_runner_name(pipeline)} tells no counters ({find_first_line(error)}); "
            "the files are whole, and their manifests have the numbers"
        )
        return RunMetrics()


def _get_runner_name(pipeline: Any) -> str:
    """Return the name of the class of the pipeline's runner."""
    return type(pipeline.runner).__name__


def _has_remote_workers(pipeline: Any) -> bool:
    """Return True if the workers are managed by another program, so that its log has the full tracebacks.

    Dask's workers do not count, although they may run on other machines.
    """
    return not has_local_workers(pipeline) and _get_runner_name(pipeline) != "DaskRunner"


def _find_full_name(runner: str) -> str:
    """Return a runner's full name in lower case. As in Beam, "direct" is short for "directrunner".

    A name with dots is the path of a Python class, which Beam imports. Raises SettingsError for an unknown
    name.
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
    """Return True if the workers are processes or threads that this run has started, and that end with it."""
    runner = pipeline.runner
    return type(runner).__name__ == "FnApiRunner" or getattr(runner, "runs_here", False)


def _find_unknown_arguments(arguments: list[str], options: Any) -> list[str]:
    """Return the arguments that Beam would ignore without a message.

    They are refused, because a misspelt flag would silently produce another dataset.
    """
    names = set(options.get_all_options(retain_unknown_options=True)) - set(options.get_all_options())
    flags = [word for word in arguments if word.split("=")[0].lstrip("-").replace("-", "_") in names]
    strays = [
        word
        for before, word in pairwise(["", *arguments])
        if not word.startswith("-") and (not before.startswith("-") or "=" in before)
    ]
    return flags + strays


def _check_dataflow(options: Any, flags: argparse.Namespace) -> None:
    """Raise SettingsError for flags with which the workers of Dataflow would fail.

    Otherwise the fault would appear after machines have been started and paid for.
    """
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
"""Beam's flags that install this package on workers of other machines."""


def _check_environment(name: str, options: Any) -> None:
    """Raise SettingsError if the workers would be Beam's own containers, which do not contain this package.

    name: the runner's name in lower case.
    """
    given = options.get_all_options()
    kind = given["environment_type"]
    if kind is None and name != "portablerunner":
        master = given["flink_master" if name == "flinkrunner" else "spark_master_url"]
        # The value is a word such as [local], with which the workers run in this process.
        if "://" not in master and ":" not in master:
            return
    has_image = given["environment_config"] or given["environment_options"]
    if (kind or "DOCKER").upper() == "DOCKER" and not has_image and not any(given[one] for one in _PACKAGES):
        raise SettingsError(
            "--environment_type is missing, or names no image: the workers would be containers without "
            f"{PROGRAM.partition('.')[0]}; give --environment_type DOCKER --environment_config IMAGE, "
            "EXTERNAL with the address of worker pools, or LOOPBACK for workers in this process"
        )


def _refuse_relative_paths(flags: argparse.Namespace) -> None:
    """Raise SettingsError for a relative path, since workers on a cluster have other working directories."""
    for flag, path in _list_worker_paths(flags):
        if not storage.is_remote(path) and not os.path.isabs(path.removeprefix("file://")):
            raise SettingsError(
                f"{flag} {path}: is relative to this directory, which need not be that of the cluster's "
                f"workers; give the whole path: {os.path.abspath(path)}"
            )


def _list_worker_paths(flags: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the paths that workers open, each as a pair: the flag that names it, and the path.

    The vocabulary is not included, because its contents are sent with the job.
    """
    paths = [*(("--input", path) for path in flags.input), ("--output", flags.output)]
    if flags.input_kind != "parts":
        paths.append(("--text", flags.text))
    return paths


def _import_dask_runner() -> Callable[[Any], Any]:
    """Return the class of the Dask runner. Raises MissingExtraError if Dask is not installed."""
    try:
        from beam_pipelines.runners.dask_runner import DaskRunner
    except ImportError as error:
        raise MissingExtraError(
            f"DaskRunner needs the package {error.name}: {install_extra('dask')}"
        ) from None
    return DaskRunner


def _make_local_runner(options: Any) -> Any:
    """Return Beam's runner for this machine, which is written in Python.

    If the options ask for several worker processes, the runner starts the worker program of this package.
    Beam's worker program is not used, because it writes a log line for every step. Beam's DirectRunner is not
    used, because it would first try to download the program Prism, and only then use the same Python runner.
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
    # With any other value, the runner would replace default_environment.
    direct.direct_running_mode = "in_memory"
    return FnApiRunner(default_environment=LocalWorkers.from_command_string(MODULE))
