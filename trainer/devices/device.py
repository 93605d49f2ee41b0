"""The interface that every device has, implemented with plain PyTorch."""

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
from trainer.model.bert import attend_anywhere, find_host_memory
from trainer.model.headed import HeadedBert
from trainer.tasks.task import RowLosses

Result = TypeVar("Result")

HOST = torch.device("cpu")

HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""Type of matrix products for each 16-bit precision. With fp32 the products have the weights' type."""

Meet = Callable[[], tuple[Any, int, int]]
"""A function that waits until all workers of the run are connected.

It returns (an empty key-value store that all workers share, this worker's rank, number of workers).
"""


class Device:
    """Base class of devices. It uses plain PyTorch, and subclasses override what their hardware does
    differently.
    """

    name: str
    process_group: str  # backend of torch.distributed
    # names of the collectives (ways in which workers exchange data) that work with the device
    collectives: tuple[str, ...] = ("single", "torch_distributed", "horovod")
    bucket_mb = 100  # megabytes of gradients that are exchanged in one call
    needs_rows = False  # whether it needs batches of padded rows instead of flat batches
    replicas = 1  # copies of the model that one worker drives
    strategy = "replicated"  # name of the strategy (trainer.update.strategy) that makes its updates
    attention: FlatAttention = staticmethod(attend_anywhere)
    row_losses: RowLosses | None = None  # the device's classification loss, None for PyTorch's
    updates_per_call = 1  # updates that the strategy makes per call
    updates_to_compile = 1  # number of first updates after which everything has been compiled
    # True: gradients are averaged and the optimiser runs after the last backward pass, in separate compiled
    # graphs
    ends_updates = False
    fused_step = False  # True: the optimiser uses PyTorch's fused kernels, False: plain operations
    # approximate number of weights changed at a time, each with 4 bytes of temporary memory
    step_chunk = 2**22
    casts_once = False  # 16-bit copies of the weights are made once per update, not in each micro-batch
    compile_mode: str | None = None  # mode for torch.compile, if it is used
    compiles_always = False  # the device compiles all operations itself, without torch.compile
    idle: tuple[str, ...] = ()  # configuration keys that have no effect on it

    def __init__(self, config: Config, local_rank: int = 0) -> None:
        """local_rank: number of the device on this machine.

        Raises SettingsError if there is no such device.
        """
        self.config = config
        self.torch_device = torch.device(self.name)
        self.compiles = self.must_compile

    @property
    def must_compile(self) -> bool:
        """True if the configuration asks for a compiled model. Otherwise the device decides."""
        return bool(self.config.run.compile or self.config.run.compile_only)

    def join(self, meet: Meet) -> None:
        """Join the process group of torch.distributed with the other workers.

        meet: function that waits for all workers, and returns their shared store, this worker's rank and the
        number of workers.
        """
        store, rank, size = meet()
        torch.distributed.init_process_group(self.process_group, store=store, rank=rank, world_size=size)

    def seed(self, seed: int) -> None:
        """Seed every random generator that the model draws from."""
        torch.manual_seed(seed)  # also seeds the generators of every accelerator

    def autocast(self, precision: str) -> AbstractContextManager[object]:
        """Return the context manager of the forward pass, for matrix products in "fp32", "bf16" or "fp16"."""
        half = HALVES.get(precision)
        return torch.autocast(self.torch_device.type, half, enabled=half is not None)

    def place(self, model: HeadedBert) -> HeadedBert:
        """Return the model on the device. Tied weights stay tied."""
        return model.to(self.torch_device)

    def attention_for(self, shape: ModelConfig) -> FlatAttention:
        """Return the attention function of flat batches for a model of this shape."""
        return self.attention

    def compile(self, learner: nn.Module) -> None:
        """Compile the module if configured. It is compiled for each shape of its arguments."""
        if self.compiles:
            if not hasattr(learner, "compile"):
                raise SettingsError(f"compile: torch {torch.__version__} cannot compile modules; 2.2 can")
            # There is a graph for each token budget, in training and in evaluation. Beyond this limit they
            # would run uncompiled.
            torch._dynamo.config.cache_size_limit = 64
            learner.compile(mode=self.compile_mode, dynamic=False)

    def prepare(self, batch: Batch) -> Batch:
        """Prepare the batch for its move to the device, for example pin its memory.

        Called in the loader's thread.
        """
        return batch

    def move(self, batch: Batch) -> Batch:
        """Return the batch on the device. The copy may not be finished yet."""
        return batch

    def forward(self, learner: Callable[[Batch], Result], batch: Batch) -> Result:
        """Return the learner's result for a batch in host memory, in the configured precision."""
        batch = self.move(batch)
        with self.autocast(self.config.update.precision):
            return learner(batch)

    def after_backward(self) -> None:
        """Do what the device needs after each backward pass, for example run the collected operations.

        Plain PyTorch needs nothing.
        """

    def to_host(self, tensor: Tensor) -> Tensor:
        """Return the tensor in host memory, without gradient."""
        return tensor.detach().cpu()

    def check_updates(self, updates: int) -> None:
        """Raise SettingsError if the device cannot make this number of updates."""

    def release(self) -> None:
        """Free compiled programs. Called between two phases, because the second phase has a new device
        object, which cannot use them.
        """
        if self.compiles:
            torch.compiler.reset()  # otherwise compiled code keeps its memory

    def profile_activities(self) -> list[ProfilerActivity] | None:
        """Return the activities that torch's profiler records. None: the profiler's default."""
        return None

    def memory(self, neighbours: int) -> int:
        """Return the bytes of memory that this worker may use.

        neighbours: number of workers on this machine, including this one.
        """
        return find_host_memory() // neighbours

    def peak_memory(self) -> int:
        """Return the most bytes that this process's tensors had on the device, 0 if they are not counted."""
        return 0

    def describe(self) -> str:
        """Return one line for the log about the hardware and how this run uses it."""
        return self.name

    def find_peak(self, description: str) -> float | None:
        """Return the peak operations per second of the hardware in ``description``, None if not known."""
        return None
