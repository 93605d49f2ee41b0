"""The interface of every device, with plain PyTorch as its implementation."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity

from bertdata.errors import SettingsError
from trainer.config.settings import Config
from trainer.config.update import Preset
from trainer.data.batches import AnyBatch, Batch
from trainer.devices.loss_scale import LossScale
from trainer.model.attention import FlatAttention, padded_attention
from trainer.model.bert import Bert, HeadedBert, host_memory
from trainer.model.task import RowLosses
from trainer.optim.clipping import clip_
from trainer.optim.optimiser import CHUNK
from trainer.optim.presets import build_optimiser

Result = TypeVar("Result")

HOST = torch.device("cpu")

HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""The type of matrix products by precision; fp32 has no other type than the weights'."""

_MOST_GRAPHS = 64
"""Graphs of one module: one a token budget, for training and for evaluation."""


class Device:
    """Base device: plain PyTorch; subclasses override the parts that their hardware does in another way.

    process_group: the backend of torch.distributed.
    collectives: those that the device works with.
    bucket_mb: megabytes that are reduced in one call.
    needs_rows: batches are padded rows, not flat.
    replicas: copies of the model that one worker drives.
    strategy: the name of the strategy that makes the device's updates.
    row_losses: the device's own classification loss, or None.
    updates_per_call: updates that the strategy makes in one call.
    updates_to_compile: updates until every graph has been seen.
    averages_in_backward: gradients can be averaged over the workers while the backward pass runs.
    clips_in_step: the optimiser clips gradients itself, once an update.
    own_step: the optimiser's ``step`` is called, with the rate as a number of the host.
    fused_step: an update ends in PyTorch's fused kernels, else in plain operations.
    step_chunk: about as many weights change at a time at the end of an update, each with 4 more bytes.
    casts_once: copies of the weights in 16 bits are made once an update, not in each micro-batch.
    compile_mode: torch.compile's mode, where it is used.
    compiles_always: the device compiles whatever it runs, without torch.compile.
    seeds_parts: each part of a model that is not compiled may seed its dropout within the forward pass.
    idle: configuration keys that have no effect on this device.
    """

    name: str
    process_group: str
    collectives: tuple[str, ...] = ("single", "torch_distributed", "horovod")
    bucket_mb = 100
    needs_rows = False
    replicas = 1
    strategy = "replicated"
    row_losses: RowLosses | None = None
    updates_per_call = 1
    updates_to_compile = 1
    averages_in_backward = True
    clips_in_step = False
    own_step = False
    fused_step = False
    step_chunk = CHUNK
    casts_once = False
    compile_mode: str | None = None
    compiles_always = False
    seeds_parts = True
    idle: tuple[str, ...] = ()

    def __init__(self, config: Config, local_rank: int = 0) -> None:
        """local_rank: the number of the device on this machine; SettingsError where it is not there."""
        self.config = config
        self.torch_device = torch.device(self.name)
        self.compiles = self.must_compile

    @property
    def must_compile(self) -> bool:
        """True if the configuration asks for a compiled model; without, a device may compile one or not."""
        return bool(self.config.run.compile or self.config.run.compile_only)

    def join(self) -> None:
        """Join the process group of torch.distributed that the launcher's environment variables describe."""
        torch.distributed.init_process_group(self.process_group)

    def seed(self, seed: int) -> None:
        """Seed every random generator that the model draws from."""
        torch.manual_seed(seed)  # seeds every accelerator's generators too

    def autocast(self, precision: str) -> AbstractContextManager[object]:
        """The context of the forward pass: matrix products in ``precision``, "fp32", "bf16" or "fp16"."""
        half = HALVES.get(precision)
        return torch.autocast(self.torch_device.type, half, enabled=half is not None)

    def return_memory(self) -> None:
        """Give freed memory back to the system at once, for models that fill a worker's share of it."""

    def place(self, model: HeadedBert) -> HeadedBert:
        """The model on the device; tied weights stay tied."""
        model = model.to(self.torch_device)
        for module in model.modules():
            if isinstance(module, Bert):
                module.attention = self.attention
        return model

    def compile(self, learner: nn.Module) -> None:
        """Compile the module for one shape of each argument, if configured."""
        if self.compiles:
            if not hasattr(learner, "compile"):
                raise SettingsError(f"compile: torch {torch.__version__} cannot compile modules; 2.2 can")
            # Beyond the limit, 8 by default, graphs of further token budgets would run uncompiled.
            torch._dynamo.config.cache_size_limit = _MOST_GRAPHS
            learner.compile(mode=self.compile_mode, dynamic=False)

    @property
    def attention(self) -> FlatAttention:
        """Attention of each token to its own sequence; called as trainer.model.attention.FlatAttention."""
        return padded_attention

    def prepare(self, batch: AnyBatch) -> AnyBatch:
        """The batch ready for the move to the device, as by pinning; called in the loader's thread."""
        return batch

    def move(self, batch: Batch) -> Batch:
        """The batch on the device; the copy may still be under way."""
        return batch

    def forward(self, learner: Callable[[Batch], Result], batch: Batch) -> Result:
        """The learner's result on a batch in host memory, in the configured precision."""
        batch = self.move(batch)
        with self.autocast(self.config.update.precision):
            return learner(batch)

    def check_accumulation(self, accumulation: int) -> None:
        """SettingsError where so few micro-batches of an update cannot be trained with."""

    def check_training(self, workers: int) -> None:
        """SettingsError for settings that this device cannot train with, on so many workers."""

    def optimiser(self, preset: Preset, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """The optimiser over groups that each hold params, weight_decay and trust."""
        made = build_optimiser(preset, groups)
        made.fuses, made.chunk = self.fused_step, self.step_chunk
        return made

    def clip_(self, gradients: Sequence[Tensor], max_norm: float | Tensor) -> Tensor:
        """Clip the gradients in place to the global norm; returns their norm before.

        max_norm: a 0-dim tensor where it follows a loss scale.
        """
        return clip_(gradients, max_norm)

    def scaler(self, precision: str, *, initial: float, floor: float, ceiling: float) -> LossScale:
        """The loss scale, which keeps small fp16 gradients from underflow; the bounds are for fp16."""
        if precision != "fp16":
            return LossScale()
        return LossScale(initial, floor, ceiling, self.torch_device)

    def after_backward(self) -> None:
        """Called after each backward pass."""

    def after_step(self) -> None:
        """Called after each step of the optimiser."""

    def to_host(self, tensor: Tensor) -> Tensor:
        """The tensor in host memory, detached from autograd."""
        return tensor.detach().cpu()

    def copy_to_host(self, tensor: Tensor) -> Tensor:
        """A copy of the tensor in host memory, which later updates do not change."""
        host = self.to_host(tensor)
        return host.clone() if self.torch_device.type == "cpu" else host

    def release(self) -> None:
        """Free compiled programs; called between two phases, each of which has its own device object."""
        if self.compiles:
            torch.compiler.reset()  # compiled code keeps its memory otherwise

    def profile_activities(self) -> list[ProfilerActivity] | None:
        """The activities for torch's profiler to record; None: its default."""
        return None

    def memory(self, neighbours: int) -> int:
        """Bytes that this worker may use; neighbours: workers on this machine, itself included."""
        return host_memory() // neighbours

    def peak_memory(self) -> int:
        """The most bytes that this process's tensors have had on the device; 0 where it does not count."""
        return 0

    def describe(self) -> str:
        """One line about the hardware and its use."""
        return self.name
