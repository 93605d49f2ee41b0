"""Saving of checkpoints, once the data files that were used are compared with their md5s.

With streams, a file is compared in a thread while its rows are used (``trainer.data.decoder``). A checkpoint
must not hide that a file was damaged, so saving waits for the comparisons. A run that was asked to stop has
little time. Its checkpoint names the files that are not compared yet, and the run that resumes from it
compares them.
"""

import math
import time
from dataclasses import replace

from trainer.checkpoints.unchecked_files import describe_files
from trainer.data.loader import Loader
from trainer.logs.reporter import Reporter
from trainer.run.training_state import Training
from trainer.update.worker import Runtime

ASKED_SECONDS = 2.0
"""Longest time to wait for comparisons after a signal, or for a checkpoint that a signal or a time asks for.

Many schedulers kill a process 30 s after SIGTERM, and the checkpoint must be written in the same time.
"""

_PAUSE_SECONDS = 0.2  # between two looks whether the run was asked to stop
_SILENT_SECONDS = 5.0  # of waiting before a line says what the run waits for


def save_after_comparison(
    training: Training, loader: Loader, report: Reporter, longest: float = math.inf
) -> None:
    """Save a checkpoint, once the data files that were used are compared with their md5s.

    All workers call this after the same update. The logs are forced to disk before the checkpoint counts,
    because a run that resumes from it writes no rows of earlier updates.
    longest: seconds to wait for the comparisons. If the run is asked to stop, it waits no longer than
        ``ASKED_SECONDS``. The checkpoint's state names the files that are not compared then.
    Ends all workers with ShardError if the md5 of a file that was used is wrong.
    """
    left = compare_used_files(training.runtime, loader, longest)
    training.state = replace(training.state, unchecked_files=left)
    report.flush()
    training.save(report.unfinished_row)


def compare_used_files(runtime: Runtime, loader: Loader, longest: float = math.inf) -> list[str]:
    """Wait until the data files that were used are compared with their md5s, on all workers.

    The arguments and errors are those of ``save_after_comparison``. Returns the names of the files that are
    not compared yet on some worker.
    """
    left = runtime.on_every_worker(lambda: _wait(runtime, loader, longest))
    found = sorted({name for names in runtime.collective.gather(left) for name in names})
    if found:
        runtime.log(
            f"{describe_files(found)} not compared with the md5s in the manifest yet; --resume compares them"
        )
    return found


def _wait(runtime: Runtime, loader: Loader, longest: float) -> list[str]:
    """Wait for this worker's comparisons. Return the names of the files that are not compared yet."""
    stopping, is_told = runtime.collective.stopping, False
    start = time.monotonic()
    until = start + longest
    while left := loader.compare_files(_PAUSE_SECONDS):
        now = time.monotonic()
        # Another signal must not lengthen the time.
        if stopping.asked_at is not None:
            until = min(until, max(start, stopping.asked_at) + ASKED_SECONDS)
        if now >= until:
            return left
        if now - start > _SILENT_SECONDS and not is_told:
            is_told = True
            runtime.log(f"waiting until {describe_files(left)} compared with the md5s in the manifest")
    return []
