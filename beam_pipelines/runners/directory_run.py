"""Running a pipeline that writes a single directory.

The directory is locked while the pipeline runs, and the plan of the run is written into it first.
"""

from typing import Any

from beam_pipelines.options import PROGRAM
from beam_pipelines.report.counters import RunMetrics
from beam_pipelines.runners.pipeline import has_local_workers, run_pipeline
from bertdata.io.directory_protocol import Commit
from bertdata.io.terminal import say_error


def run_for_directory(pipeline: Any, commit: Commit) -> RunMetrics:
    """Run the pipeline while its output directory is locked, and return the pipeline's metrics.

    If a run with local workers fails, its half-written files are deleted.
    """
    with commit.locked():
        commit.claim()
        try:
            metrics = run_pipeline(pipeline)
        except BaseException as error:
            # Clean up only if all workers have ended. Workers on other machines may still be writing.
            if has_local_workers(pipeline):
                commit.give_up()
            elif isinstance(error, KeyboardInterrupt):
                say_error(f"{PROGRAM}: the job goes on where it runs; stop it there")
            raise
        # This is done last, because until here a task that Beam repeats may need the directory unfinished/.
        commit.release()
    return metrics
