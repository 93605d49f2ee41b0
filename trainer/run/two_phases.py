"""Phases 1 and 2 of pre-training in a single run."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from bertdata.dataset.reader import OpenedDataset
from trainer.config.settings import Config
from trainer.devices.opening import find_device
from trainer.run.planned_updates import find_last_update
from trainer.run.start_point import is_phase_over
from trainer.run.training_loop import train_phase
from trainer.run.training_state import Training
from trainer.update.worker import Runtime


def train_both_phases(
    runtime: Runtime, phases: Sequence[Config], datasets: Sequence[OpenedDataset], about: Sequence[str]
) -> None:
    """Train phase 1 unless it is over already, then phase 2 unless phase 1 has ended early.

    Phase 2 also follows if phase 1 stops at the update from which phase 2 is configured to begin
    (phase1_end_step).
    about: a line about the data of each phase, for the log.
    """
    skips_first = runtime.on_rank_0(partial(is_phase_over, phases[0]))
    for config in [] if skips_first else phases[1:]:  # phase 2 starts at update 0, unless it is resumed
        runtime.device.check_updates(find_last_update(config, 0))
    for line in dict.fromkeys([*(config.reports.description for config in phases), *about[skips_first:]]):
        if line:
            runtime.log(line)
    training: Training | None = None
    for config, data in list(zip(phases, datasets, strict=True))[skips_first:]:
        if training:
            # Free the memory of phase 1's compiled programs, before phase 2 compiles its own.
            training.strategy.release()
            training.runtime.device.release()
        if config is not phases[0]:
            config = config if skips_first else config.changed(resume_step=None, resume_from=None)
            runtime = replace(
                runtime, config=config, device=find_device(config, runtime.collective.local_rank)
            )
        training = train_phase(runtime, data)
        ends_here = phases[-1].start.phase1_end_step == training.state.number and not training.is_stopped
        if not training.is_over and not ends_here:
            break
