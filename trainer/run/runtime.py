"""The setup that training and evaluation share: device, workers, model."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import torch

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import BertDataError, SettingsError
from bertdata.io.terminal import say_error
from trainer.collectives.collective import Collective, find_collective
from trainer.collectives.launchers import find_local_rank, find_rank
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.at_load import Packing
from trainer.data.batches import Batch
from trainer.data.forms import Form, make_evaluation_form, make_form
from trainer.devices.choice import ChosenDevice, choose_device, on_device
from trainer.devices.device import Device
from trainer.devices.registry import find_device
from trainer.errors import ReportedError
from trainer.model.bert import HeadedBert
from trainer.model.task import Task, find_task
from trainer.registry import find
from trainer.strategies.division import Division, whole
from trainer.strategies.kinds import build_model
from trainer.strategies.strategy import Worker


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
        """Copies of the model over all workers; each computes its own micro-batches."""
        return self.division.copies * self.device.replicas

    def worker(self, model: HeadedBert) -> Worker:
        """Everything that an update of the model is made with."""
        return Worker(
            config=self.config,
            device=self.device,
            workers=self.workers,
            division=self.division,
            task=self.task,
            model=model,
        )

    def empty_model(self, shape: ModelConfig) -> HeadedBert:
        """The whole model without values, on the meta device."""
        with torch.device("meta"):
            return self.task.new_model(shape)

    @property
    def packing(self) -> Packing | None:
        """The configured packing at load."""
        keys = self.config.data
        if not keys.pack_on_load:
            return None
        make = find("rows", "packed at load")
        packing: Packing = make(window=keys.pack_window, sequences_per_row=keys.sequences_per_row)
        return packing

    def check_rows(self, data: OpenedDataset) -> None:
        """SettingsError where packing at load is configured and the training data are packed already."""
        if self.packing is not None:
            self.packing.layout(data)
        if self.config.data.bins is not None:
            find("rows", "fit for length bins")(data)
            if self.device.strategy == "whole_updates":
                raise SettingsError(f"bins make rows of several widths; device {self.device.name} takes one")

    @property
    def has_rows(self) -> bool:
        """True if batches are rows: the device needs them, or the configuration says so; else flat."""
        return self.config.data.rows or self.device.needs_rows

    def form(self, data: OpenedDataset, batch_size: int, micro_batches: int) -> Form[Batch]:
        """The form of the training's batches of so many rows of the order.

        micro_batches: those of an update over all workers, to which its rows are dealt.
        """
        return make_form(
            data,
            batch_size=batch_size,
            rows=self.has_rows,
            token_budget=self.config.data.token_budget,
            micro_batches=micro_batches,
            packing=self.packing,
            bins=self.config.data.bins,
            few_widths=self.device.compiles or self.device.compiles_always or self.device.needs_rows,
        )

    def evaluation_form(self, data: OpenedDataset, batch_size: int) -> Form[Batch]:
        """The form of the evaluation's batches of so many examples."""
        budget = self.config.data.token_budget
        return make_evaluation_form(data, batch_size=batch_size, rows=self.has_rows, token_budget=budget)

    def name_idle_keys(self) -> None:
        """Log the given keys that have no effect here, if there are any."""
        config = self.config
        masking = () if config.finetuning.is_finetuning else config.masking.idle()
        idle_here = (*self.device.idle, *["token_budget"] * self.has_rows, *masking)
        idle_here = (*idle_here, *config.data.idle(), *config.finetuning.idle())
        if idle := config.keys_without_effect(config.run.device, idle_here):
            self.log(f"accepted, without effect on device {config.run.device}: {', '.join(idle)}")

    def changed(self, config: Config) -> "Runtime":
        """The runtime with another configuration, and its task."""
        config = on_device(config, self.device.name)
        return replace(self, config=config, task=find_task(config, self.device.row_losses))

    def log(self, message: str) -> None:
        """One line on standard error, from rank 0."""
        if self.workers.rank == 0:
            say_error(f"trainer: {message}")

    def share(self, work: Callable[[], Any]) -> Any:
        """The result of the work, done on rank 0 alone and sent as JSON; its error ends all workers."""
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
        """End all workers; each must call this. Rank 0 prints the error, which only it needs to know."""
        if error and self.workers.size == 1:
            raise error
        status = self.workers.broadcast_object(error and error.exit_status)
        self.log(f"error: {error}")
        self.workers.barrier()  # once one worker has ended, the launcher ends the others
        raise ReportedError(status)


def begin(config: Config) -> Runtime:
    """The runtime of this process, connected with the other workers; names keys without effect."""
    runtime = connect(config)
    runtime.name_idle_keys()
    return runtime


def connect(config: Config) -> Runtime:
    """The runtime of this process, connected with the other workers; its configuration names the device."""
    chosen = choose_device(config)
    device = find_device(on_device(config, chosen.name), find_local_rank())
    rank, size = find_rank()
    if rank == 0 and config.run.device != device.name:
        say_error(f"trainer: device auto: {_described(chosen, device)}")
    config = device.config
    torch.use_deterministic_algorithms(config.run.deterministic)
    if rank == 0 and size > 1:
        say_error(f"trainer: connecting {size} workers")
    workers = find_collective(config.run.collective, device)
    task = find_task(config, device.row_losses)
    runtime = Runtime(config=config, device=device, workers=workers, division=whole(workers), task=task)
    if (wanted := config.run.world_size or workers.size) != workers.size:
        found = f"world_size is {wanted}, found {workers.size}"
        runtime.stop_all(
            SettingsError(f"{found}: start as many workers, or, without a launcher, give --dist")
        )
    return runtime


def _described(chosen: ChosenDevice, device: Device) -> str:
    """The choice in words: why it is the processor, or the accelerator's own description."""
    if chosen.reason:
        return f"{chosen.name}, since {chosen.reason}"
    name, _, about = device.describe().partition(": ")
    return f"{name} ({about})"


def find_model_config(
    config: Config, data: OpenedDataset, start: dict[str, Any] | None = None
) -> ModelConfig:
    """The configured model's shape; its vocabulary is the dataset's unless given.

    start: the model of the checkpoint to start from, for keys that are not given. Of a file's hidden_act
    its form is taken, since ``gelu`` in a bert_config.json is another than in a config.json.
    """
    start = dict(start or {})
    given = config.model.settings()
    if config.model.hidden_act is None and "hidden_act" in start:
        given.pop("hidden_act", None)
    if data.vocabulary_size is not None:
        start.pop("vocab_size", None)
    settings = {"vocab_size": data.vocabulary_size} | start | given
    if settings["vocab_size"] is None:
        raise SettingsError(
            f"vocab_size is missing: {data.name} has no manifest with the vocabulary's size; "
            "give --vocab-size"
        )
    return ModelConfig.from_dict(settings, config.model.model_config or "model")


def make_model(runtime: Runtime, shape: ModelConfig) -> HeadedBert:
    """The model on the device, with random weights from the seed; of a split model this worker's part."""
    runtime.device.seed(runtime.config.data.seed)
    return build_model(runtime.empty_model(shape), runtime.device, runtime.workers, runtime.division)


@contextmanager
def profiled(runtime: Runtime, calls: int) -> Iterator[Callable[[], None]]:
    """A function to call after each of ``calls`` updates; with --profile it records four of them.

    The recorded updates follow the first four, or the first half of a shorter run. The trace is written
    to output_dir.
    """
    config = runtime.config
    activities = runtime.device.profile_activities()
    if not config.run.profile or runtime.workers.rank != 0:
        yield lambda: None
        return
    idle = max(1, min(4, calls // 2))
    path = f"{config.run.output_dir}/profile{'_phase2' * config.run.phase2}.json"

    def write(finished: torch.profiler.profile) -> None:
        finished.export_chrome_trace(path)
        runtime.log(f"profile: {path}; https://ui.perfetto.dev or chrome://tracing shows it")

    schedule = torch.profiler.schedule(wait=idle // 2, warmup=idle - idle // 2, active=4, repeat=1)
    with torch.profiler.profile(activities=activities, schedule=schedule, on_trace_ready=write) as profile:
        yield profile.step
