"""A pipeline that makes one directory, which is locked and claimed while it runs."""

from typing import Any

from beam_pipelines.options import PROGRAM
from beam_pipelines.report.counters import RunMetrics
from beam_pipelines.runners.pipeline import run_pipeline, runs_here
from bertdata.io.directory_protocol import Commit
from bertdata.io.terminal import say_error


def run_for_directory(pipeline: Any, commit: Commit) -> RunMetrics:
    """Run the pipeline, and clean up after it. Returns its metrics."""
    with commit.locked():
        commit.claim()
        try:
            metrics = run_pipeline(pipeline)
        except BaseException as error:
            if runs_here(pipeline):
                commit.give_up()
            elif isinstance(error, KeyboardInterrupt):
                say_error(f"{PROGRAM}: the job goes on where it runs; stop it there")
            raise
        commit.release()
    return metrics
