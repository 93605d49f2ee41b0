"""What training and evaluation both begin with: device, workers, data, model."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch

from bertdata.dataset.reader import Data, open_data
from bertdata.errors import BertDataError, SettingsError
from bertdata.records import ShardLayout
from trainer.checkpoint import STATE, read_state, read_tensors
from trainer.collectives import Collective, find_collective
from trainer.config import Config
from trainer.data.generated import generated_data
from trainer.devices import Device, find_device
from trainer.errors import ReportedError
from trainer.huggingface import import_weights
from trainer.model import BertForPreTraining, ModelConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class Runtime:
    """One worker: its configuration, its processor, and its way to the others."""

    config: Config
    device: Device
    workers: Collective

    @property
    def copies(self) -> int:
        """Copies of the model over all workers, each of which computes micro-batches of its own."""
        return self.workers.size * self.device.replicas

    def say(self, message: str) -> None:
        """One line on standard error, from rank 0."""
        if self.workers.rank == 0:
            sys.stderr.write(f"trainer: {message}\n")  # at one go: other programs write there too
            sys.stderr.flush()

    def share(self, work: Callable[[], Any]) -> Any:
        """What the work returns on rank 0, which alone does it, as JSON can say it; its error ends all."""
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
        """End all workers, each of which calls this, when rank 0, which knows the error, has said why."""
        if error and self.workers.size == 1:
            raise error
        status = self.workers.broadcast_object(error and error.exit_status)
        self.say(f"error: {error}")
        self.workers.barrier()  # the first worker to end has the launcher end the others
        raise ReportedError(status)


def begin(config: Config) -> Runtime:
    """The worker that this process is, joined with the others."""
    device = find_device(config)
    torch.use_deterministic_algorithms(config.deterministic)
    workers = find_collective(config.collective, device)
    runtime = Runtime(config=config, device=device, workers=workers)
    if (wanted := config.world_size or workers.size) != workers.size:
        found = f"world_size is {wanted}, found {workers.size}"
        runtime.stop_all(
            SettingsError(f"{found}: start as many workers, or, without a launcher, give --dist")
        )
    if idle := config.without_meaning(config.device, device.idle):
        runtime.say(f"accepted, without meaning on device {config.device}: {', '.join(idle)}")
    return runtime


def open_dataset(config: Config, paths: str | None, vocabulary_size: int | None = None) -> Data:
    """The dataset at the paths (separated by commas), checked against configuration and model."""
    model = config.model_settings()
    tokens = model.get("vocab_size", vocabulary_size)
    length, masks = config.max_seq_length, config.max_predictions_per_seq
    if paths is None:
        layout = ShardLayout(max_seq_length=length or 128, max_predictions_per_seq=masks or 20)
        return generated_data(layout, vocabulary_size=tokens or ModelConfig().vocab_size, seed=config.seed)
    return open_data(
        paths.split(","),
        unverified=config.unverified,
        max_seq_length=length,
        max_predictions_per_seq=masks,
        max_position_embeddings=model.get("max_position_embeddings", ModelConfig().max_position_embeddings),
        vocabulary_size=tokens,
    )


def find_model_config(config: Config, data: Data) -> ModelConfig:
    """The model that the configuration describes; its vocabulary is the dataset's unless given."""
    settings = {"vocab_size": data.vocabulary_size} | config.model_settings()
    if settings["vocab_size"] is None:
        raise SettingsError(f"vocab_size is missing: {data.name} has no manifest that says it")
    return ModelConfig.from_dict(settings, config.model_config or "model")


def make_model(runtime: Runtime, shape: ModelConfig) -> BertForPreTraining:
    """The model on the device, with weights from the seed."""
    runtime.device.seed(runtime.config.seed)
    return runtime.device.place(BertForPreTraining(shape))


def read_weights_into(model: BertForPreTraining, path: str) -> None:
    """Fill the model from one of our checkpoints, or from anything in Hugging Face or PyTorch form."""
    if (Path(path) / STATE).is_file():
        read_tensors(Path(path), read_state(Path(path)))  # each byte is held against its md5
    import_weights(model, path)


@contextmanager
def profiled(runtime: Runtime, calls: int) -> Iterator[Callable[[], None]]:
    """To be called after each of so many updates; four are recorded in output_dir if that is wanted.

    They come after four others, which still settle, or, in a shorter run, after half of it.
    """
    config, activities = runtime.config, runtime.device.profile_activities()
    if not config.profile or runtime.workers.rank != 0:
        yield lambda: None
        return
    idle = max(1, min(4, calls // 2))
    place = f"{config.output_dir}/profile{'_phase2' * config.phase2}.json"

    def write(made: torch.profiler.profile) -> None:
        made.export_chrome_trace(place)
        runtime.say(f"profile: {place}; https://ui.perfetto.dev or chrome://tracing shows it")

    schedule = torch.profiler.schedule(wait=idle // 2, warmup=idle - idle // 2, active=4, repeat=1)
    with torch.profiler.profile(activities=activities, schedule=schedule, on_trace_ready=write) as profile:
        yield profile.step
