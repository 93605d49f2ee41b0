"""Fine-tuning: features are made once, then the loop of pre-training learns the task from them."""

import math
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.run.checkpoint import choose_checkpoint, find_checkpoints
from trainer.run.checkpoint_source import open_checkpoint, read_weights_into
from trainer.run.evaluate import Evaluation, evaluate_checkpoints
from trainer.run.phase import train_phase
from trainer.run.pretrain import lock_outputs
from trainer.run.runtime import Runtime, begin, make_model
from trainer.run.task_files import find_files, find_labels, make_features
from trainer.run.tokenizer import find_tokenizer
from trainer.strategies.registry import find_inference
from trainer.tasks.registry import find_task

_PREDICTED = "predict"
"""The folder of output_dir for predictions of a file without answers."""


def finetune(config: Config) -> None:
    """Train the configured task from a checkpoint, evaluate it, and predict.

    The output directory has all that a run of pre-training has, the task's predictions and, in
    ``features/``, the datasets that training and evaluation read.
    """
    if not config.finetuning.is_finetuning:
        raise SettingsError("task is missing: give --task squad, or a classification by its name")
    config.require("output_dir")
    runtime = begin(config)
    with ExitStack() as locks:
        runtime.share(lambda: lock_outputs([config], locks))
        shape, keys, predicted = runtime.share(lambda: _prepare(runtime))
        config = config.changed(**keys)
        runtime = replace(runtime, config=config, task=find_task(config, runtime.device))
        model_shape = ModelConfig.from_dict(shape)
        if config.run.do_train:
            data = runtime.task.open(config, config.data.train_data, model_shape.vocab_size)
            training = train_phase(runtime, data, model_shape)
            finished = training.is_over
        else:
            finished = True
            if config.data.eval_data is not None:
                evaluate_checkpoints(runtime)
        if predicted is not None and finished:
            _predict(runtime, model_shape, predicted)
    runtime.workers.close()


def _prepare(runtime: Runtime) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """Model shape, changed keys of the configuration, features to predict; done on rank 0.

    The shape is the checkpoint's but for the keys that are configured.
    """
    config = runtime.config
    source = _source(config)
    checkpoint = open_checkpoint(source, model_config=config.model.model_config, with_moments=False)
    shape = checkpoint.expect_config()
    found = find_tokenizer(checkpoint, shape, config.masking.vocab, None, config.finetuning.lower_case)
    if found is None:
        raise MissingInputError(f"{source}: its vocabulary is not at hand; give --vocab")
    vocabulary, lower_case = found
    files = find_files(config)
    keys: dict[str, Any] = {"vocab": vocabulary.name, "lower_case": lower_case}
    config = config.changed(**keys)
    keys["labels"] = find_labels(config, files)
    config = config.changed(**keys)
    if files.train is not None and config.run.do_train:
        made = make_features(config, files.train, training=True, labelled=True, tell=runtime.log)
        keys["train_data"] = made.directory
        examples = sum(shard.examples for shard in made.manifest.shards)
        keys |= _schedule(config, examples, config.update.examples(runtime.copies))
    if files.evaluation is not None:
        made = make_features(config, files.evaluation, training=False, labelled=True, tell=runtime.log)
        keys |= {"eval_data": made.directory, "task_eval_file": files.evaluation}
    predicted = None
    if config.finetuning.do_predict and files.prediction is not None:
        made = make_features(config, files.prediction, training=False, labelled=False, tell=runtime.log)
        predicted = made.directory
        keys["task_predict_file"] = files.prediction
    return {**shape.as_json(), **config.model.settings()}, keys, predicted


def _source(config: Config) -> str:
    """The checkpoint that tells model and tokeniser: the given one, or the run's own newest."""
    if config.run.start_from_ckpt is not None:
        return config.run.start_from_ckpt
    if find_checkpoints(str(config.run.output_dir)):
        return str(config.run.output_dir)
    raise SettingsError("start_from_ckpt is missing: fine-tuning starts from a pre-trained model")


def _schedule(config: Config, examples: int, update_examples: int) -> dict[str, Any]:
    """The number of updates of the epochs asked for; an evaluation after each unless said otherwise."""
    epochs = config.finetuning.num_train_epochs
    if epochs is None:
        return {}
    each = max(1, round(examples / update_examples))
    keys: dict[str, Any] = {"steps": max(1, math.ceil(examples * epochs / update_examples))}
    if config.run.eval_every is None:
        keys["eval_every"] = each
    return keys


def _predict(runtime: Runtime, shape: ModelConfig, features: str) -> None:
    """Write the predictions of the file without answers, by the newest checkpoint or the given one."""
    config = runtime.config
    output_dir = str(config.run.output_dir)

    def choose() -> str:
        if config.run.start_from_ckpt is not None and not config.run.do_train:
            return config.run.start_from_ckpt
        return str(choose_checkpoint(output_dir, config.run.resume_step))

    path = runtime.share(choose)
    data = runtime.task.open(config, features, shape.vocab_size)
    model = make_model(runtime, shape)
    runtime.share(lambda: read_weights_into(model, path))
    runtime.workers.broadcast(model.state_dict().values())
    folder = storage.join(output_dir, _PREDICTED)
    prediction = Evaluation(runtime, data, runtime.task.prediction(data), folder)
    prediction.measure(find_inference(runtime.worker(model)), step=0, trained=0)
    runtime.log(f"predictions by {path}: {folder}")
