"""A worker without its model: what training and evaluation share."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

import torch

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import BertDataError
from bertdata.io.terminal import say_error
from trainer.config.idle import idle_keys
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.devices.choice import on_device
from trainer.devices.device import Device
from trainer.errors import ReportedError
from trainer.model.headed import HeadedBert
from trainer.tasks.choice import find_task, task_of
from trainer.tasks.task import Task
from trainer.update.strategy import Division, Worker
from trainer.workers.collective import Collective


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
        return bool(self.config.loading.rows or self.device.needs_rows)

    def name_idle_keys(self) -> None:
        """Log the given keys that have no effect here, if there are any."""
        config, idle_here = self.config, [*self.device.idle]
        if self.has_rows:
            idle_here.append("token_budget")
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
