"""Fine-tuning on a task.

Each input file is converted once to features, that is, a dataset of token ids and answers. Then the training
loop of pre-training trains on the features.
"""

import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import BertDataError, MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.tokens.files import VocabularyFile
from bertdata.tokens.load import vocabulary_of
from trainer.checkpoints.any_checkpoint import Checkpoint
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.formats.hub_cache import find_pretrained
from trainer.checkpoints.reading import choose_checkpoint
from trainer.checkpoints.source import is_checkpoint, open_checkpoint
from trainer.checkpoints.tokenizer import find_tokenizer
from trainer.config.model import ModelConfig, check_length
from trainer.config.model_kinds import read_model_config
from trainer.config.settings import Config, format_flag
from trainer.config.task_config import require_task
from trainer.data.named_tokenizer import find_vocabulary_warnings
from trainer.data.rows import find_rows
from trainer.data.trained_length import find_length_warnings, find_longest_feature
from trainer.logs.reporter import Logger
from trainer.run.agreement import check_same_data
from trainer.run.best_checkpoint import check_best_metric
from trainer.run.configured_shape import override_stored_settings
from trainer.run.copying import copy_features
from trainer.run.evaluate import choose_result, evaluate_checkpoints
from trainer.run.evaluation import Evaluation
from trainer.run.interruption import name_saved_checkpoint
from trainer.run.machines import share_checkpoint
from trainer.run.path_check import find_run_files
from trainer.run.placing import place_model
from trainer.run.plan_updates import plan_updates
from trainer.run.pretrain import lock_outputs
from trainer.run.remote_output import localise, localise_evaluation, naming_urls, open_output, upload_results
from trainer.run.runtime import make_model, open_runtime
from trainer.run.start_point import find_progress, find_resumed_checkpoint
from trainer.run.strategies import find_inference
from trainer.run.training_loop import train_phase
from trainer.run.weights import load_weights
from trainer.tasks.fine_tuned import find_task_data
from trainer.tasks.fine_tuning import FineTuning
from trainer.tasks.task_data import CheckedFiles
from trainer.tasks.task_files import (
    FEATURES,
    TaskFiles,
    describe_usual_names,
    find_files,
    make_features,
    warn_of_same_file,
)
from trainer.update.worker import Runtime
from trainer.workers.restarts import end_for_restart


def finetune(
    config: Config, *, may_be_new: bool = False, loggers: Sequence[Logger] = (), call: str | None = None
) -> None:
    """Train the configured task from a checkpoint, evaluate the model, and write predictions.

    The output directory gets everything that pre-training writes there, the task's predictions, and in
    ``features/`` the datasets that training and evaluation read.
    may_be_new: if ``--resume`` finds no run, start a new run without a warning.
    loggers: further logs of the caller, which get everything that is logged.
    call: the call of a Python function that started the run, as text. None: a command line started it.
    """
    require_task(config)
    config.require("output_dir")
    runtime = replace(open_runtime(config), loggers=tuple(loggers), call=call)
    given = config
    if config.run.do_train:
        runtime, (config,) = localise(runtime, [config])
    else:
        runtime = localise_evaluation(runtime.changed(config))
        config = runtime.config
    saved = name_saved_checkpoint(str(config.run.output_dir)) if config.run.do_train else nullcontext()
    with saved, naming_urls(runtime), ExitStack() as locks:
        lock_outputs(runtime, [config], locks)
        if config.run.do_train:
            runtime = open_output(runtime, [given], [config], locks)
        if config.run.do_train:
            (config,) = share_checkpoint(runtime, [config], may_be_new=may_be_new)
            runtime = runtime.changed(config)
        if not config.run.do_train:
            runtime.log("do_train is false: nothing is trained")
        run_task(runtime)
    runtime.collective.close()
    end_for_restart(runtime.collective.stopping, resumes=config.start.resume)


def run_task(runtime: Runtime, *, poll: bool = False, timeout: float = math.inf) -> None:
    """Train the task with evaluations, then write predictions. If do_train is false, only evaluate and
    predict.

    Features (datasets of token ids), results and predictions are written to output_dir.
    poll: evaluate each checkpoint that appears in output_dir.
    timeout: seconds without a new checkpoint after which polling ends.
    """
    with _remove_features_if_refused(runtime):
        _run_task(runtime, poll=poll, timeout=timeout)


def _run_task(runtime: Runtime, *, poll: bool, timeout: float) -> None:
    """Make the features (datasets of token ids) and copy them to all machines. Then train or evaluate, then
    predict.
    """
    model, keys, predicted = runtime.on_rank_0(lambda: _prepare_features(runtime))
    # Machines that do not share rank 0's disk get a copy of the features.
    keys |= {key: copy_features(runtime, keys[key]) for key in ("train_data", "eval_data") if key in keys}
    predicted = copy_features(runtime, predicted)
    runtime = replace(
        runtime.changed(runtime.config.changed(**keys)), task_vocab=runtime.config.masking.vocab
    )
    config, shape = runtime.config, read_model_config(model)
    if config.run.do_train:
        data = runtime.on_every_worker(
            lambda: runtime.task.open(config, str(config.data.train_data), shape.vocab_size)
        )
        check_same_data(runtime, {format_flag("train_data"): data})
        find_rows(config, data)  # refuse unsuitable data before the model is divided, which takes long
        training = train_phase(runtime, data, shape)
        if not training.is_over and not training.ends_early:
            return
    elif config.data.eval_data is not None:
        evaluate_checkpoints(runtime, poll=poll, timeout=timeout)
    if predicted is not None:
        _write_predictions(runtime, shape, predicted)
        upload_results(runtime)


@contextmanager
def _remove_features_if_refused(runtime: Runtime) -> Iterator[None]:
    """Remove the features made in this context if the run fails before its first update.

    Features that existed before are kept, and so are those of a run that has begun to train.
    """
    output_dir = str(runtime.config.run.output_dir)
    folder = storage.join(output_dir, FEATURES)
    is_new = runtime.collective.rank == 0 and not storage.is_remote(folder) and not storage.exists(folder)
    try:
        yield
    except BertDataError:
        if is_new and not find_run_files(output_dir):
            shutil.rmtree(folder.removeprefix("file://"), ignore_errors=True)
        raise


def _prepare_features(runtime: Runtime) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """Make the features (datasets of token ids) from the task's files. Only rank 0 calls this.

    Returns the model's settings, settings of the run that change, and the path of the features to predict on
    or None. The model's settings are those of the checkpoint, overridden by the configured ones.
    """
    config, given = runtime.config, runtime.config.finetuning
    source = _find_model_path(config)
    keys: dict[str, Any] = {}
    if config.start.start_from_ckpt is not None and source != config.run.output_dir:
        keys["start_from_ckpt"] = source
    checkpoint = open_checkpoint(source, model_config=config.model.model_config, with_moments=False)
    shape = checkpoint.expect_config()
    vocab = config.masking.vocab
    # if the run trains, load_start logs the checkpoint's warnings
    own = () if config.run.do_train else checkpoint.warnings
    for warning in (*own, *find_vocabulary_warnings(vocab)):
        runtime.log(f"warning: {warning}")
    found = find_tokenizer(checkpoint, shape, vocab, None, given.lower_case)
    if found is None:
        raise MissingInputError(f"{source}: its vocabulary is not at hand; give --vocab")
    lower_case = found.lower_case if isinstance(found, VocabularyFile) else None
    length, longest = find_task_data(config.task).choose_feature_length(config), shape.max_position_embeddings
    if config.data.max_seq_length is None and length > longest:
        length = keys["max_seq_length"] = longest  # the task's default is too long for this model
    check_length(length, longest, "max_seq_length", f"give --max-seq-length {longest} or less")
    sizes = {**config.finetuning.values(), "max_seq_length": length}
    for line in find_task_data(config.task).choose_feature_defaults(sizes, vocabulary_of(found))[1]:
        runtime.log(line)
    files = find_files(config)
    if files.evaluation is None and given.do_eval and given.task_dir is not None:
        runtime.log(f"{given.task_dir}: holds no {describe_usual_names(given, 1)}: nothing is evaluated")
    if config.run.do_train:
        check_best_metric(config, runtime.task.columns, evaluates=files.evaluation is not None)
        for warning in warn_of_same_file(files):
            runtime.log(f"warning: {warning}")
    keys |= {"vocab": found.path, "lower_case": lower_case, **_find_file_settings(runtime, files, checkpoint)}
    config = config.changed(**keys)
    runtime = runtime.changed(config)
    lengths = list[int]()
    if files.train is not None and config.run.do_train:
        made = make_features(config, files.train, training=True, labelled=True, tell=runtime.log)
        keys["train_data"] = made.directory
        data = runtime.task.open(config, made.directory)
        lengths.append(find_longest_feature(data))
        _log_labels(runtime, files.train, data)
        planned = plan_updates(runtime, data)
        keys |= count_epoch_updates(config, made.examples, planned.examples)
    if files.evaluation is not None:
        made = make_features(config, files.evaluation, training=False, labelled=True, tell=runtime.log)
        data = runtime.task.open(config, made.directory)
        _log_labels(runtime, files.evaluation, data)
        lengths.append(find_longest_feature(data))
        keys |= {"eval_data": made.directory, "task_eval_file": files.evaluation}
    predicted = None
    if given.do_predict and files.prediction is not None:
        made = make_features(config, files.prediction, training=False, labelled=False, tell=runtime.log)
        lengths.append(find_longest_feature(runtime.task.open(config, made.directory)))
        predicted = made.directory
        keys["task_predict_file"] = files.prediction
    for warning in find_length_warnings("the features", max(lengths, default=0), source, checkpoint.longest):
        runtime.log(f"warning: {warning}")
    return override_stored_settings(config, shape.as_json()), keys, predicted


def _find_file_settings(runtime: Runtime, files: TaskFiles, checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the settings that follow from the task's files and the checkpoint, for example the labels.

    A resumed run takes the head (output layer) of its own newest checkpoint, not that of the model from which
    it started.
    """
    config, given, trains = runtime.config, runtime.config.finetuning, runtime.config.run.do_train
    resumed = find_resumed_checkpoint(config) if trains else None
    if resumed is not None:
        checkpoint = open_checkpoint(str(resumed), with_moments=False)
    if given.new_head and not trains:
        raise SettingsError("new_head: only training draws a head, and do_train is false")
    is_new = given.new_head and resumed is None
    return find_task_data(config.task).check_files(
        given,
        CheckedFiles(
            train=files.train,
            evaluation=files.evaluation,
            tell=runtime.log,
            trains=trains,
            head=None if is_new else checkpoint.head_labels,
            resumes=resumed is not None,
        ),
    )


def _log_labels(runtime: Runtime, path: str, data: OpenedDataset) -> None:
    """Log how often each label occurs in the features that were made from a file.

    path: path of the file.
    data: the features (a dataset of token ids and labels).
    """
    for line in find_task_data(runtime.config.task).tell(runtime.config.finetuning, data):
        runtime.log(f"{path}: {line}")


def _find_model_path(config: Config) -> str:
    """Return the path of the checkpoint that determines model and tokeniser.

    This is start_from_ckpt if it is set, otherwise the newest checkpoint in output_dir.
    """
    run, start = config.run, config.start
    there = bool(find_checkpoints(str(run.output_dir)))
    own = str(run.output_dir)
    # take the checkpoint of resume_step, because the newest one may be damaged
    if start.resume_step is not None and there:
        own = str(choose_checkpoint(own, start.resume_step))
    if start.start_from_ckpt is not None:
        resumes = there and (start.resume or start.resume_step is not None)
        if resumes and not is_checkpoint(start.start_from_ckpt):
            # a resumed run takes its own checkpoint and no longer needs the model from which it started
            return own
        return find_pretrained(start.start_from_ckpt)
    if there:
        return own
    raise SettingsError("start_from_ckpt is missing: fine-tuning starts from a pre-trained model")


def count_epoch_updates(config: Config, examples: int, update_examples: int) -> dict[str, Any]:
    """Return the settings that follow from the configured epochs: the number of updates and, unless set,
    eval_every.

    The default for eval_every is one epoch.
    examples: number of examples in the training data.
    update_examples: number of examples per update, over all workers.
    Raises SettingsError if the warm-up has more updates than the training.
    """
    epochs = config.schedule.num_train_epochs
    if epochs is None:
        return {}
    step, trained = find_progress(config) if config.start.is_continued else (0, 0)
    # All earlier updates had the size that the current settings give, so the run ends after as many updates
    # as it planned when it first started.
    if trained == step * update_examples:
        step, trained = 0, 0
    steps = config.schedule.updates_of(epochs, examples, update_examples, step=step, trained=trained)
    config.find_warmup(steps)
    keys: dict[str, Any] = {"steps": steps}
    if config.evaluation.eval_every is None:
        keys["eval_every"] = max(1, round(examples / update_examples))
    return keys


def _write_predictions(runtime: Runtime, shape: ModelConfig, features: str) -> None:
    """Write predictions for the task's file without answers, by a checkpoint of the run or start_from_ckpt.

    After training, it is the checkpoint of the best evaluation with keep_best, else the newest.

    The predictions are written to the folder ``predict`` in output_dir.
    shape: settings of the model.
    features: path of the features (a dataset of token ids) made from the file.
    """
    config = runtime.config
    output_dir, start = str(config.run.output_dir), config.start
    path = start.start_from_ckpt
    if path is None or config.run.do_train:
        # A run that has trained has gone on from resume_step, and does not predict with that checkpoint.
        number = None if config.run.do_train else start.resume_step
        path = runtime.on_rank_0(lambda: choose_result(runtime, output_dir, number))
    data = runtime.task.open(config, features, shape.vocab_size)
    runtime = place_model(runtime, shape, data.layout.max_seq_length)
    model = make_model(runtime, shape)
    inference = find_inference(runtime.worker(model))
    load_weights(runtime, model, inference, path)
    folder = storage.join(output_dir, "predict")
    assert isinstance(runtime.task, FineTuning)
    prediction = Evaluation(runtime, data, runtime.task.prediction(data), folder)
    prediction.measure(inference, step=0, trained=0)
    runtime.log(f"predictions by {path}: {folder}")
