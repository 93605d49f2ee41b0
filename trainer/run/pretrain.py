"""Pre-training: check the paths, open the data, make sure that all workers agree, and train each phase.

``python -m trainer pretrain`` calls ``pretrain``. A run has one phase, or two: the first on short sequences
and the second on long ones. ``trainer.run.training_loop`` trains a phase.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from bertdata.dataset.shared_shards import make_shared_warnings
from bertdata.errors import SettingsError
from bertdata.io import storage
from bertdata.io.directory_lock import lock_directory, name_this_process
from bertdata.io.directory_protocol import UNFINISHED
from trainer.config.settings import Config, format_flag
from trainer.data.opening import (
    check_data_length,
    describe_phase,
    find_data_warnings,
    find_training_paths,
    prepare_for_training,
)
from trainer.data.rows import find_rows
from trainer.data.trained_length import find_length_warnings
from trainer.devices.opening import set_device
from trainer.logs.reporter import Logger
from trainer.run.agreement import check_same_data
from trainer.run.best_checkpoint import check_best_metric
from trainer.run.interruption import name_saved_checkpoint
from trainer.run.machines import share_checkpoint
from trainer.run.path_check import require_paths
from trainer.run.remote_output import localise, naming_urls, open_output
from trainer.run.runtime import open_runtime
from trainer.run.training_loop import find_shape, train_phase
from trainer.tasks.training_data import open_training_data
from trainer.update.worker import Runtime
from trainer.workers.restarts import end_for_restart


def pretrain(
    phases: Sequence[Config],
    *,
    may_be_new: bool = False,
    loggers: Sequence[Logger] = (),
    call: str | None = None,
) -> None:
    """Train phase 1, phase 2, or both. A resumed run continues in the phase to which its checkpoint belongs.

    A phase ends with a checkpoint, when all its updates are made, when the target accuracy is reached, or
    when SIGTERM or Ctrl-C arrives. The next phase follows only if all updates were made. A signal ends the
    run between two micro-batches, and the gradients of the unfinished update are discarded.
    may_be_new: if ``--resume`` finds no run, start a new run without a warning.
    loggers: further logs of the caller, which get everything that is logged.
    call: the call of a Python function that started the run, as text. None: a command line started it.
    """
    if phases[0].is_finetuning:
        raise SettingsError(f"task is {phases[0].task}: that is learned by python -m trainer finetune")
    if not phases[0].run.do_train:
        from trainer.run.evaluate import evaluate

        return evaluate(phases[-1], loggers=loggers)
    require_paths(phases)
    runtime = replace(open_runtime(*phases), loggers=tuple(loggers), call=call)
    given = [set_device(config, runtime.device.name) for config in phases]
    runtime, phases = localise(runtime, given)
    saved = name_saved_checkpoint(str(phases[0].run.output_dir))
    with saved, naming_urls(runtime), ExitStack() as locks:
        lock_outputs(runtime, phases, locks)
        runtime = open_output(runtime, given, phases, locks)
        train_phases(runtime, phases, may_be_new=may_be_new)
    runtime.collective.close()
    end_for_restart(runtime.collective.stopping, resumes=phases[0].start.resume)


def lock_outputs(runtime: Runtime, phases: Sequence[Config], locks: ExitStack) -> None:
    """Lock the output directories on every machine, until ``locks`` is closed.

    Raises DatasetError if another run writes to one of the directories.
    """
    owners = runtime.collective.gather(name_this_process())
    wanted = sorted({str(config.run.output_dir) for config in phases if not config.run.compile_only})

    def lock_on_machine() -> None:
        for directory in wanted:
            locks.enter_context(lock_directory(storage.join(directory, UNFINISHED), owners))

    runtime.on_machines(lock_on_machine)


def train_phases(runtime: Runtime, phases: Sequence[Config], *, may_be_new: bool = False) -> None:
    """Open the data, check that all workers have the same, and train the phases.

    If a phase ends early, the next is not trained. Everything that can be refused in any phase is refused
    here, before the first phase starts: it may take days, and then a wrong setting of phase 2 would be found
    too late.
    may_be_new: if ``--resume`` finds no run, start a new run without a warning.
    """
    # Open the training and evaluation data of every phase, on every worker.
    runtime.log("opening the data")
    opened = runtime.on_every_worker(lambda: [open_training_data(config) for config in phases])
    runtime = runtime.changed(runtime.config, *opened)
    evaluated = runtime.on_every_worker(
        lambda: [
            runtime.task.open(config, config.data.eval_data, held_out=True) if config.data.eval_data else None
            for config in phases
        ]
    )
    for config in phases:
        check_best_metric(config, runtime.task.columns, evaluates=config.data.eval_data is not None)
    # Stop here if two workers have different data. They would train together on wrong examples without any
    # error.
    for config, *both in zip(phases, opened, evaluated, strict=True):
        named = zip(("train_data", "eval_data"), both, strict=True)
        of_phase = f" of phase {config.phase}" if len(phases) > 1 else ""
        check_same_data(
            runtime, {f"{format_flag(key)}{of_phase}": data for key, data in named if data is not None}
        )
    # Choose the checkpoint to continue from, and copy it to the machines that do not have it.
    phases = share_checkpoint(runtime, phases, may_be_new=may_be_new)
    # If the length is configured in epochs or tokens, the number of updates depends on the size of the data.
    if any(config.counts_updates for config in phases):
        from trainer.run.epochs import count_updates

        phases = [count_updates(runtime, one, data) for one, data in zip(phases, opened, strict=True)]
    datasets = [prepare_for_training(config, data) for config, data in zip(phases, opened, strict=True)]
    runtime = replace(runtime, config=phases[0])
    # Rank 0 warns about data that do not suit the settings, or evaluation data that do not suit the training
    # data.
    if runtime.collective.rank == 0:
        warnings = [
            one for config in phases for one in find_data_warnings(config, find_training_paths(config))
        ]
        if any(config.data.eval_data for config in phases):
            from trainer.run.evaluation_warnings import find_training_warnings

            warnings += [one for config in phases for one in find_training_warnings(config)]
        for warning in dict.fromkeys(warnings):
            runtime.log(f"warning: {warning}")
    about = list[str]()
    # Both phases train the same model. Check that the data of each phase fit it before anything is built.
    shape = find_shape(runtime, datasets[0])
    for config, data, held_out in zip(phases, datasets, evaluated, strict=True):
        for one in (data, held_out):
            if one is not None:
                check_data_length(one, shape.max_position_embeddings)
        if config.split.plan is None and config.run.strategy in ("auto", "replicated"):
            config.update.micro_batches(runtime.copies)  # raise an error now, not after the first phase
        find_rows(config, data)  # raise an error now, not after the first phase
        if held_out and find_training_paths(config) and runtime.collective.rank == 0:
            warnings = make_shared_warnings(data, held_out)
            if not config.start.is_continued:
                ids = held_out.layout.max_seq_length
                warnings += find_length_warnings(held_out.name, ids, "the model", data.layout.max_seq_length)
            for warning in warnings:
                runtime.log(f"warning: {warning}")
        about.append(describe_phase(config, data, held_out))
    if len(phases) > 1:
        from trainer.run.two_phases import train_both_phases

        return train_both_phases(runtime, phases, datasets, about)
    for line in filter(None, (phases[0].reports.description, *about)):
        runtime.log(line)
    train_phase(runtime, datasets[0], shape)
