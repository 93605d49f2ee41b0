"""Beam loaded, its flags checked, its runner made."""

import gc
import shlex
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from beam_pipelines.options import PROGRAM
from bertdata.errors import MissingExtraError, SettingsError

LOCAL_RUNNERS = ("directrunner", "direct", "switchingdirectrunner", "fnapirunner")
DASK_RUNNERS = ("daskrunner", "apache_beam.runners.dask.dask_runner.daskrunner")
OPEN_RUNNERS = ("portablerunner", "flinkrunner", "sparkrunner")
"""Runners that hand flags which Beam's Python side does not know on to a job server."""


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


def make_pipeline(words: list[str]) -> Any:
    """An empty Pipeline with its runner; SettingsError for a word that neither we nor Beam know."""
    load_beam()
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

    options = PipelineOptions(words)
    name = (options.view_as(StandardOptions).runner or "DirectRunner").lower()
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
        return beam.Pipeline(runner=make_runner(options) if make_runner else None, options=options)
    except (ValueError, ImportError, AttributeError) as error:
        raise SettingsError(f"Beam refuses: {' '.join(str(error).split())}") from None


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


def _load_dask_runner() -> Callable[[Any], Any]:
    try:
        from beam_pipelines.dask_runner import DaskRunner
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
    from apache_beam.transforms.environments import SubprocessSDKEnvironment

    direct = options.view_as(DirectOptions)
    if direct.direct_running_mode != "multi_processing":
        return FnApiRunner()
    direct.direct_running_mode = "in_memory"  # the default, with which the runner keeps the environment given
    # exec: the worker's parent is to be this process, not the shell that Beam starts it with
    command = f"exec {shlex.quote(sys.executable)} -m beam_pipelines.worker"
    return FnApiRunner(default_environment=SubprocessSDKEnvironment.from_command_string(command))
