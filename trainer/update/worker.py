"""A worker, which has a configuration, a device, a connection to other workers, a part of
the model, and a task.

``Runtime`` has all of these before there is a model. ``Worker`` has the model too.
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
from trainer.logs.reporter import Logger
from trainer.model.headed import HeadedBert
from trainer.remote.remote_run import RemoteRun
from trainer.tasks.choice import find_data_task, find_task
from trainer.tasks.task import Task
from trainer.update.row_norms import has_row_norms
from trainer.workers.collective import Collective

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelShare:
    """The part of the model that this worker holds: stage ``stage`` of copy ``copy``.

    Each copy of the model gets different examples. The stages of a copy process the same examples one after
    the other. A model that is not divided has one stage.
    copies: number of copies of the model.
    stages: number of stages of each copy.
    strategy: strategy of the plan that divides the model, or None without a plan.
    recomputes: whether this worker's layers compute their activations again in the backward
        pass, to save memory.
    """

    copy: int
    copies: int
    stage: int = 0
    stages: int = 1
    strategy: str | None = None
    recomputes: bool = False

    @property
    def is_split(self) -> bool:
        """True if the model is divided, so that no worker holds the whole model."""
        return self.strategy not in (None, "replicated")

    @property
    def is_last_stage(self) -> bool:
        """True if this worker has the model's last stage, which has the heads and computes the results."""
        return self.stage == self.stages - 1


def hold_whole_model(workers: Collective) -> ModelShare:
    """Return the share of a worker that holds the whole model. There is one copy per worker."""
    return ModelShare(copy=workers.rank, copies=workers.size)


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker:
    """Everything that a worker needs to make an update. The model is on the device.

    remote: the run's URLs, or None if all its directories are local.
    """

    config: Config
    device: Device
    collective: Collective
    model_share: ModelShare
    task: Task
    model: HeadedBert
    remote: RemoteRun | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Runtime:
    """A worker before its model is built.

    Its methods do work on some or all workers, and end all workers if one of them fails.
    remote: the run's URLs, or None if all its directories are local.
    loggers: further logs, which the caller of the run has made and which get everything that is logged. Only
        those of rank 0 are called.
    call: the call of a Python function that started the run, as text. None: a command line started it.
    task_vocab: the tokeniser that ``finetune --vocab`` named. The configuration has the path of its file
        instead, also without the flag. None: not given, or the run is no fine-tuning.
    """

    config: Config
    device: Device
    collective: Collective
    model_share: ModelShare
    task: Task
    remote: RemoteRun | None = None
    loggers: tuple[Logger, ...] = ()
    call: str | None = None
    task_vocab: str | None = None

    @property
    def copies(self) -> int:
        """Number of copies of the model over all workers. Each copy computes different micro-batches."""
        return self.model_share.copies * self.device.replicas

    def worker(self, model: HeadedBert) -> Worker:
        """Return a ``Worker`` with this model and everything that this runtime has."""
        shared = {item.name for item in fields(Worker)} - {"model"}
        return Worker(**{name: getattr(self, name) for name in shared}, model=model)

    def empty_model(self, shape: ModelConfig) -> HeadedBert:
        """Return the whole model on the meta device, that is, without values."""
        attention = self.device.attention_for(shape)
        with torch.device("meta"):
            return self.task.new_model(shape, attention)

    @property
    def has_rows(self) -> bool:
        """True if batches are padded rows, False if they are flat (all sequences one after the
        other, without padding).
        """
        return bool(self.config.loading.rows or self.device.needs_rows)

    def log_idle_keys(self) -> None:
        """Log the configured settings that have no effect in this run."""
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
        """Return a copy of the runtime with another configuration and the task of that configuration.

        data: datasets that determine the task of pre-training.
        """
        config = set_device(config, self.device.name)
        name = find_data_task(data) if data else config.task
        return replace(self, config=config, task=find_task(name, config, self.device.row_losses))

    def log(self, message: str) -> None:
        """Print a line on standard error, on the worker with rank 0 only."""
        if self.collective.rank == 0:
            say_error(f"trainer: {self.remote.name_urls(message) if self.remote else message}")

    def record_config(self) -> dict[str, Any]:
        """Return the configuration as a checkpoint stores it: with URLs, not with this machine's copies."""
        recorded = self.config.as_json()
        return recorded if self.remote is None else self.remote.name_urls_of_keys(recorded)

    def on_rank_0(self, work: Callable[[], Any]) -> Any:
        """Call a function on rank 0 only, and return its result on every worker.

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
        """Call a function on every worker, and return the result of this worker's call.

        An error on any worker ends all workers. Rank 0 prints the error of the first worker that failed. It
        adds that worker's rank, unless all workers have the same error.
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
        """Call a function on the first worker of each machine, and return its result there.

        Other workers return None.
        """
        return self.on_every_worker(lambda: work() if self.collective.local_rank == 0 else None)

    def stop_all(self, error: BertDataError | None) -> NoReturn:
        """End all workers. Each of them must call this.

        error: the error that rank 0 prints. Other workers may pass None.
        """
        if error and self.collective.size == 1:
            raise error
        status = self.collective.broadcast_object(error and error.exit_status)
        self.log(f"error: {error}")
        # Wait until all workers have come here, because the launcher kills the others as soon as one ends.
        self.collective.barrier()
        raise ReportedError(status)
