"""Pre-training, read downwards: workers, data, model, start point, evaluation, loop."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.io import storage
from bertdata.io.commit import UNFINISHED
from bertdata.io.directory_lock import lock_directory
from trainer.collectives.collective import Collective
from trainer.config.settings import Config
from trainer.data.loader import Loader
from trainer.data.opening import data_warnings, describe_phase
from trainer.devices.device import Device
from trainer.devices.registry import find_device
from trainer.errors import StopRequested, WorkerLost
from trainer.report.reporter import make_reporter
from trainer.run.checkpoint import new_state
from trainer.run.evaluate import Evaluation, evaluate, reached
from trainer.run.pending_updates import PendingUpdates
from trainer.run.runtime import Runtime, begin, find_model_config, make_model, profiled
from trainer.run.start_point import find_start_point, is_phase_over
from trainer.run.training import Training


def pretrain(phases: Sequence[Config]) -> None:
    """Train phase 1, phase 2, or both; a resumed run starts in the phase of its checkpoint.

    A phase ends, with a checkpoint, when its steps are done, the target accuracy is reached, or SIGTERM or
    Ctrl-C arrives. Only in the first case does the next phase follow. A signal takes effect between two
    micro-batches: what the unfinished update has computed is discarded.
    """
    if not phases[0].run.do_train:
        return evaluate(phases[-1])
    for config in phases:
        if not config.data.generated_data:
            config.require("train_data")
        if not config.run.compile_only:
            config.require("output_dir")
    runtime = begin(phases[0])
    with ExitStack() as locks:
        runtime.share(lambda: lock_outputs(phases, locks))
        train_phases(runtime, phases)
    runtime.workers.close()


def lock_outputs(phases: Sequence[Config], locks: ExitStack) -> None:
    """Lock the output directories; DatasetError where another run writes to one of them."""
    for directory in sorted({str(config.run.output_dir) for config in phases if not config.run.compile_only}):
        locks.enter_context(lock_directory(storage.join(directory, UNFINISHED)))


def train_phases(runtime: Runtime, phases: Sequence[Config]) -> None:
    """Train the phases that are not over yet, until one ends early."""
    runtime.log("opening the data")
    datasets = [
        runtime.task.open(config, None if config.data.generated_data else config.data.train_data)
        for config in phases
    ]
    if runtime.workers.rank == 0:
        for warning in dict.fromkeys(warning for config in phases for warning in data_warnings(config)):
            runtime.log(f"warning: {warning}")
    about = list[str]()
    for config, data in zip(phases, datasets, strict=True):
        config.update.micro_batches(runtime.copies)  # fails before the first phase is trained, not after
        held_out = config.data.eval_data and runtime.task.open(config, config.data.eval_data)
        about.append(describe_phase(config, data, held_out or None))
    skips_first = len(phases) > 1 and runtime.share(partial(is_phase_over, phases[0]))
    if not skips_first:
        for config in phases[1:]:  # they start at update 0
            count_calls(
                min(config.schedule.steps, config.run.steps_this_run or config.schedule.steps), runtime.device
            )
    for line in dict.fromkeys([*(config.reports.description for config in phases), *about[skips_first:]]):
        if line:
            runtime.log(line)
    training: Training | None = None
    for config, data in list(zip(phases, datasets, strict=True))[skips_first:]:
        if training:
            training.release()
        if config is not phases[0]:
            config = config if skips_first else config.changed(resume_step=None)
            runtime = replace(runtime, config=config, device=find_device(config, runtime.workers.local_rank))
        training = train_phase(runtime, data)
        if not training.is_over:
            break


def train_phase(runtime: Runtime, data: OpenedDataset) -> Training:
    """Train one phase, or the part of it until the run is stopped."""
    config, device, workers = runtime.config, runtime.device, runtime.workers
    batch_size, accumulation = config.update.micro_batches(runtime.copies)
    step_examples = config.update.examples(runtime.copies)
    shape = find_model_config(config, data)
    runtime.log("building the model")
    model = make_model(runtime, shape)
    fresh = new_state(config, shape, data.digest)
    training = Training(runtime, model, fresh)
    if not config.run.compile_only:
        training.start(*runtime.share(lambda: find_start_point(config, fresh)))
    evaluation = None
    interval = config.evaluation_interval(runtime.copies)
    if config.data.eval_data is not None and not config.run.compile_only:
        held_out = runtime.task.open(config, config.data.eval_data, shape.vocab_size)
        evaluation = Evaluation(runtime, held_out, data)
    form = runtime.form(data, batch_size, runtime.copies * accumulation)
    loader = Loader(
        data,
        form=form,
        batch_size=batch_size,
        accumulation=accumulation * device.replicas,
        workers=workers.size,
        rank=workers.rank,
        seed=config.data.seed,
        open_files=config.data.open_files,
        position=training.state.position,
        prepare=device.prepare,
        warn=lambda message: runtime.log(f"warning: {message}"),
    )
    if config.run.compile_only:
        runtime.log("compiling")
        with closing(loader):
            batches = [next(loader).batches for _ in range(device.updates_per_call)]
        blanks = [[blank] for blank in form.blanks()]
        for micro_batches in blanks:
            training.compile([micro_batches])
        if not blanks:
            training.compile(batches)
        shapes = f"micro-batches of {batch_size} examples, {form.describe()}"
        runtime.log(f"compiled for {device.describe()}, {shapes}; nothing was trained")
        training.is_over = True
        return training
    saved = start = training.state.step
    last = min(config.schedule.steps, start + (config.run.steps_this_run or config.schedule.steps))
    calls = count_calls(last - start, device)
    weights = sum(weight.numel() for weight in model.parameters())
    stopped = False
    kind = training.start_point.partition(" ")[0]
    report = make_reporter(
        config, runtime.task.columns, rank=workers.rank, resume_step=start if kind == "resumed" else None
    )
    pending = PendingUpdates(runtime, report, examples=step_examples, step=start)
    with (
        closing(loader),
        report,
        stop_signals(workers),
        training,
        profiled(runtime, calls) as count_update,
    ):
        runtime.log(
            f"{training.start_point}: updates {start} to {last} of {config.schedule.steps}, "
            f"each of {runtime.copies} workers x {accumulation} micro-batches x {batch_size} = "
            f"{step_examples} examples out of {data.examples}, {form.describe()}; {weights:,} weights; "
            f"{device.describe()}"
        )
        compiling = ", which compiles the model" if device.compiles or device.compiles_always else ""
        runtime.log(f"reading the first examples, making the first update{compiling}")
        report.begin()
        try:
            while training.state.step < last:
                workers.stopping.check(exchanges=True)  # a strategy may check between micro-batches too
                updates = [next(loader) for _ in range(device.updates_per_call)]
                before = training.state
                for update, losses in zip(updates, training.update(updates), strict=True):
                    pending.add(losses, training.learning_rate, update.position.epoch)
                    training.advance(update.position, step_examples)
                count_update()
                step, trained = training.state.step, training.state.trained
                is_last = step == last
                evaluates = is_last or _passes(interval, before.trained, trained)
                saves = is_last or _passes(config.run.checkpoint_every, before.step, step)
                if saves or evaluates or pending.is_due(step, config.reports.log_every):
                    pending.flush()
                if saves:
                    training.save()
                    report.saved(step)
                    saved = step
                if evaluation and evaluates:
                    report.begin_evaluation()
                    record = evaluation.measure(training.strategy, step=step, trained=trained)
                    report.evaluation(record)
                    if reached(runtime, record):
                        runtime.log(f"the target accuracy {config.run.target_accuracy} is reached")
                        last = step
                if saves or evaluates:
                    pending.restart_clock()
            workers.stopping.check(exchanges=True)  # the request may have come in the last update
        except StopRequested:
            stopped = True
            pending.flush()
        if saved != training.state.step:
            training.save()
        training.finish_save(together=stopped)
        if stopped:
            runtime.log(f"stopped after update {training.state.step} as requested; --resume continues")
        report.close("stopped" if stopped else "success")
    training.is_over = training.state.step == config.schedule.steps and not stopped
    return training


def count_calls(updates: int, device: Device) -> int:
    """The number of calls to the device for so many updates; SettingsError where it does not divide."""
    calls, rest = divmod(updates, device.updates_per_call)
    if rest:
        wanted = f"expected a multiple of the {device.updates_per_call} that the device makes at a time"
        raise SettingsError(f"{updates} updates to make, {wanted}")
    return calls


def _passes(interval: int, before: int, now: int) -> bool:
    """True if a multiple of the interval lies in (before, now]; never for interval 0."""
    return interval > 0 and now // interval > before // interval


@contextmanager
def stop_signals(workers: Collective) -> Iterator[None]:
    """Ask all workers to stop on SIGTERM and Ctrl-C; a second Ctrl-C interrupts at once."""

    def receive(number: int, _: object) -> None:
        workers.stopping.request()
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, receive) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except WorkerLost:
        before.clear()  # keep ignoring SIGTERM: the launcher's must not end this process before the message
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
