"""Pre-training: the phases of a run, each of which is trained by ``trainer.run.training_loop``."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from bertdata.dataset.shared_shards import shared_warnings
from bertdata.errors import SettingsError
from bertdata.io import storage
from bertdata.io.directory_lock import lock_directory, this_process
from bertdata.io.directory_protocol import UNFINISHED
from trainer.config.settings import Config, flag
from trainer.data.opening import (
    check_data_length,
    data_warnings,
    describe_phase,
    for_training,
    training_paths,
)
from trainer.data.rows import find_rows
from trainer.data.trained_length import length_warnings
from trainer.devices.opening import on_device
from trainer.run.agreement import agree_on_data
from trainer.run.machines import take_up
from trainer.run.path_check import require_paths
from trainer.run.runtime import begin
from trainer.run.training_loop import find_shape, train_phase
from trainer.tasks.training_data import open_training_data
from trainer.update.worker import Runtime


def pretrain(phases: Sequence[Config], *, may_be_new: bool = False) -> None:
    """Train phase 1, phase 2, or both. A resumed run starts in the phase of its checkpoint.

    A phase ends, with a checkpoint, when its steps are done, the target accuracy is reached, or SIGTERM or
    Ctrl-C arrives. Only in the first case does the next phase follow. A signal takes effect between two
    micro-batches: what the unfinished update has computed is discarded.
    may_be_new: as of ``take_up``.
    """
    if phases[0].is_finetuning:
        raise SettingsError(f"task is {phases[0].task}: that is learned by python -m trainer finetune")
    if not phases[0].run.do_train:
        from trainer.run.evaluate import evaluate

        return evaluate(phases[-1])
    require_paths(phases)
    runtime = begin(*phases)
    phases = [on_device(config, runtime.device.name) for config in phases]
    with ExitStack() as locks:
        lock_outputs(runtime, phases, locks)
        train_phases(runtime, phases, may_be_new=may_be_new)
    runtime.workers.close()


def lock_outputs(runtime: Runtime, phases: Sequence[Config], locks: ExitStack) -> None:
    """Lock every machine's output directories. DatasetError where another run writes to one of them."""
    owners = runtime.workers.gather(this_process())
    wanted = sorted({str(config.run.output_dir) for config in phases if not config.run.compile_only})

    def lock() -> None:
        for directory in wanted:
            locks.enter_context(lock_directory(storage.join(directory, UNFINISHED), owners))

    runtime.on_machines(lock)


def train_phases(runtime: Runtime, phases: Sequence[Config], *, may_be_new: bool = False) -> None:
    """Train the phases that are not over yet, until one ends early."""
    runtime.log("opening the data")
    opened = runtime.on_every_worker(lambda: [open_training_data(config) for config in phases])
    runtime = runtime.changed(runtime.config, *opened)
    evaluated = runtime.on_every_worker(
        lambda: [
            runtime.task.open(config, config.data.eval_data, held_out=True) if config.data.eval_data else None
            for config in phases
        ]
    )
    for config, *both in zip(phases, opened, evaluated, strict=True):
        named = zip(("train_data", "eval_data"), both, strict=True)
        of_phase = f" of phase {config.phase}" if len(phases) > 1 else ""
        agree_on_data(runtime, {f"{flag(key)}{of_phase}": data for key, data in named if data is not None})
    phases = take_up(runtime, phases, may_be_new=may_be_new)
    if any(config.counts_updates for config in phases):
        from trainer.run.epochs import count_updates

        phases = [count_updates(runtime, one, data) for one, data in zip(phases, opened, strict=True)]
    datasets = [for_training(config, data) for config, data in zip(phases, opened, strict=True)]
    runtime = replace(runtime, config=phases[0])
    if runtime.workers.rank == 0:
        warnings = [one for config in phases for one in data_warnings(config, training_paths(config))]
        if any(config.data.eval_data for config in phases):
            from trainer.run.evaluation_warnings import warnings_of_training

            warnings += [one for config in phases for one in warnings_of_training(config)]
        for warning in dict.fromkeys(warnings):
            runtime.log(f"warning: {warning}")
    about = list[str]()
    # Both phases train the same model. Nothing is made before all data are known to fit it.
    shape = find_shape(runtime, datasets[0])
    for config, data, held_out in zip(phases, datasets, evaluated, strict=True):
        for one in (data, held_out):
            if one is not None:
                check_data_length(one, shape.max_position_embeddings)
        if config.split.plan is None and config.run.strategy in ("auto", "replicated"):
            config.update.micro_batches(runtime.copies)  # fails before the first phase is trained, not after
        find_rows(config, data)  # fails here, not after the first phase
        if held_out and training_paths(config) and runtime.workers.rank == 0:
            warnings = shared_warnings(data, held_out)
            if not config.start.is_continued:
                ids = held_out.layout.max_seq_length
                warnings += length_warnings(held_out.name, ids, "the model", data.layout.max_seq_length)
            for warning in warnings:
                runtime.log(f"warning: {warning}")
        about.append(describe_phase(config, data, held_out))
    if len(phases) > 1:
        from trainer.run.two_phases import train_both

        return train_both(runtime, phases, datasets, about)
    for line in filter(None, (phases[0].reports.description, *about)):
        runtime.log(line)
    train_phase(runtime, datasets[0], shape)
