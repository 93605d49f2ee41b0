"""The profile that ``--profile`` records: four calls of the strategy, each of which makes one or more
updates.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from trainer.update.worker import Runtime


@contextmanager
def record_profile(runtime: Runtime, updates: int) -> Iterator[Callable[[], None]]:
    """Yield a function that the training loop must call after each call of the strategy.

    On rank 0, this records a profile of four calls of the strategy. On most devices a call makes one update.
    Recording begins after four calls, or in the middle of a run that is shorter. The profile is written to
    output_dir.
    updates: number of updates that the run makes.
    """
    config, calls = runtime.config, updates // runtime.device.updates_per_call
    activities = runtime.device.profile_activities()
    if runtime.collective.rank != 0:
        yield lambda: None
        return
    idle = max(1, min(4, calls // 2))
    path = f"{config.run.output_dir}/profile{'_phase2' * (config.phase == 2)}.json"

    def write_trace(finished: torch.profiler.profile) -> None:
        finished.export_chrome_trace(path)
        runtime.log(f"profile: {path}; https://ui.perfetto.dev or chrome://tracing shows it")

    schedule = torch.profiler.schedule(wait=idle // 2, warmup=idle - idle // 2, active=4, repeat=1)
    with torch.profiler.profile(
        activities=activities, schedule=schedule, on_trace_ready=write_trace
    ) as profile:
        yield profile.step
