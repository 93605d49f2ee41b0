"""What training and evaluation both begin with: device, workers, data, model."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertdata.errors import BertDataError, SettingsError
from bertdata.records import ShardLayout
from trainer.batches import Batch
from trainer.checkpoint import STATE, read_state, read_tensors
from trainer.collectives import Collective, find_collective
from trainer.config import Config
from trainer.data import Data, generated_data, open_data
from trainer.devices import Device, find_device
from trainer.errors import ReportedError
from trainer.huggingface import import_weights
from trainer.losses import Losses, pretraining_loss
from trainer.model import BertForPreTraining, ModelConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class Runtime:
    """One worker: its configuration, its processor, and its way to the others."""

    config: Config
    device: Device
    workers: Collective

    def say(self, message: str) -> None:
        """One line on standard error, from rank 0."""
        if self.workers.rank == 0:
            print(f"trainer: {message}", file=sys.stderr, flush=True)

    def share(self, work: Callable[[], Any]) -> Any:
        """What the work returns on rank 0, which alone does it, as JSON can say it; its error ends all."""
        result, failure = None, None
        if self.workers.rank == 0:
            try:
                result = work()
            except BertDataError as error:
                failure = error
        status = failure.exit_status if failure else None
        status, result = self.workers.broadcast_object([status, None if failure else result])
        if failure:
            raise failure
        if status is not None:
            raise ReportedError(status)
        return result

    def share_tensors(self, read: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
        """On every worker's device, the tensors that rank 0 reads."""
        held: dict[str, Tensor] = {}

        def describe() -> dict[str, Any]:
            held.update(read())
            return {name: [list(item.shape), str(item.dtype)[6:]] for name, item in held.items()}

        known, place = self.share(describe), self.device.torch_device
        tensors = {}
        for name, (shape, dtype) in known.items():
            mine = held[name] if held else torch.empty(shape, dtype=getattr(torch, dtype))
            tensors[name] = mine.to(place)
        self.workers.broadcast(tensors.values())
        return tensors

    def losses(self, model: BertForPreTraining, batch: Batch) -> Losses:
        """What the model makes of a batch from the host."""
        batch = self.device.move(batch)
        with self.device.autocast(self.config.precision):
            logits = model(batch, fixed_shapes=self.device.fixed_shapes)
        return pretraining_loss(logits, batch)

    def on_host(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: self.device.to_host(tensor) for name, tensor in tensors.items()}


def begin(config: Config) -> Runtime:
    """The worker that this process is, joined with the others."""
    device = find_device(config.device)
    if config.compile_only:
        raise SettingsError(f"compile_only: nothing is compiled ahead for device {config.device!r}")
    torch.use_deterministic_algorithms(config.deterministic)
    workers = find_collective(config.collective, device)
    runtime = Runtime(config=config, device=device, workers=workers)
    if idle := config.without_meaning(config.device):
        runtime.say(f"accepted, without meaning on device {config.device}: {', '.join(idle)}")
    return runtime


def open_dataset(config: Config, paths: str | None, *, vocabulary_size: int | None = None) -> Data:
    """The dataset at the paths (separated by commas), checked against configuration and model."""
    model = config.model_settings()
    tokens = model.get("vocab_size", vocabulary_size)
    length, masks = config.max_seq_length, config.max_predictions_per_seq
    longest = model.get("max_position_embeddings", ModelConfig().max_position_embeddings)
    if config.generated_data:
        layout = ShardLayout(max_seq_length=length or 128, max_predictions_per_seq=masks or 20)
        tokens = tokens or ModelConfig().vocab_size
        return generated_data(layout, vocabulary_size=tokens, seed=config.seed)
    assert paths is not None
    return open_data(
        paths.split(","),
        unverified=config.unverified,
        max_seq_length=length,
        max_predictions_per_seq=masks,
        max_position_embeddings=longest,
        vocabulary_size=tokens,
    )


def find_model_config(config: Config, data: Data) -> ModelConfig:
    """The model that the configuration describes; its vocabulary is the dataset's unless given."""
    settings = config.model_settings()
    settings.setdefault("vocab_size", data.vocabulary_size)
    if settings["vocab_size"] is None:
        raise SettingsError(
            f"vocab_size is missing: {data.name} has no manifest that says it; give --vocab-size"
        )
    return ModelConfig.from_dict(settings, config.model_config or "model")


def make_model(runtime: Runtime, shape: ModelConfig) -> BertForPreTraining:
    """The model on the device, with weights from the seed."""
    runtime.device.seed(runtime.config.seed)
    model = runtime.device.place(BertForPreTraining(shape))
    assert isinstance(model, BertForPreTraining)
    if runtime.config.compile:
        model.compile()
    return model


def read_weights_into(model: BertForPreTraining, path: str) -> None:
    """Fill the model from one of our checkpoints, or from anything in Hugging Face or PyTorch form."""
    if (Path(path) / STATE).is_file():
        read_state(Path(path))
        read_tensors(Path(path), moments=False)  # each byte is held against its md5
    import_weights(model, path)


@contextmanager
def profiled(config: Config, rank: int) -> Iterator[Callable[[], None]]:
    """To be called after each update; a few of them are recorded in output_dir/profile.json if wanted."""
    if not config.profile or rank != 0:
        yield lambda: None
        return
    path = os.path.join(str(config.output_dir), "profile.json")
    schedule = torch.profiler.schedule(wait=2, warmup=2, active=4, repeat=1)
    with torch.profiler.profile(
        schedule=schedule, on_trace_ready=lambda made: made.export_chrome_trace(path)
    ) as profile:
        yield profile.step
