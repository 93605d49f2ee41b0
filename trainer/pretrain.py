"""Pre-training, read downwards: workers, data, model, optimiser, where to start, the loop."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from trainer.checkpoint import State
from trainer.config import Config
from trainer.evaluate import Evaluation, evaluate, reached
from trainer.ledger import Ledger
from trainer.loader import Loader
from trainer.origin import Origin, find_origin
from trainer.report import make_reporter
from trainer.runtime import begin, find_model_config, make_model, open_dataset, profiled
from trainer.training import Training


def pretrain(config: Config) -> None:
    """Train until the steps are done, the target accuracy is reached, or SIGTERM or Ctrl-C asks to stop.

    A checkpoint is written in each of these cases.
    """
    if not config.do_train:
        return evaluate(config)
    config.require("output_dir", *(() if config.generated_data else ("train_data",)))
    runtime = begin(config)
    workers = runtime.workers
    batch_size, accumulation = config.micro_batches(workers.size)
    examples = config.update_examples(workers.size)

    data = open_dataset(config, config.train_data)
    shape = find_model_config(config, data)
    model = make_model(runtime, shape)
    fresh = State(
        phase=2 if config.phase2 else 1,
        step=0,
        data=data.digest,
        seed=config.seed,
        lanes=config.lanes,
        optimiser=config.optimiser,
        model=shape.as_json(),
        config=config.as_json(),
    )
    origin = Origin(**runtime.share(lambda: find_origin(config, fresh).as_json()))
    training = Training(runtime, model, fresh)
    training.start(origin)
    evaluation = None
    if config.eval_data is not None:
        held_out = open_dataset(config, config.eval_data, vocabulary_size=shape.vocab_size)
        evaluation = Evaluation(runtime, held_out, data)
    loader = Loader(
        data,
        batch_size=batch_size,
        accumulation=accumulation,
        workers=workers.size,
        rank=workers.rank,
        seed=config.seed,
        lanes=config.lanes,
        position=training.state.position,
        warn=lambda message: runtime.say(f"warning: {message}"),
    )
    start = training.state.step
    last = min(config.steps, start + (config.steps_this_run or config.steps))
    runtime.say(
        f"{origin.describe()}; update {start + 1} to {last} of {config.steps}, {workers.size} workers x "
        f"{accumulation} micro-batches x {batch_size} = {examples} of {data.examples} examples each; "
        f"{sum(weight.numel() for weight in model.parameters()) / 1e6:,.1f} M parameters; "
        f"{runtime.device.describe()}"
    )
    report = make_reporter(config, rank=workers.rank, resume_step=start if origin.kind == "resume" else None)
    try:
        with report, stop_signals() as stop, profiled(config, workers.rank) as profile:
            report.begin()
            ledger = Ledger(runtime, report, examples, training.state.step)
            interval = config.evaluation_interval(workers.size)
            saved = start
            while training.state.step < last and not ledger.stops:
                before = training.state
                update = next(loader)
                ledger.add(training.update(update.batches), training.learning_rate, update.position.epoch)
                training.advance(update.position, examples)
                profile()
                state = training.state
                is_last = state.step == last
                saves = is_last or (config.checkpoint_every and state.step % config.checkpoint_every == 0)
                evaluates = evaluation and (
                    is_last or (interval and state.trained // interval > before.trained // interval)
                )
                if saves or evaluates or ledger.is_due(state.step, config.log_every):
                    ledger.settle(stop=bool(stop))
                if saves or ledger.stops:
                    training.save()
                    report.saved(state.step)
                    saved = state.step
                if evaluation and evaluates:
                    report.begin_evaluation()
                    record = evaluation.measure(model, step=state.step, trained=state.trained)
                    report.evaluation(record)
                    if reached(config, record):
                        runtime.say(f"the target accuracy {config.target_accuracy} is reached")
                        last = state.step
                if saves or evaluates:
                    ledger.restart_clock()
            if saved != training.state.step:
                training.save()
            if ledger.stops:
                runtime.say(f"stopped after update {training.state.step} as asked; --resume goes on")
            report.close()
    finally:
        loader.close()
    workers.close()


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
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
