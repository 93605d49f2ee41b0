"""The base class of all devices, implemented with plain PyTorch."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity

from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatAttention
from trainer.model.bert import attend_with_pytorch, find_host_memory
from trainer.model.compiled_parts import CompilePart
from trainer.model.fp8 import require_fp8_library
from trainer.model.headed import HeadedBert
from trainer.tasks.task import RowLosses

Result = TypeVar("Result")

HOST = torch.device("cpu")

HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.bfloat16}
"""PyTorch's 16-bit type for each precision below fp32, in which matrices are multiplied. With fp32, they are
multiplied in the type of the weights. With fp8, it is the type of everything that is not computed in FP8.
"""

Meet = Callable[[], tuple[Any, int, int]]
"""A function that waits until all workers of the run are connected.

It returns an empty key-value store that all workers share, this worker's rank, and the number of workers.
"""


class Compilable(Protocol):
    """Interface of a module that a device compiles, as a whole or by its parts."""

    def compile(self, **settings: Any) -> None:
        """Compile the module as one graph.

        settings: arguments of ``torch.compile``.
        """
        ...

    def compile_parts(self, compile_part: CompilePart) -> None:
        """Compile the parts of the module.

        compile_part: function that takes a function and returns it compiled.
        """
        ...


class Device:
    """Base class of devices, for plain PyTorch. Subclasses override what differs on their hardware."""

    name: str
    process_group: str  # backend that torch.distributed uses for this device
    # names of the collectives (ways in which workers exchange data) that work with this device
    collectives: tuple[str, ...] = ("single", "torch_distributed", "horovod")
    bucket_mb = 100  # megabytes of gradients that workers exchange in one call
    needs_rows = False  # True: takes batches of padded rows, False: flat batches (all sequences end to end)
    replicas = 1  # number of copies of the model that one worker computes
    # name of the strategy (trainer.update.strategy) that makes the updates on this device
    strategy = "replicated"
    attention: FlatAttention = staticmethod(attend_with_pytorch)
    # function for the classification loss on this device, None for PyTorch's
    row_losses: RowLosses | None = None
    updates_per_call = 1  # number of updates that one call of the strategy makes
    updates_to_compile = 1  # number of updates at the start of a run after which everything has been compiled
    # True: averaging the gradients and the optimiser are compiled as separate graphs, which run after the
    # last backward pass
    ends_updates = False
    fused_step = False  # True: the optimiser uses PyTorch's fused kernels, False: separate operations
    # approximate number of weights that the optimiser changes at a time, each with 4 bytes of temporary
    # memory
    step_chunk = 2**22
    casts_once = False  # True: weights are converted to 16 bits once per update, False: in each micro-batch
    # True: forward pass and loss are compiled as one graph, False: embeddings, layers and heads each have a
    # graph, and all layers of a kind share theirs
    compiles_whole = False
    compile_mode: str | None = None  # ``mode`` argument of torch.compile for a graph of the whole model
    compiles_always = False  # True: the device itself compiles all operations, without torch.compile
    idle: tuple[str, ...] = ()  # configuration keys that have no effect on this device

    def __init__(self, config: Config, local_rank: int = 0) -> None:
        """Open the device.

        local_rank: number of the device on this machine.
        Raises SettingsError if the machine has no such device.
        """
        self.config = config
        self.torch_device = torch.device(self.name)
        self.compiles = self.must_compile
        if config.update.precision == "fp8":
            if reason := self.find_reason_against_fp8():
                raise SettingsError(f"precision fp8: {reason}")
            require_fp8_library()

    @property
    def must_compile(self) -> bool:
        """True if the configuration asks for a compiled model, so that the device does not decide itself."""
        return bool(self.config.run.compile or self.config.run.compile_only)

    def find_reason_against_fp8(self) -> str:
        """Return why this device cannot train in FP8, with a remedy, for an error message. Return "" if it
        can.
        """
        return f"device {self.name!r} has no FP8 here; give another --precision"

    def join(self, meet: Meet) -> None:
        """Join torch.distributed's process group with the other workers.

        meet: function that waits for all workers, and returns their shared store, this worker's rank and the
        number of workers.
        """
        store, rank, size = meet()
        torch.distributed.init_process_group(self.process_group, store=store, rank=rank, world_size=size)

    def seed(self, seed: int) -> None:
        """Seed every random generator that the model draws from."""
        torch.manual_seed(seed)  # also seeds the generators of every accelerator

    def autocast(self, precision: str) -> AbstractContextManager[object]:
        """Return the context manager for the forward pass.

        precision: type in which matrices are multiplied, "fp32", "bf16", "fp16" or "fp8". With "fp8" it
            is bf16, for everything except the layers that multiply in FP8 (``trainer.model.fp8``).
        """
        half = HALVES.get(precision)
        return torch.autocast(self.torch_device.type, half, enabled=half is not None)

    def place(self, model: HeadedBert) -> HeadedBert:
        """Move the model to the device and return it. Weights that two modules share stay shared."""
        return model.to(self.torch_device)

    def attention_for(self, shape: ModelConfig) -> FlatAttention:
        """Return the attention function for a model of this shape, for batches with all sequences end to
        end.
        """
        return self.attention

    def compile(self, learner: Compilable) -> None:
        """Compile the model and its loss if the configuration asks for it.

        learner: module of the model and its loss, ``trainer.update.learner.Learner``.
        """
        if self.compiles:
            if not hasattr(learner, "compile"):
                raise SettingsError(f"compile: torch {torch.__version__} cannot compile modules; 2.2 can")
            # A graph is compiled for each size of a micro-batch, for each kind of layer, in training and in
            # evaluation. Sizes beyond this limit would run uncompiled.
            torch._dynamo.config.cache_size_limit = 256
            if self.compiles_whole:
                learner.compile(mode=self.compile_mode, dynamic=False)
            else:
                learner.compile_parts(self.compile_part)

    def compile_part(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function compiled. It is compiled once for each shape of its arguments."""
        compiled: Callable[..., Any] = torch.compile(function, dynamic=False)
        return compiled

    def prepare(self, batch: Batch) -> Batch:
        """Do the part of the batch's move to the device that another thread can do, for example pin its
        memory.

        The data loader calls this in its own thread.
        """
        return batch

    def move(self, batch: Batch) -> Batch:
        """Copy the batch to the device and return the copy. The copying may still be under way."""
        return batch

    def forward(self, learner: Callable[[Batch], Result], batch: Batch) -> Result:
        """Move the batch from host memory to the device, and return the learner's result in the configured
        precision.
        """
        batch = self.move(batch)
        with self.autocast(self.config.update.precision):
            return learner(batch)

    def after_backward(self) -> None:
        """Do what the device needs after each backward pass, for example run the operations recorded so far.

        Plain PyTorch needs nothing.
        """

    def to_host(self, tensor: Tensor) -> Tensor:
        """Return the tensor in host memory, without gradient."""
        return tensor.detach().cpu()

    def check_updates(self, updates: int) -> None:
        """Raise SettingsError if the device cannot make exactly this number of updates.

        Some devices make several updates per call, so they need a multiple of that number.
        """

    def release(self) -> None:
        """Free compiled programs between two phases.

        The second phase opens the device again as a new object, which cannot use the programs of the first.
        """
        if self.compiles:
            torch.compiler.reset()  # otherwise the compiled code of the first phase would keep its memory

    def profile_activities(self) -> list[ProfilerActivity] | None:
        """Return the activities that torch's profiler records on this device. None: the profiler's
        default.
        """
        return None

    def memory(self, neighbours: int) -> int:
        """Return the number of bytes of memory that this worker may use.

        neighbours: number of workers on this machine, including this worker.
        """
        return find_host_memory() // neighbours

    def peak_memory(self) -> int:
        """Return the largest number of bytes that this process has used on the device, or 0 if it is not
        known.
        """
        return 0

    def describe(self) -> str:
        """Return one line for the log about the hardware and how this run uses it."""
        return self.name

    def find_peak(self, description: str) -> float | None:
        """Return the peak speed of the hardware in operations per second, or None if it is not known.

        description: the result of ``describe``, which names the hardware.
        """
        return None
