"""One phase of training, from top to bottom: model, start point, evaluation, data, loop.

``train_phase`` prepares a phase and ``make_updates`` is its loop. One pass of the loop makes an update:

1. ``next(loader)`` returns the micro-batches that this worker computes (``trainer.data.loader``).
2. ``training.update`` runs forward and backward passes, averages the gradients over the workers, clips them,
and lets the optimiser change the weights (``trainer.update.strategy``).
3. ``pending.add`` remembers the update, whose loss is still on the device. ``pending.flush`` later reads and
logs it.
4. ``training.advance`` counts the update.
5. Depending on the update's number, the loop saves a checkpoint or evaluates.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bertdata.dataset.label_counts import report_baseline
from bertdata.dataset.reader import OpenedDataset
from bertdata.io import storage
from trainer.checkpoints.checkpoint import clean_up_checkpoints, find_checkpoints, make_initial_state
from trainer.checkpoints.kept_tokenizer import keep_tokenizer
from trainer.checkpoints.unchecked_files import describe_files
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Form
from trainer.data.loader import Loader
from trainer.data.trained_length import find_longest_feature
from trainer.errors import StopRequested
from trainer.logs.choice import make_loggers
from trainer.logs.reporter import Reporter, RunPlan
from trainer.logs.table_rows import read_rows_of_update
from trainer.logs.unfinished_row import UnfinishedRow, read_unfinished_row
from trainer.run.best_checkpoint import describe_best, has_lost_patience
from trainer.run.command_line import find_command_line
from trainer.run.interruption import BEGINS_AGAIN
from trainer.run.path_check import check_output_is_free
from trainer.run.pending_updates import PendingUpdates
from trainer.run.placing import place_model
from trainer.run.plan_updates import plan_updates
from trainer.run.planned_updates import PlannedUpdates, crosses_multiple
from trainer.run.processor_threads import suit_threads
from trainer.run.remote_output import (
    begin_uploads,
    check_room_for_checkpoints,
    remove_earlier_remote_run,
)
from trainer.run.run_sources import RunSources, note_sources
from trainer.run.runtime import find_model_config, make_model
from trainer.run.saving import ASKED_SECONDS, save_after_comparison
from trainer.run.training_state import Training
from trainer.update.worker import Runtime
from trainer.workers.save_timer import request_saves
from trainer.workers.signals import handle_training_signals

if TYPE_CHECKING:
    from trainer.run.evaluation import Evaluation

# Warning for fp16 on a CPU, which computes fp16 slowly.
SLOW_HALVES = (
    "precision is fp16 on a processor, where fp32 may be several times faster (seven times was seen); give "
    "--precision fp32, or bf16 where the processor has it"
)


def train_phase(runtime: Runtime, data: OpenedDataset, shape: ModelConfig | None = None) -> Training:
    """Train one phase until its last update, or until the run is asked to stop. Return the training as it
    ended.

    shape: settings of the model, or None for the configured ones.
    """
    shape = shape or find_shape(runtime, data)
    # The new runtime knows this worker's share of the model: all of it, unless the model is divided.
    runtime = place_model(runtime, shape, data.layout.max_seq_length)
    planned = plan_updates(runtime, data)
    length = data.layout.max_seq_length
    with suit_threads(runtime.device, shape, planned.batch_size, length) as remark:
        return _train_planned(planned, data, shape, remark)


def _train_planned(planned: PlannedUpdates, data: OpenedDataset, shape: ModelConfig, remark: str) -> Training:
    """Make the planned updates of a phase, or what remains of them. Return the training as it ended.

    shape: settings of the model.
    remark: remark about the number of threads, which the log appends to the description of the device.
    """
    runtime = planned.runtime
    config, device = runtime.config, runtime.device
    planned.prepare_cache()
    runtime.on_machines(lambda: check_room_for_checkpoints(runtime, shape))
    runtime.log("building the model")
    order = planned.rows.describe(f"{runtime.copies * planned.accumulation} x {planned.batch_size} examples")
    order += planned.reading.describe_turns()
    longest = find_longest_feature(data) if config.is_finetuning else data.layout.max_seq_length
    # The state of a run at update 0. If the run continues a checkpoint, load_start replaces it.
    fresh = make_initial_state(
        config, shape, data.digest, order, runtime.task.name, longest, *planned.reading
    )
    fresh = replace(fresh, config=runtime.record_config())
    schedule = planned.add_warmup(config.make_schedule(runtime.copies))
    training = Training(runtime, make_model(runtime, shape), fresh, schedule)
    if config.run.compile_only:
        from trainer.run.compiling import compile_shapes

        return compile_shapes(training, planned)
    # Load weights, moments and counts from a checkpoint, if the run starts from one.
    later_than = load_start(training, planned.examples)
    planned.start = training.state.step
    training.strategy.check_accumulation(planned.accumulation)
    device.check_updates(planned.last - planned.start)
    evaluation = make_evaluation(runtime, data, shape)
    kept = note_sources(training, data, None if evaluation is None else evaluation.data)
    form = planned.form()
    copies: AbstractContextManager[None] = nullcontext()
    if evaluation is not None:
        copies = evaluation.keep_copies()
    # The loader's threads begin to read here, at the state's position in the data. The end of this block ends
    # them, also after an error.
    with copies, closing(planned.loader(form, training.state)) as loader:
        described = f"{device.describe()}{remark}"
        after = training.state.logged_step if training.is_resumed else None
        rank, every = runtime.collective.rank, config.reports.log_every
        further = runtime.loggers
        loggers = [] if rank else make_loggers(config, runtime.task.columns, time.time(), after, further)
        # Everything above may raise an error. Only now the output directory is changed, so that a refused
        # start leaves nothing behind.
        runtime.on_machines(lambda: _prepare_directory(config, later_than, kept))
        runtime.on_rank_0(lambda: begin_uploads(runtime, later_than))
        devices = runtime.collective.size * device.replicas
        peak, unit = device.find_peak(described), config.steps_of_update
        report = Reporter(
            loggers,
            log_every=every,
            devices=devices,
            peak=peak,
            steps_of_update=unit,
            unfinished_row=find_unfinished_row(training),
        )
        signals = handle_training_signals(runtime.collective.stopping, config.run.checkpoint_signal)
        # One worker asks for checkpoints after a time, and all agree on the update.
        seconds = None if rank else config.run.seconds_between_checkpoints
        timer = request_saves(runtime.collective.stopping, seconds)
        profile: AbstractContextManager[Callable[[], object]] = nullcontext(lambda: None)
        if config.run.profile:
            from trainer.run.profiling import record_profile

            profile = record_profile(runtime, planned.last - planned.start)
        # The end of this block closes the logs, restores the signal handlers, and waits until the last
        # checkpoint is written.
        with report, signals, timer, training, profile as count_update:
            announce_start(training, planned, loader, form, described, report)
            report.plan(make_run_plan(training, planned, evaluation))
            report.begin()
            stopped = make_updates(training, loader, evaluation, report, planned, count_update)
            training.finish_save()
            if training.state.best:
                runtime.log(describe_best(config, training.state.best))
            if stopped and training.state.number:
                runtime.log(f"stopped after update {training.state.step} as requested; --resume continues")
            elif stopped:
                runtime.log(f"stopped before the first update as requested; {BEGINS_AGAIN}")
            report.close("stopped" if stopped else "success")
    training.is_stopped = stopped
    training.is_over = training.state.step == config.schedule.steps and not stopped
    return training


def _prepare_directory(config: Config, later_than: int | None, kept: RunSources) -> None:
    """Create the output directory, and remove its checkpoints whose number is larger than ``later_than``.

    later_than: number of the checkpoint that the run continues from, or None to remove no checkpoint.
    kept: the records of the run's data and start, which are written to the directory.
    """
    output_dir = str(config.run.output_dir)
    storage.make_directory(output_dir)
    clean_up_checkpoints(output_dir, after=later_than)
    keep_tokenizer(config)
    kept.write(output_dir)


def find_shape(runtime: Runtime, data: OpenedDataset) -> ModelConfig:
    """Return the configuration of the model. Settings that are not configured come from the start
    checkpoint.
    """
    if not is_continued(runtime.config):
        return find_model_config(runtime.config, data)
    from trainer.run.start_point import find_continued_shape

    return find_continued_shape(runtime, data)


def is_continued(config: Config) -> bool:
    """Return True if the run starts from a checkpoint, of which it takes at least the weights."""
    return config.start.is_continued


def load_start(training: Training, update_examples: int) -> int | None:
    """Load weights, moments and state of the start point on all workers.

    update_examples: number of examples per update, over all workers.
    Returns the number of the checkpoint that the run continues from, or None. The caller removes checkpoints
    with larger numbers.
    Raises DatasetError for a new run if its output directory is in use on any machine.
    """
    runtime, later_than = training.runtime, None
    output_dir = str(runtime.config.run.output_dir)
    if runtime.config.run.overwrite_output_dir and not runtime.config.start.continues_here:
        remove_earlier_run(runtime, output_dir)
    if is_continued(runtime.config):
        from trainer.run.start_point import load_start_point

        later_than = load_start_point(training, update_examples)
    else:
        overwrites = runtime.config.run.overwrite_output_dir
        runtime.on_machines(lambda: None if overwrites else check_output_is_free(output_dir))
    training.tensors.broadcast()
    return later_than


def remove_earlier_run(runtime: Runtime, output_dir: str) -> None:
    """Remove the checkpoints of an earlier run from the output directory, on each machine.

    The log files of the earlier run are renamed later, when the new ones are opened.
    """

    def remove_on_machine() -> None:
        remove_earlier_remote_run(runtime)
        removed = len(find_checkpoints(output_dir))
        clean_up_checkpoints(output_dir, after=-1)
        if removed:
            runtime.log(
                f"{output_dir}: {removed} checkpoints of an earlier run removed (overwrite_output_dir)"
            )

    runtime.on_machines(remove_on_machine)


def make_evaluation(runtime: Runtime, data: OpenedDataset, shape: ModelConfig) -> "Evaluation | None":
    """Return the evaluation on the configured dataset, or None if no dataset is configured.

    data: the training set. Its most frequent labels are the baseline that scores are compared with.
    shape: settings of the model.
    """
    if (paths := runtime.config.data.eval_data) is None:
        runtime.on_rank_0(lambda: report_baseline(data, runtime.log))
        return None
    from trainer.run.evaluation import Evaluation

    held_out = runtime.task.open(runtime.config, paths, shape.vocab_size, held_out=True)
    return Evaluation.of(runtime, held_out, data)


def find_unfinished_row(training: Training) -> UnfinishedRow | None:
    """Return the updates before the checkpoint that belong to the resumed run's first row, or None.

    A run that stopped after its checkpoint has written them as a row of their own. A run that was killed has
    not.
    """
    state = training.state
    row = read_unfinished_row(state.unfinished_row, state.step, training.runtime.task.metrics)
    if not training.is_resumed or row is None:
        return None
    folder, step = str(training.runtime.config.run.output_dir), state.logged_step
    is_written = training.runtime.on_rank_0(lambda: bool(read_rows_of_update(folder, "training.csv", step)))
    return None if is_written else row


def announce_start(
    training: Training,
    planned: PlannedUpdates,
    loader: Loader,
    form: Form,
    described: str,
    report: Reporter,
) -> None:
    """Log the start point, the planned updates, the sizes of micro-batches, the model and the device.

    described: the description of the device.
    """
    runtime, device = planned.runtime, planned.runtime.device
    runtime.log(f"{training.start_point}: {planned.describe()} out of {planned.rows.data.examples}")
    planned.log_epochs(training.state)
    planned.log_reading(loader, training.state)
    if training.state.unchecked_files:
        runtime.log(
            f"{describe_files(training.state.unchecked_files)} not compared with the md5s in the manifest by "
            "the run before; comparing them first"
        )
    runtime.log(f"micro-batches: {form.describe()}")
    if runtime.model_share.stages > 1 and form.sizes_vary:
        runtime.log("sequence lengths vary: micro-batches of an update are padded to the longest of them")
    weights = runtime.empty_model(training.model.config).count_weights()
    runtime.log(f"{weights:,} weights; {described}")
    if device.torch_device.type == "cpu" and runtime.config.update.precision == "fp16":
        runtime.log(f"warning: {SLOW_HALVES}")
    compiling = ""
    if device.compiles or device.compiles_always:
        compiling = ", which compiles the model, as does the first micro-batch of each other size"
    runtime.log(f"reading the first examples, making the first update{compiling}")
    if runtime.call is not None:
        started_by = {"call": runtime.call}
    elif (command := find_command_line()) is not None:
        started_by = {"command": command}
    else:
        started_by = {}
    report.describe(
        **started_by,
        start_point=training.start_point,
        updates=planned.describe(),
        micro_batches=form.describe(),
        weights=weights,
        workers=runtime.collective.size,
        device=described,
    )


def make_run_plan(training: Training, planned: PlannedUpdates, evaluation: "Evaluation | None") -> RunPlan:
    """Return the sizes of the run (workers, examples per update and so on), which logs write before the first
    update.
    """
    runtime, state = planned.runtime, training.state
    return RunPlan(
        workers=runtime.collective.size * runtime.device.replicas,
        accumulation=planned.accumulation,
        update_examples=planned.examples,
        interval=planned.interval,
        eval_examples=evaluation.examples if evaluation else runtime.config.evaluation.eval_examples or 0,
        trained=state.trained,
        step=state.step,
        sequence_length=planned.rows.data.layout.max_seq_length,
        steps=planned.last,
    )


def make_updates(
    training: Training,
    loader: Loader,
    evaluation: "Evaluation | None",
    report: Reporter,
    planned: PlannedUpdates,
    count_update: Callable[[], object],
) -> bool:
    """Make the planned updates, write their logs, save checkpoints and evaluate.

    count_update: function to call after each call of the strategy. With ``--profile`` it counts for the
    profiler.
    Returns True if a signal has stopped the run before its last update.
    """
    runtime = planned.runtime
    config, device, stopping = runtime.config, runtime.device, runtime.collective.stopping
    # Losses stay on the device until ``pending.flush`` reads those of many updates at once. To read a loss,
    # the host must wait for the device, and afterwards the device waits until the host has prepared the next
    # update.
    pending = PendingUpdates(training, report, loader)
    compile_times = None
    if device.compiles:
        from trainer.run.compiling import CompileTimes

        compile_times = CompileTimes(runtime.log)
    last, stopped = planned.last, False
    watches = config.evaluation.keep_best is not None
    try:
        # A resumed run may already have reached the target accuracy or lost its patience, or it was killed
        # after a checkpoint and before the evaluation that should have followed.
        if evaluation and training.is_resumed:
            if evaluation.has_reached_target(training.state):
                target = config.evaluation.target_accuracy
                runtime.log(f"update {planned.start} has reached the target accuracy {target}")
                training.ends_early = True
            elif evaluation.is_evaluation_missing(training.state, planned):
                runtime.log(
                    f"update {planned.start} has a checkpoint, but was not evaluated; evaluating it now"
                )
                evaluate_model(training, evaluation, report)
                if watches:  # save once more, because the state does not count this evaluation yet
                    save_after_comparison(training, loader, report)
                pending.restart_clock()
            elif has_lost_patience(config, training.state.best):
                log_lost_patience(training)
            if training.ends_early:
                last = planned.start
        if training.is_resumed and last == planned.start:
            runtime.log(f"nothing is left to do after update {last}")
        while training.state.step < last:
            # Raises StopRequested if a signal has asked to stop. All workers must stop before the same
            # update, because a worker that stops alone would leave the others waiting in the next exchange of
            # gradients. The strategy may check again between micro-batches.
            stopping.check(exchanges=True)
            # The signal of --checkpoint-signal asks for a checkpoint without stopping, and so does a time as
            # --checkpoint-every.
            if stopping.take_save_request() and planned.start < training.state.step != training.saved_step:
                pending.flush()
                save_after_comparison(training, loader, report, ASKED_SECONDS)
                report.saved(training.state.step)
                runtime.log(f"saving update {training.state.step} as requested; training goes on")
                pending.restart_clock()
            # Most devices make one update per call, but an IPU program may contain several. For example, an
            # update of 8 examples per worker with batch_size 2 is a list of 4 micro-batches.
            updates = [next(loader) for _ in range(device.updates_per_call)]
            before = training.state
            make = partial(training.update, updates)
            # Run the forward and backward passes, exchange the gradients, clip them, and run the optimiser.
            # See Strategy.update.
            made, compile_seconds = compile_times.measure(updates, make) if compile_times else (make(), 0.0)
            # Count the updates. Their losses in ``sums`` are still on the device. A resumed run would
            # continue at ``update.position`` in the data.
            for update, sums in zip(updates, made, strict=True):
                examples = planned.count_examples(training.state.step)
                pending.add(update, sums, examples, compile_seconds / len(updates))
                training.advance(update.position, examples)
            count_update()
            # Evaluations are counted in examples, checkpoints in updates. A call of several updates may pass
            # over the exact number: with checkpoint_every 100, a checkpoint is due if there were 96 updates
            # before the call and 104 after.
            step, trained = training.state.step, training.state.trained
            is_last = step == last
            evaluates = is_last or crosses_multiple(planned.interval, before.trained, trained)
            saves = is_last or crosses_multiple(config.run.updates_between_checkpoints, before.step, step)
            # Read the losses of all updates before a checkpoint, so that a bad loss is found before it is
            # saved. Rows of the log still end at multiples of log_every. The checkpoint keeps the sums of the
            # row that is not whole yet.
            if saves or evaluates or pending.is_due(step, config.reports.log_every):
                pending.flush()
            # With keep_best, the evaluation comes first: the checkpoint then counts it, and a new best model
            # is saved. Otherwise the checkpoint comes first, so that a kill during the evaluation loses
            # nothing.
            if evaluation and evaluates and watches:
                evaluate_model(training, evaluation, report)
                saves = saves or training.is_best
            if saves:
                save_after_comparison(training, loader, report)
                report.saved(step)
            if evaluation and evaluates and not watches:
                evaluate_model(training, evaluation, report)
            if training.ends_early:
                last = step
            if saves or evaluates:
                planned.log_epochs(training.state)
                pending.restart_clock()  # the time of saving and evaluating does not count as training
        stopping.check(exchanges=True)  # a signal may have arrived during the last update
    except StopRequested:
        # Weights and counts are those of the last complete update. They are saved below.
        stopped = True
        pending.flush()
    # A run that is resumed after its last update may still have to compare files.
    is_unchecked = bool(training.state.unchecked_files) and not stopped
    if training.saved_step != training.state.step or is_unchecked:
        save_after_comparison(training, loader, report)
        planned.log_epochs(training.state)
    # A run that was not asked to stop has waited for all files. So these are left only after a signal that
    # came during the wait.
    return stopped or bool(training.state.unchecked_files)


def evaluate_model(training: Training, evaluation: "Evaluation", report: Reporter) -> None:
    """Evaluate the model after its newest update, and decide whether the result ends the training."""
    record = evaluation.evaluate(training.strategy, training.state, report)
    training.count_evaluation(record.results)
    if evaluation.reaches_target(record):
        target = training.runtime.config.evaluation.target_accuracy
        training.runtime.log(f"the target accuracy {target} is reached")
        training.ends_early = True
    elif has_lost_patience(training.runtime.config, training.state.best):
        log_lost_patience(training)


def log_lost_patience(training: Training) -> None:
    """Log that the newest evaluations were not better than the best one, which ends the training."""
    best = training.state.best
    since = best["evaluations_since"]
    times = "1 evaluation" if since == 1 else f"{since} evaluations"
    what = f"{best['metric']} is not better than {best['value']:.5g} for {times}"
    training.runtime.log(f"{what}: training ends (patience)")
    training.ends_early = True
