"""Evaluation of one checkpoint, or of every checkpoint as it appears."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bertdata.dataset.mixture.weights import split_paths
from bertdata.dataset.reader import OpenedDataset, open_dataset
from bertdata.errors import BertDataError
from bertdata.io.made_directories import make_directory_for_block
from trainer.checkpoints.checkpoint import STATE, find_checkpoints
from trainer.checkpoints.reading import choose_best_checkpoint, choose_checkpoint, read_state
from trainer.checkpoints.source import find_trainer_checkpoint, open_checkpoint
from trainer.config.settings import Config, format_flag
from trainer.data.opening import prepare_for_training
from trainer.logs.evaluation_results import EvaluationResults
from trainer.logs.further_logs import make_mllog
from trainer.logs.logs import Terminal
from trainer.logs.reporter import Logger, Reporter
from trainer.model.headed import HeadedBert
from trainer.run.agreement import check_same_data
from trainer.run.configured_shape import describe_differences, override_stored_settings
from trainer.run.evaluation import Evaluation
from trainer.run.evaluation_warnings import find_model_warnings
from trainer.run.placing import place_model
from trainer.run.remote_output import (
    bring_later_checkpoint,
    list_later_checkpoints,
    localise_evaluation,
    naming_urls,
    upload_results,
)
from trainer.run.runtime import find_model_config, make_model, open_runtime
from trainer.run.strategies import find_inference
from trainer.run.trained_data import open_trained_data
from trainer.run.weights import load_weights
from trainer.update.worker import Runtime

_PAUSE_SECONDS = 2.0  # seconds between two searches for new checkpoints


def evaluate(
    config: Config,
    *,
    poll: bool = False,
    timeout: float = math.inf,
    until_step: int | None = None,
    loggers: Sequence[Logger] = (),
) -> None:
    """Evaluate one checkpoint, or with ``poll`` each new checkpoint of a run.

    The checkpoint is start_from_ckpt if it is set, otherwise that of resume_step, otherwise the newest in
    output_dir.
    poll: evaluate each checkpoint that appears in output_dir. This ends when training is done, when the
    target accuracy is reached, or when no new checkpoint has appeared for ``timeout`` seconds. Afterwards
    eval_results.txt contains the last result.
    until_step: with ``poll``, evaluate in the way of MLPerf's program. That is, always take the newest
    checkpoint, take start_from_ckpt (as step 0) only while output_dir has no checkpoint, and end after a
    checkpoint of this step or a later one. None: evaluate every checkpoint.
    loggers: further logs of the caller, which get everything that is logged.
    """
    config.require("eval_data", "output_dir")
    runtime = replace(localise_evaluation(open_runtime(config), poll=poll), loggers=tuple(loggers))
    with naming_urls(runtime):
        evaluate_checkpoints(runtime, poll=poll, timeout=timeout, until_step=until_step)
    runtime.collective.close()


def evaluate_checkpoints(
    runtime: Runtime, *, poll: bool = False, timeout: float = math.inf, until_step: int | None = None
) -> None:
    """Evaluate the configured checkpoint, or with ``poll`` each checkpoint that appears in output_dir.

    The arguments are explained at ``evaluate``.
    """
    config = runtime.config
    data = None
    if not config.is_finetuning:
        paths = split_paths(str(config.data.eval_data))
        data = runtime.on_every_worker(
            lambda: open_dataset(paths, unverified=config.data.unverified, split="test")
        )
        runtime = runtime.changed(config, data)
    loggers = list[Logger]()
    directory: AbstractContextManager[None] = nullcontext()
    if runtime.collective.rank == 0:
        folder = str(config.run.output_dir).removeprefix("file://")
        directory = make_directory_for_block(folder)
        loggers = [
            Terminal(runtime.task.columns, config.schedule.steps),
            EvaluationResults(Path(folder)),
            *runtime.loggers,
        ]
        if (mllog := make_mllog(config, Path(folder), runtime.task.columns)) is not None:
            loggers.append(mllog)
    evaluation, shape = None, None
    with directory, Reporter(loggers, trains=False) as report, ExitStack() as copies:
        for path in _iterate_checkpoints(runtime, poll, timeout, newest=until_step is not None):
            read = partial(_read_unless_removed, path, poll)
            found = runtime.on_rank_0(partial(read, _read_checkpoint_facts, config, path))
            if found is None:
                continue
            known, step, trained, is_last, unit = found
            if until_step is not None:
                step = 0 if path == config.start.start_from_ckpt else step
                # An update may count as several steps (``unit``). So stop if the next update would go beyond
                # until_step.
                is_last = step > until_step - unit
            # Build a new model only if this checkpoint's model has another shape than the previous one.
            if evaluation is None or known != shape:
                if evaluation is None and data is not None:
                    about = partial(read, find_model_warnings, config, path, data)
                    for warning in runtime.on_rank_0(about) or []:
                        runtime.log(f"warning: {warning}")
                shape = known
                copies.close()  # of the data of the previous evaluation
                runtime, evaluation, model = _prepare_evaluation(runtime, shape, path)
                copies.enter_context(evaluation.keep_copies())
                inference = find_inference(runtime.worker(model))
            if not load_weights(runtime, model, inference, path, read):
                continue
            report.begin_evaluation(step, trained)
            record = evaluation.measure(inference, step=step, trained=trained)
            report.evaluation(record.values(), record.text)
            upload_results(runtime)
            if is_last or evaluation.reaches_target(record):
                break
        report.close()


def _iterate_checkpoints(runtime: Runtime, poll: bool, timeout: float, newest: bool = False) -> Iterator[str]:
    """Yield the paths of the checkpoints to evaluate. All workers get the same paths.

    poll: also yield checkpoints that appear later in output_dir.
    timeout: seconds without a new checkpoint after which polling ends.
    newest: with ``poll``, skip to the newest checkpoint each time, and use start_from_ckpt only while
    output_dir has none.
    """
    config, output_dir = runtime.config, str(runtime.config.run.output_dir)
    start = config.start
    if start.start_from_ckpt is not None:
        if not (newest and runtime.on_rank_0(lambda: bool(list_later_checkpoints(runtime, -1)))):
            yield start.start_from_ckpt
    elif not poll:
        yield runtime.on_rank_0(lambda: choose_result(runtime, output_dir, start.resume_step))
    last = -1
    since = time.monotonic()
    while poll:
        # Only rank 0 decides, because other workers may see new files in the directory a moment later.
        new = list_later_checkpoints(runtime, last)
        new, is_late = runtime.collective.broadcast_object([new, time.monotonic() - since > timeout])
        if new:
            last, path = new[-1 if newest else 0]
            if bring_later_checkpoint(runtime, last):
                yield path
            since = time.monotonic()
        elif is_late:
            return
        else:
            time.sleep(min(_PAUSE_SECONDS, timeout))


def choose_result(runtime: Runtime, output_dir: str, number: int | None = None) -> str:
    """Return the path of a run's checkpoint to evaluate or to predict with. Only rank 0 calls this.

    It is the checkpoint with this number. Without a number, it is the checkpoint of the best evaluation if
    the run looks for it (keep_best), else the newest.
    """
    if number is not None:
        return str(choose_checkpoint(output_dir, number))
    path, choice = choose_best_checkpoint(output_dir)
    if choice:
        runtime.log(choice)
    return str(path)


def _read_unless_removed(path: str, poll: bool, read: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``read`` with the arguments and return its result. Return None if the checkpoint no longer exists.

    A run that is polled may remove the checkpoint at any time.
    path: path of the checkpoint.
    """
    try:
        return read(*arguments)
    except (BertDataError, OSError):
        if poll and not Path(path).exists():
            return None
        raise


def _read_checkpoint_facts(config: Config, path: str) -> tuple[dict[str, Any] | None, int, int, bool, int]:
    """Return facts about a checkpoint: (model settings, step, examples trained on, is the last one, steps per
    update).

    The step is counted as in the run's logs. The checkpoint at the end of a run is not "the last one" if the
    run was prolonged and has later checkpoints. A checkpoint of another program has step 0, unless it lies in
    output_dir, where its name contains its step.
    """
    folder = find_trainer_checkpoint(path) or Path(path)
    if (folder / STATE).is_file() or folder.parent.name == "checkpoints":
        state = read_state(folder)
        is_followed = max(find_checkpoints(str(folder.parent.parent)), default=0) > state.number
        is_last = state.step >= state.config.get("steps", math.inf) and not is_followed
        return state.model, state.logged_step, state.trained, is_last, state.steps_of_update
    theirs = open_checkpoint(path, model_config=config.model.model_config, with_moments=False)
    is_here = Path(theirs.path).parent == Path(str(config.run.output_dir))
    step = theirs.updates if is_here and theirs.updates is not None else 0
    return theirs.config.as_json() if theirs.config else None, step, 0, False, 1


def _prepare_evaluation(
    runtime: Runtime, shape: dict[str, Any] | None, path: str
) -> tuple[Runtime, Evaluation, HeadedBert]:
    """Return the runtime, the evaluation, and a model for a checkpoint with these model settings.

    The returned runtime knows which share of the model this worker holds.
    shape: the checkpoint's model settings, or None if it has none. Configured settings override them.
    path: path of the checkpoint.
    """
    config = runtime.config
    if shape is not None:
        stored, shape = shape, override_stored_settings(config, shape)
        for difference in describe_differences(stored, shape):
            runtime.log(f"warning: {difference}")
    tokens = shape["vocab_size"] if shape else None
    task = runtime.task
    runtime.log("opening the data")
    data = runtime.on_every_worker(
        lambda: task.open(config, str(config.data.eval_data), tokens, held_out=True)
    )
    check_same_data(runtime, {format_flag("eval_data"): data})
    if config.data.train_data:
        opened = task.open(config, config.data.train_data, tokens)
        training: OpenedDataset | None = prepare_for_training(config, opened)
    else:
        training = open_trained_data(runtime, path, tokens)
    model = find_model_config(config, data, shape)
    runtime = place_model(runtime, model, data.layout.max_seq_length)
    evaluation = Evaluation.of(runtime, data, training)
    runtime.log("building the model")
    return runtime, evaluation, make_model(runtime, model)
