"""Set-up for training and evaluation: the device, the connection to the other workers, and the model."""

import os
from collections.abc import Mapping
from typing import Any

import torch

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples.groups import SEGMENT, has_group
from bertdata.examples.objectives import find_objective
from bertdata.io.terminal import say_error
from trainer.config.model import ModelConfig
from trainer.config.model_kinds import read_model_config
from trainer.config.settings import Config
from trainer.data.opening import check_data_length
from trainer.devices.opening import find_device
from trainer.model.fp8 import convert_linear_layers
from trainer.model.headed import HeadedBert
from trainer.run.agreement import check_same_settings
from trainer.run.strategies import find_strategy_class
from trainer.tasks.choice import find_task
from trainer.update.worker import Runtime, hold_whole_model
from trainer.workers.choice import find_collective
from trainer.workers.launchers import VARIABLES, find_local_rank, find_rank


def open_runtime(*phases: Config) -> Runtime:
    """Connect this process with the other workers, and return its runtime.

    Also logs the settings that have no effect in this run, and warnings about the model's settings.
    """
    runtime = connect_workers(*phases)
    runtime.log_idle_keys()
    for warning in dict.fromkeys(line for config in phases for line in config.model.warnings()):
        runtime.log(f"warning: {warning}")
    return runtime


def connect_workers(*phases: Config) -> Runtime:
    """Connect this process with the other workers, and return its runtime.

    The runtime has the configuration of the first phase, in which the name of the chosen device replaces
    "auto". Ends all workers if their settings differ.
    """
    config = phases[0]
    if config.run.device == "auto":
        from trainer.run.chosen_device import open_chosen_device

        device = open_chosen_device(config)
    else:
        device = find_device(config, find_local_rank())
    rank, size = find_rank()
    config = device.config
    torch.use_deterministic_algorithms(config.run.deterministic)
    if rank == 0 and size > 1:
        say_error(f"trainer: connecting {size} workers")
    workers = find_collective(config.workers.collective, device)
    task = find_task(config.task, config, device.row_losses)
    runtime = Runtime(
        config=config, device=device, collective=workers, model_share=hold_whole_model(workers), task=task
    )
    check_same_settings(runtime, phases)
    # The number of workers is known only now. Compare it with the number that the user asked for.
    if (wanted := config.workers.world_size or workers.size) != workers.size:
        remedy = "start as many workers, or, without a launcher, give --dist"
        if config.workers.dist:  # a launcher started this process, so --dist had no effect
            variables = ", ".join(name for name in VARIABLES.get(workers.name, ()) if os.environ.get(name))
            remedy = (
                f"{variables or 'variables'} are set as by a launcher, so --dist does nothing: unset them"
            )
        runtime.stop_all(SettingsError(f"world_size is {wanted}, found {workers.size}: {remedy}"))
    return runtime


def find_model_config(
    config: Config, data: OpenedDataset, given: Mapping[str, Any] | None = None
) -> ModelConfig:
    """Return the configuration of the model for these data.

    The vocabulary size is the dataset's, unless the settings have one.
    given: settings of the model, or None for the configured ones.
    Raises SettingsError if the data have pairs of segments and the model has only one segment type, or if
    sequences are longer than the model's positions.
    """
    settings = {"vocab_size": data.vocabulary_size, **(config.model_settings if given is None else given)}
    if settings["vocab_size"] is None:
        raise SettingsError(
            f"vocab_size is missing: {data.name} has no manifest with the vocabulary's size; give "
            "--vocab-size"
        )
    shape = read_model_config(settings, config.model.model_config or "model")
    has_pairs = has_group(find_objective(data.layout.objective).batch_type, SEGMENT)
    if shape.type_vocab_size < 2 and has_pairs and not config.is_finetuning:
        raise SettingsError(f"type_vocab_size is 1, but the examples of {data.name} have two segments")
    check_data_length(data, shape.max_position_embeddings)
    return shape


def make_model(runtime: Runtime, shape: ModelConfig) -> HeadedBert:
    """Build the model, or this worker's share of a divided model, with initial weights from the run's
    seed.

    Raises SettingsError for a model that cannot be trained in the configured precision.
    """
    runtime.device.seed(runtime.config.data.seed)
    device, share, keys = runtime.device, runtime.model_share, runtime.device.config.update
    model = runtime.empty_model(shape)
    # Convert layers while the model is whole and has no values. What follows (allocating memory, sharding,
    # compiling) sees only the converted layers.
    if keys.precision == "fp8":
        runtime.log(convert_linear_layers(model, keys.fp8_recipe, keys.fp8_emulation))
    return find_strategy_class(device, share).build(model, device, runtime.collective, share)
