"""Pre-training, read downwards: workers, data, model, where to start, evaluation, the loop."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial

from bertdata.dataset.reader import Data
from bertdata.errors import SettingsError
from trainer.checkpoint import new_state
from trainer.config import Config
from trainer.devices import Device, find_device
from trainer.errors import WorkerLost
from trainer.evaluate import Evaluation, evaluate, reached
from trainer.ledger import Ledger
from trainer.loader import Loader
from trainer.origin import find_origin, is_over
from trainer.report import make_reporter
from trainer.runtime import Runtime, begin, find_model_config, make_model, open_dataset, profiled
from trainer.training import Training


def pretrain(phases: Sequence[Config]) -> None:
    """Train phase 1, phase 2, or one after the other; resumed, from the phase of the checkpoint on.

    A phase ends when its steps are done, the target accuracy is reached, or SIGTERM or Ctrl-C asks to stop,
    with a checkpoint in each of these cases. Only in the first is it followed by another.
    """
    if not phases[0].do_train:
        return evaluate(phases[-1])
    for config in phases:
        unneeded = {"train_data": config.generated_data, "output_dir": config.compile_only}
        config.require(*(name for name, is_so in unneeded.items() if not is_so))
    runtime = begin(phases[0])
    datasets = [
        open_dataset(config, None if config.generated_data else config.train_data) for config in phases
    ]
    for config in phases:
        config.micro_batches(runtime.copies)  # what cannot be is found before the first phase is trained
        if config.eval_data is not None:
            open_dataset(config, config.eval_data)
    later = len(phases) > 1 and runtime.share(partial(is_over, phases[0]))
    if not later:
        for config in phases[1:]:  # which begin at their first update
            count_calls(min(config.steps, config.steps_this_run or config.steps), runtime.device)
    for config, data in list(zip(phases, datasets, strict=True))[later:]:
        if config is not phases[0]:
            runtime.device.release()
            config = config if later else Config(**vars(config) | {"resume_step": None})
            runtime = replace(runtime, config=config, device=find_device(config))
        if not train_phase(runtime, data):
            break
    runtime.workers.close()


def train_phase(runtime: Runtime, data: Data) -> bool:
    """Whether all steps of the phase are done."""
    config, device, workers = runtime.config, runtime.device, runtime.workers
    batch_size, accumulation = config.micro_batches(runtime.copies)
    step_examples = config.update_examples(runtime.copies)
    shape = find_model_config(config, data)
    model = make_model(runtime, shape)
    fresh = new_state(config, shape, data.digest)
    training = Training(runtime, model, fresh)
    if not config.compile_only:
        training.start(*runtime.share(lambda: find_origin(config, fresh)))
    evaluation, interval = None, config.evaluation_interval(runtime.copies)
    if config.eval_data is not None and not config.compile_only:
        evaluation = Evaluation(runtime, open_dataset(config, config.eval_data, shape.vocab_size), data)
    loader = Loader(
        data,
        batch_size=batch_size,
        accumulation=accumulation * device.replicas,
        workers=workers.size,
        rank=workers.rank,
        seed=config.seed,
        lanes=config.lanes,
        position=training.state.position,
        prepare=device.prepare,
        warn=lambda message: runtime.say(f"warning: {message}"),
    )
    if config.compile_only:
        with closing(loader):
            training.compile([next(loader) for _ in range(device.updates_per_call)])
        sizes = f"{batch_size} x {data.layout.max_seq_length}"
        runtime.say(f"compiled for {device.describe()}, micro-batches of {sizes}; nothing was trained")
        return True
    saved = start = training.state.step
    last = min(config.steps, start + (config.steps_this_run or config.steps))
    calls = count_calls(last - start, device)
    weights = sum(weight.numel() for weight in model.parameters())
    kind = training.origin.partition(" ")[0]
    report = make_reporter(config, rank=workers.rank, resume_step=start if kind == "resumed" else None)
    ledger = Ledger(runtime, report, examples=step_examples, step=start)
    with closing(loader), report, stop_signals() as asked, profiled(runtime, calls) as note_update:
        runtime.say(
            f"{training.origin}: updates {start} to {last} of {config.steps}, each of {runtime.copies} "
            f"workers x {accumulation} micro-batches x {batch_size} = {step_examples} examples out of"
            f" {data.examples}; {weights:,} weights; {device.describe()}"
        )
        report.begin()
        while training.state.step < last and not ledger.stops:
            updates = [next(loader) for _ in range(device.updates_per_call)]
            before = training.state
            for update, losses in zip(updates, training.update(updates), strict=True):
                ledger.add(losses, training.learning_rate, update.position.epoch)
                training.advance(update.position, step_examples)
            note_update()
            step, trained = training.state.step, training.state.trained
            is_last = step == last
            evaluates = is_last or _passes(interval, before.trained, trained)
            saves = is_last or _passes(config.checkpoint_every, before.step, step)
            if saves or evaluates or ledger.is_due(step, config.log_every):
                ledger.settle(stop=bool(asked))
            if saves or ledger.stops:
                training.save()
                report.saved(step)
                saved = step
            if evaluation and evaluates and not ledger.stops:
                report.begin_evaluation()
                record = evaluation.measure(model, step=step, trained=trained)
                report.evaluation(record)
                if reached(config, record):
                    runtime.say(f"the target accuracy {config.target_accuracy} is reached")
                    last = step
            if saves or evaluates:
                ledger.restart_clock()
        if saved != training.state.step:
            training.save()
        if ledger.stops:
            runtime.say(f"stopped after update {training.state.step} as asked; --resume goes on")
        report.close()
    return training.state.step == config.steps and not ledger.stops


def count_calls(updates: int, device: Device) -> int:
    """How many times the device is asked for updates; SettingsError unless it makes so many."""
    calls, rest = divmod(updates, device.updates_per_call)
    if rest:
        wanted = f"expected a multiple of the {device.updates_per_call} that the device makes at a time"
        raise SettingsError(f"{updates} updates to make, {wanted}")
    return calls


def _passes(interval: int, before: int, now: int) -> bool:
    """Whether a multiple of the interval lies beyond ``before`` and not beyond ``now``; 0: never."""
    return interval > 0 and now // interval > before // interval


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """A list that SIGTERM and Ctrl-C append to; the second Ctrl-C interrupts at once."""
    asked: list[int] = []

    def note(number: int, _: object) -> None:
        asked.append(number)
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    except WorkerLost:
        before.clear()  # SIGTERM is ignored by now: the launcher's must not come before the message
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
