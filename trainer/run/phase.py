"""One phase of training, read downwards: model, start point, evaluation, data, loop."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from trainer.checkpoint.state import State, new_state
from trainer.collectives.collective import stop_signals
from trainer.config.model import ModelConfig
from trainer.data.batches import Batch
from trainer.data.forms import Form
from trainer.data.loader import Loader
from trainer.data.sizes import examples_per_row
from trainer.devices.device import Device
from trainer.devices.peaks import find_peak
from trainer.errors import StopRequested
from trainer.report.pace import Cards
from trainer.report.reporter import Reporter, make_reporter
from trainer.report.tables import is_evaluated
from trainer.run.compile_times import CompileTimes
from trainer.run.division import divide
from trainer.run.pending_updates import PendingUpdates
from trainer.run.runtime import Runtime, find_model_config, make_model, profiled
from trainer.run.start_point import find_start_point, find_start_shape
from trainer.run.training import Training

if TYPE_CHECKING:
    from trainer.run.evaluation import Evaluation


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdatePlan:
    """The updates of a phase that this run makes, numbered from ``start`` to ``last``.

    batch_size: rows of a micro-batch, each an example or a pack. accumulation: micro-batches of each copy of
    the model. examples_per_row: on average. examples: those of an update over all workers. interval:
    examples trained between two evaluations.
    """

    start: int
    last: int
    batch_size: int
    accumulation: int
    examples_per_row: float
    examples: int
    interval: int

    @classmethod
    def of(cls, runtime: Runtime, start: int, examples_per_row: float) -> "UpdatePlan":
        config, copies = runtime.config, runtime.copies
        steps = config.schedule.steps
        batch_size, accumulation = config.update.micro_batches(copies, examples_per_row)
        return cls(
            start=start,
            last=min(steps, start + (config.run.steps_this_run or steps)),
            batch_size=batch_size,
            accumulation=accumulation,
            examples_per_row=examples_per_row,
            examples=config.update.examples(copies, examples_per_row),
            interval=config.evaluation_interval(copies, examples_per_row),
        )


def train_phase(runtime: Runtime, data: OpenedDataset, shape: ModelConfig | None = None) -> Training:
    """Train one phase, or the part of it until the run is stopped.

    shape: the model's; None: the configured one.
    """
    shape = shape or find_configured_shape(runtime, data)
    runtime = divide(runtime, shape, data.layout.max_seq_length)
    config, workers = runtime.config, runtime.workers
    per_row = examples_per_row(data, runtime.packing)
    runtime.log("building the model")
    examples = config.update.examples(runtime.copies, per_row)
    batch_size, accumulation = config.update.micro_batches(runtime.copies, per_row)
    order = config.data.order(f"{runtime.copies * accumulation} x {batch_size} examples")
    fresh = new_state(config, shape, data.digest, order)
    training = Training(runtime, make_model(runtime, shape), fresh)
    if config.run.compile_only:
        return compile_shapes(runtime, training, data, UpdatePlan.of(runtime, 0, per_row))
    kind, path = runtime.share(lambda: find_start_point(config, fresh))
    training.start(kind, path, examples)
    plan = UpdatePlan.of(runtime, training.state.step, per_row)
    runtime.device.check_accumulation(plan.accumulation)
    calls = count_calls(plan.last - plan.start, runtime.device)
    evaluation = make_evaluation(runtime, data, shape)
    form = runtime.form(data, plan.batch_size, runtime.copies * plan.accumulation)
    loader = make_loader(runtime, data, plan, form, training.state)
    is_resumed = training.start_point.startswith("resumed")
    described = runtime.device.describe()
    report = make_reporter(
        config,
        runtime.task.columns,
        rank=workers.rank,
        resume_step=plan.start if is_resumed else None,
        hardware=Cards(devices=workers.size * runtime.device.replicas, peak=find_peak(described)),
    )
    signals, profile = stop_signals(workers.stopping), profiled(runtime, calls)
    with closing(loader), report, signals, training, profile as count_update:
        announce(runtime, training, data, plan, form, described)
        report.begin()
        owed = is_resumed and evaluation is not None and owes_evaluation(runtime, training.state, plan)
        stopped = make_updates(
            runtime, training, loader, evaluation, report, plan, count_update, evaluates_first=owed
        )
        training.finish_save(together=stopped)
        if stopped:
            runtime.log(f"stopped after update {training.state.step} as requested; --resume continues")
        report.close("stopped" if stopped else "success")
    training.is_over = training.state.step == config.schedule.steps and not stopped
    return training


def find_configured_shape(runtime: Runtime, data: OpenedDataset) -> ModelConfig:
    """The configured model's shape; what is not configured is the start checkpoint's."""
    start = runtime.share(lambda: find_start_shape(runtime.config))
    shape = find_model_config(runtime.config, data, start)
    if start and start["hidden_act"] != shape.hidden_act:
        found = f"hidden_act is {shape.hidden_act}, the checkpoint's {start['hidden_act']}"
        runtime.log(f"warning: {found}; its weights know the latter")
    return shape


def make_updates(
    runtime: Runtime,
    training: Training,
    loader: Loader[Batch],
    evaluation: "Evaluation | None",
    report: Reporter,
    plan: UpdatePlan,
    count_update: Callable[[], None],
    *,
    evaluates_first: bool = False,
) -> bool:
    """Make the planned updates, with their reports, checkpoints and evaluations; True if asked to stop.

    evaluates_first: the run before ended without the evaluation of its last update.
    """
    config, device, stopping = runtime.config, runtime.device, runtime.workers.stopping
    pending = PendingUpdates(
        runtime, training, report, waited=lambda: loader.waited, examples=plan.examples, step=plan.start
    )
    compile_times = CompileTimes(device, runtime.log)
    saved, last, stopped = plan.start, plan.last, False
    try:
        if evaluation and evaluates_first:
            runtime.log(f"update {plan.start} has a checkpoint, but was not evaluated; evaluating it now")
            if evaluate_update(runtime, training, evaluation, report):
                last = plan.start
            pending.restart_clock()
        while training.state.step < last:
            stopping.check(exchanges=True)  # a strategy may check between micro-batches too
            updates = [next(loader) for _ in range(device.updates_per_call)]
            before = training.state
            made, compile_seconds = compile_times.measure(updates, partial(training.update, updates))
            for update, sums in zip(updates, made, strict=True):
                pending.add(update, sums, training.learning_rate, compile_seconds / len(updates))
                training.advance(update.position, plan.examples)
            count_update()
            step, trained = training.state.step, training.state.trained
            is_last = step == last
            evaluates = is_last or _passes(plan.interval, before.trained, trained)
            saves = is_last or _passes(config.run.checkpoint_every, before.step, step)
            if saves or evaluates or pending.is_due(step, config.reports.log_every):
                pending.flush()
            if saves:
                training.save()
                report.saved(step)
                saved = step
            if evaluation and evaluates and evaluate_update(runtime, training, evaluation, report):
                last = step
            if saves or evaluates:
                pending.restart_clock()
        stopping.check(exchanges=True)  # the request may have come in the last update
    except StopRequested:
        stopped = True
        pending.flush()
    if saved != training.state.step:
        training.save()
    return stopped


def evaluate_update(runtime: Runtime, training: Training, evaluation: "Evaluation", report: Reporter) -> bool:
    """Evaluate and report the update that was made last; True if the target accuracy is reached."""
    report.begin_evaluation()
    record = evaluation.measure(training.strategy, step=training.state.step, trained=training.state.trained)
    report.evaluation(record)
    if not evaluation.reached(record):
        return False
    runtime.log(f"the target accuracy {runtime.config.run.target_accuracy} is reached")
    return True


def owes_evaluation(runtime: Runtime, state: State, plan: UpdatePlan) -> bool:
    """True if the resumed update was to be evaluated, and is not in evaluation.csv.

    The run before was killed, or failed, between the checkpoint and the evaluation that follows it.
    """
    is_last = state.step == runtime.config.schedule.steps
    if not is_last and not _passes(plan.interval, state.trained - plan.examples, state.trained):
        return False
    folder = str(runtime.config.run.output_dir)
    evaluated: bool = runtime.share(lambda: is_evaluated(folder, state.step))
    return not evaluated


def compile_shapes(runtime: Runtime, training: Training, data: OpenedDataset, plan: UpdatePlan) -> Training:
    """Compile for every usual shape of a micro-batch, without training."""
    form = runtime.form(data, plan.batch_size, runtime.copies * plan.accumulation)
    runtime.log("compiling")
    blanks = [[blank] for blank in form.blanks()]
    for micro_batches in blanks:
        training.compile([micro_batches])
    if not blanks:
        with closing(make_loader(runtime, data, plan, form, training.state)) as loader:
            batches = [next(loader).batches for _ in range(runtime.device.updates_per_call)]
        training.compile(batches)
    kind = "packed rows" if plan.examples_per_row > 1 else "examples"
    shapes = f"micro-batches of {plan.batch_size} {kind}, {form.describe()}"
    runtime.log(f"compiled for {runtime.device.describe()}, {shapes}; nothing was trained")
    training.is_over = True
    return training


def make_evaluation(runtime: Runtime, data: OpenedDataset, shape: ModelConfig) -> "Evaluation | None":
    """The evaluation on the configured dataset, if there is one; data: the training set."""
    config = runtime.config
    if config.data.eval_data is None:
        return None
    from trainer.run.evaluation import Evaluation

    held_out = runtime.task.open(config, config.data.eval_data, shape.vocab_size, held_out=True)
    return Evaluation.of(runtime, held_out, data)


def make_loader(
    runtime: Runtime, data: OpenedDataset, plan: UpdatePlan, form: Form[Batch], state: State
) -> Loader[Batch]:
    """The loader of this worker's micro-batches, from the state's position on."""
    config = runtime.config

    def warn(message: str) -> None:
        if not config.finetuning.is_finetuning:  # features are one file for any number of workers
            runtime.log(f"warning: {message}")

    return Loader(
        data,
        form=form,
        batch_size=plan.batch_size,
        accumulation=plan.accumulation * runtime.device.replicas,
        workers=runtime.division.copies,
        rank=runtime.division.copy,
        seed=config.data.seed,
        open_files=config.data.open_files,
        position=state.position,
        first_update=state.step,
        packing=runtime.packing,
        bins=config.data.bins,
        prepare=runtime.device.prepare,
        warn=warn,
    )


def announce(
    runtime: Runtime,
    training: Training,
    data: OpenedDataset,
    plan: UpdatePlan,
    form: Form[Batch],
    described: str,
) -> None:
    """Log the start point, the planned updates, the micro-batches' sizes, the model and the device."""
    device = runtime.device
    is_split = runtime.division.stages > 1
    copies = _counted(runtime.copies, *(("cop", "ies", "y") if is_split else ("worker",)))
    shares = f"{copies} x {_counted(plan.accumulation, 'micro-batch', 'es')}"
    rows = f"{plan.batch_size}"
    if plan.examples_per_row > 1:
        rows += f" packed rows x {plan.examples_per_row:.3f} (on average)"
    runtime.log(
        f"{training.start_point}: updates {plan.start} to {plan.last} of {runtime.config.schedule.steps}, "
        f"each of {shares} x {rows} = {plan.examples} examples out of {data.examples}"
    )
    runtime.log(f"micro-batches: {form.describe()}")
    if runtime.division.stages > 1 and form.has_lengths:
        runtime.log("sequence lengths vary: micro-batches of an update are padded to the longest of them")
    runtime.log(f"{training.parameters:,} weights; {described}")
    compiling = (
        ", which compiles the model, as does the first micro-batch of each other size"
        if device.compiles or device.compiles_always
        else ""
    )
    runtime.log(f"reading the first examples, making the first update{compiling}")


def _counted(number: int, noun: str, ending: str = "s", of_one: str = "") -> str:
    """The number with its noun, which has the ending, or the second one if the number is 1."""
    return f"{number} {noun}{of_one if number == 1 else ending}"


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
