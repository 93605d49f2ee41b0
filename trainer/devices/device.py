"""The interface of every device, with plain PyTorch as its implementation."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity

from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatAttention
from trainer.model.bert import attend_anywhere, host_memory
from trainer.model.headed import HeadedBert
from trainer.tasks.task import RowLosses

Result = TypeVar("Result")

HOST = torch.device("cpu")

HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""The type of matrix products by precision; fp32 has no other type than the weights'."""

Meet = Callable[[], tuple[Any, int, int]]
"""Meets the other workers. Returns an empty store that all of them have, rank and size."""


class Device:
    """Base device: plain PyTorch. Subclasses override the parts that their hardware does in another way."""

    name: str
    process_group: str  # the backend of torch.distributed
    collectives: tuple[str, ...] = ("single", "torch_distributed", "horovod")  # that it works with
    bucket_mb = 100  # megabytes that are reduced in one call
    needs_rows = False  # batches are padded rows, not flat
    replicas = 1  # copies of the model that one worker drives
    strategy = "replicated"  # the name of the strategy that makes its updates
    attention: FlatAttention = staticmethod(attend_anywhere)
    row_losses: RowLosses | None = None  # its own classification loss
    updates_per_call = 1  # made by the strategy at a time
    updates_to_compile = 1  # until every graph has been seen
    own_step = False  # graphs of its own: it averages, and ends an update, after the last backward pass
    fused_step = False  # an update ends in PyTorch's fused kernels, else in plain operations
    step_chunk = 2**22  # about as many weights change at a time, each with 4 more bytes
    casts_once = False  # weights are copied in 16 bits once an update, not in each micro-batch
    compile_mode: str | None = None  # torch.compile's, where it is used
    compiles_always = False  # whatever it runs, without torch.compile
    idle: tuple[str, ...] = ()  # configuration keys that have no effect on it

    def __init__(self, config: Config, local_rank: int = 0) -> None:
        """local_rank: the number of the device on this machine. SettingsError where it is not there."""
        self.config = config
        self.torch_device = torch.device(self.name)
        self.compiles = self.must_compile

    @property
    def must_compile(self) -> bool:
        """True if the configuration asks for a compiled model. Where it does not, the device decides."""
        return bool(self.config.run.compile or self.config.run.compile_only)

    def join(self, meet: Meet) -> None:
        """Join the process group of torch.distributed with the other workers."""
        store, rank, size = meet()
        torch.distributed.init_process_group(self.process_group, store=store, rank=rank, world_size=size)

    def seed(self, seed: int) -> None:
        """Seed every random generator that the model draws from."""
        torch.manual_seed(seed)  # seeds every accelerator's generators too

    def autocast(self, precision: str) -> AbstractContextManager[object]:
        """The context of the forward pass: matrix products in ``precision``, "fp32", "bf16" or "fp16"."""
        half = HALVES.get(precision)
        return torch.autocast(self.torch_device.type, half, enabled=half is not None)

    def place(self, model: HeadedBert) -> HeadedBert:
        """The model on the device. Tied weights stay tied."""
        return model.to(self.torch_device)

    def attention_for(self, shape: ModelConfig) -> FlatAttention:
        """Return the attention of flat batches for a model of this shape."""
        return self.attention

    def compile(self, learner: nn.Module) -> None:
        """Compile the module for one shape of each argument, if configured."""
        if self.compiles:
            if not hasattr(learner, "compile"):
                raise SettingsError(f"compile: torch {torch.__version__} cannot compile modules; 2.2 can")
            # A graph a token budget, for training and for evaluation; beyond the limit they run uncompiled.
            torch._dynamo.config.cache_size_limit = 64
            learner.compile(mode=self.compile_mode, dynamic=False)

    def prepare(self, batch: Batch) -> Batch:
        """The batch ready for the move to the device, for example pinned. Called in the loader's thread."""
        return batch

    def move(self, batch: Batch) -> Batch:
        """The batch on the device. The copy may still be under way."""
        return batch

    def forward(self, learner: Callable[[Batch], Result], batch: Batch) -> Result:
        """The learner's result on a batch in host memory, in the configured precision."""
        batch = self.move(batch)
        with self.autocast(self.config.update.precision):
            return learner(batch)

    def after_backward(self) -> None:
        """Called after each backward pass."""

    def to_host(self, tensor: Tensor) -> Tensor:
        """The tensor in host memory, detached from autograd."""
        return tensor.detach().cpu()

    def check_updates(self, updates: int) -> None:
        """SettingsError for a number of updates that it cannot make."""

    def release(self) -> None:
        """Free compiled programs. Called between two phases, each of which has its own device object."""
        if self.compiles:
            torch.compiler.reset()  # compiled code keeps its memory otherwise

    def profile_activities(self) -> list[ProfilerActivity] | None:
        """The activities for torch's profiler to record. None: the profiler's default."""
        return None

    def memory(self, neighbours: int) -> int:
        """Bytes that this worker may use. neighbours: workers on this machine, itself included."""
        return host_memory() // neighbours

    def peak_memory(self) -> int:
        """The most bytes that this process's tensors have had on the device, or 0 where it does not count."""
        return 0

    def describe(self) -> str:
        """One line about the hardware and its use."""
        return self.name

    def find_peak(self, description: str) -> float | None:
        """Operations a second of the hardware that ``describe`` names, or None for an unknown one."""
        return None
