"""The setup that training and evaluation share: device, workers, model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

import torch

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import BertDataError, SettingsError
from bertdata.examples.groups import SEGMENT, has_group
from bertdata.examples.objectives import find_objective
from bertdata.io.terminal import say_error
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.devices.device import Device, find_device, on_device
from trainer.errors import ReportedError
from trainer.model.bert import HeadedBert
from trainer.plugins import find
from trainer.tasks.task import Task, find_task, task_of
from trainer.update.strategy import Division, Worker, find_kind, whole
from trainer.workers.collective import Collective, find_collective
from trainer.workers.launchers import find_local_rank, find_rank


@dataclass(frozen=True, kw_only=True, slots=True)
class Runtime:
    """One worker: its configuration, its device, the collective of all workers, its place, the task."""

    config: Config
    device: Device
    workers: Collective
    division: Division
    task: Task

    @property
    def copies(self) -> int:
        """Copies of the model over all workers. Each computes its own micro-batches."""
        return self.division.copies * self.device.replicas

    def worker(self, model: HeadedBert) -> Worker:
        """Everything that an update of the model is made with."""
        return Worker(**{item.name: getattr(self, item.name) for item in fields(self)}, model=model)

    def empty_model(self, shape: ModelConfig) -> HeadedBert:
        """The whole model without values, on the meta device."""
        with torch.device("meta"):
            return self.task.new_model(shape)

    @property
    def has_rows(self) -> bool:
        """True if batches are rows, as the device or the configuration says. False: they are flat."""
        return bool(self.config.keys["rows"] or self.device.needs_rows)

    def name_idle_keys(self) -> None:
        """Log the given keys that have no effect here, if there are any."""
        config, idle_here = self.config, (*self.device.idle, *["token_budget"] * self.has_rows)
        if config.others or idle_here or config.data.generated_data:
            from trainer.config.idle import idle_keys

            if idle := idle_keys(config, config.run.device, idle_here):
                self.log(f"accepted, without effect on device {config.run.device}: {', '.join(idle)}")

    def changed(self, config: Config, *data: OpenedDataset) -> "Runtime":
        """The runtime with another configuration and its task, or that of pre-training on the data."""
        config = on_device(config, self.device.name)
        name = task_of(data) if data else config.task
        return replace(self, config=config, task=find_task(name, config, self.device.row_losses))

    def log(self, message: str) -> None:
        """One line on standard error, from rank 0."""
        if self.workers.rank == 0:
            say_error(f"trainer: {message}")

    def on_rank_0(self, work: Callable[[], Any]) -> Any:
        """The result of the work, done on rank 0 alone and sent as JSON. An error of it ends all workers."""
        result, failure = None, None
        if self.workers.rank == 0:
            try:
                result = work()
            except BertDataError as error:
                failure = error
        failed, result = self.workers.broadcast_object([failure is not None, result])
        if failed:
            self.stop_all(failure)
        return result

    def stop_all(self, error: BertDataError | None) -> NoReturn:
        """End all workers, each of which must call this. Rank 0 prints the error, which only it needs."""
        if error and self.workers.size == 1:
            raise error
        status = self.workers.broadcast_object(error and error.exit_status)
        self.log(f"error: {error}")
        self.workers.barrier()  # once one worker has ended, the launcher ends the others
        raise ReportedError(status)


def begin(config: Config) -> Runtime:
    """The runtime of this process, connected with the other workers. Names keys without effect."""
    runtime = connect(config)
    runtime.name_idle_keys()
    return runtime


def connect(config: Config) -> Runtime:
    """The runtime of this process, connected with the other workers. Its configuration names the device."""
    if config.run.device == "auto":
        from trainer.run.chosen_device import find_chosen

        device = find_chosen(config)
    else:
        device = find_device(config, find_local_rank())
    rank, size = find_rank()
    config = device.config
    torch.use_deterministic_algorithms(config.run.deterministic)
    if rank == 0 and size > 1:
        say_error(f"trainer: connecting {size} workers")
    workers = find_collective(config.keys["collective"], device)
    task = find_task(config.task, config, device.row_losses)
    runtime = Runtime(config=config, device=device, workers=workers, division=whole(workers), task=task)
    if (wanted := config.keys["world_size"] or workers.size) != workers.size:
        found = f"world_size is {wanted}, found {workers.size}"
        runtime.stop_all(
            SettingsError(f"{found}: start as many workers, or, without a launcher, give --dist")
        )
    return runtime


def find_model_config(
    config: Config, data: OpenedDataset, given: Mapping[str, Any] | None = None
) -> ModelConfig:
    """The model's shape from the given settings, by default the configured ones.

    The vocabulary is the dataset's unless given. SettingsError for two segments in a model of one.
    """
    settings = {"vocab_size": data.vocabulary_size, **(config.model_settings if given is None else given)}
    if settings["vocab_size"] is None:
        found = f"vocab_size is missing: {data.name} has no manifest with the vocabulary's size"
        raise SettingsError(f"{found}; give --vocab-size")
    shape = ModelConfig.from_dict(settings, config.model.model_config or "model")
    has_pairs = has_group(find_objective(data.layout.objective).batch_type, SEGMENT)
    if shape.type_vocab_size < 2 and has_pairs and not config.is_finetuning:
        raise SettingsError(f"type_vocab_size is 1, but the examples of {data.name} have two segments")
    return shape


def make_model(runtime: Runtime, shape: ModelConfig) -> HeadedBert:
    """The model on the device, with random weights from the seed. Of a split model, this worker's part."""
    runtime.device.seed(runtime.config.data.seed)
    device, division = runtime.device, runtime.division
    return find_kind(device, division).build(runtime.empty_model(shape), device, runtime.workers, division)


def divide(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Runtime:
    """The runtime with this worker's place, and with the plan's micro-batches where there is a plan.

    sequence_length: most tokens of an example. SettingsError where the model cannot be split as configured.
    """
    config = runtime.config
    if runtime.workers.size == 1 and config.run.strategy == "auto" and config.keys["plan"] is None:
        return replace(runtime, division=whole(runtime.workers))
    return find("split model", "place")(runtime, shape, sequence_length)
