"""A worker: its configuration, device, connection to the other workers, part of the model, and task.

``Runtime`` has all of these before there is a model. ``Worker`` is the same with the model.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn, TypeVar

import torch

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import BertDataError
from bertdata.io.terminal import say_error
from trainer.config.idle import find_idle_keys
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.devices.opening import set_device
from trainer.errors import ReportedError
from trainer.model.headed import HeadedBert
from trainer.tasks.choice import find_data_task, find_task
from trainer.tasks.task import Task
from trainer.update.row_norms import has_row_norms
from trainer.workers.collective import Collective

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelShare:
    """The share of the model that this worker holds: stage ``stage`` of copy ``copy``.

    Each copy of the model gets other examples. The stages of a copy process the same examples one after the
    other. An undivided model has one stage.
    strategy: strategy of the plan that divides the model, or None without a plan.
    recomputes: this worker's layers compute their activations again in the backward pass, to save memory.
    """

    copy: int
    copies: int
    stage: int = 0
    stages: int = 1
    strategy: str | None = None
    recomputes: bool = False

    @property
    def is_split(self) -> bool:
        """True if no worker holds the whole model."""
        return self.strategy not in (None, "replicated")

    @property
    def is_last_stage(self) -> bool:
        """True if this worker has the last stage of the model, which contains the heads and computes the
        results.
        """
        return self.stage == self.stages - 1


def hold_whole_model(workers: Collective) -> ModelShare:
    """Return the share of a worker that holds a whole copy of the model."""
    return ModelShare(copy=workers.rank, copies=workers.size)


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker:
    """Everything that a worker needs to make an update, with the model on the device."""

    config: Config
    device: Device
    collective: Collective
    model_share: ModelShare
    task: Task
    model: HeadedBert


@dataclass(frozen=True, kw_only=True, slots=True)
class Runtime:
    """A worker before its model is built. Its methods do work on some or all workers, and end all workers if
    one fails.
    """

    config: Config
    device: Device
    collective: Collective
    model_share: ModelShare
    task: Task

    @property
    def copies(self) -> int:
        """Number of copies of the model over all workers. Each computes different micro-batches."""
        return self.model_share.copies * self.device.replicas

    def worker(self, model: HeadedBert) -> Worker:
        """Return a ``Worker`` that has everything of this runtime and the model."""
        return Worker(**{item.name: getattr(self, item.name) for item in fields(self)}, model=model)

    def empty_model(self, shape: ModelConfig) -> HeadedBert:
        """Return the whole model without values, on the meta device."""
        attention = self.device.attention_for(shape)
        with torch.device("meta"):
            return self.task.new_model(shape, attention)

    @property
    def has_rows(self) -> bool:
        """True if batches are padded rows, False if they are flat (all sequences end to end in one row)."""
        return bool(self.config.loading.rows or self.device.needs_rows)

    def log_idle_keys(self) -> None:
        """Log the configured settings that have no effect here."""
        config, idle_here = self.config, [*self.device.idle]
        if config.update.clipping_norm != "whole" and not has_row_norms(
            config, self.device, self.collective.size
        ):
            idle_here.append("clipping_norm")
        if self.has_rows:
            idle_here.append("token_budget")
        if idle := find_idle_keys(config, config.run.device, idle_here):
            self.log(f"accepted, without effect on device {config.run.device}: {', '.join(idle)}")

    def changed(self, config: Config, *data: OpenedDataset) -> "Runtime":
        """Return the runtime with another configuration and its task.

        data: datasets that determine the task of pre-training.
        """
        config = set_device(config, self.device.name)
        name = find_data_task(data) if data else config.task
        return replace(self, config=config, task=find_task(name, config, self.device.row_losses))

    def log(self, message: str) -> None:
        """Print a line on standard error, from rank 0."""
        if self.collective.rank == 0:
            say_error(f"trainer: {message}")

    def on_rank_0(self, work: Callable[[], Any]) -> Any:
        """Do the work on rank 0 only, and return its result on every worker.

        The result is sent as JSON. An error on rank 0 ends all workers.
        """
        result, failure = None, None
        if self.collective.rank == 0:
            try:
                result = work()
            except BertDataError as error:
                failure = error
        failed, result = self.collective.broadcast_object([failure is not None, result])
        if failed:
            self.stop_all(failure)
        return result

    def on_every_worker(self, work: Callable[[], Result]) -> Result:
        """Do the work on every worker and return this worker's result.

        An error on any worker ends all of them.
        Rank 0 prints the error of the first failed worker, with its rank unless all workers have the same
        error.
        """
        results, failure = list[Result](), None
        try:
            results.append(work())
        except BertDataError as error:
            failure = error
        if failure is not None and self.collective.size == 1:
            raise failure
        found = self.collective.gather(failure and [str(failure), failure.exit_status])
        rank = next((rank for rank, fault in enumerate(found) if fault is not None), None)
        if rank is not None:
            message, status = found[rank]
            is_everywhere = all(fault == found[rank] for fault in found)
            told = BertDataError(message if is_everywhere else f"worker {rank}: {message}")
            told.exit_status = status
            self.stop_all(told)
        return results[0]

    def on_machines(self, work: Callable[[], Result]) -> Result | None:
        """Do the work on the first worker of each machine.

        Return its result there, and None on the other workers.
        """
        return self.on_every_worker(lambda: work() if self.collective.local_rank == 0 else None)

    def stop_all(self, error: BertDataError | None) -> NoReturn:
        """End all workers. Each of them must call this. Rank 0 prints the error, so only rank 0 needs it."""
        if error and self.collective.size == 1:
            raise error
        status = self.collective.broadcast_object(error and error.exit_status)
        self.log(f"error: {error}")
        # when one worker ends, the launcher kills the others, so wait until all have come here
        self.collective.barrier()
        raise ReportedError(status)
