"""What a processor must offer the trainer: nothing that differs between processors lies elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bertdata.errors import SettingsError
from trainer.batches import Batch
from trainer.collectives import Collective, find_local_rank
from trainer.config import Config
from trainer.devices.loss_scale import LossScale
from trainer.engine import Engine
from trainer.losses import Losses, pretraining_loss
from trainer.model import BertForPreTraining
from trainer.optim import Preset, build_optimiser, clip_

if TYPE_CHECKING:
    from torch.profiler import ProfilerActivity

CLASSES = {"cpu": "Cpu", "cuda": "Cuda", "hpu": "Hpu", "ipu": "Ipu", "xla": "Xla"}
"""The class of each device, in the module of that device's name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of a device or a launcher, and, where something is missing, what to do about it."""

    name: str
    there: bool
    found: str
    missing: str = ""
    count: int = 1
    """Devices, each for a worker of its own."""


class Device:
    """One processor, and how the trainer talks to it; here as do those that have no better way.

    process_group: what torch.distributed carries its tensors with; collectives: those that know it;
    bucket_mb: how much to reduce at a time; fixed_shapes: batches and masked slots keep their padded shape
    (graphs, compilers); replicas: copies of the model that one worker drives; updates_per_call: updates
    that the engine makes at a time; clips_in_step: the optimiser clips by itself, once an update; jagged:
    attention sees no padding, where shapes may vary; compile_mode: torch.compile's, where it is used;
    idle: keys of the configuration that do nothing there.
    """

    name: str
    process_group: str
    collectives: tuple[str, ...] = ("single", "torch_distributed", "horovod")
    bucket_mb = 100
    fixed_shapes = False
    replicas = 1
    updates_per_call = 1
    clips_in_step = False
    jagged = False
    compile_mode: str | None = None
    idle: tuple[str, ...] = ()

    def __init__(self, config: Config, local_rank: int = 0) -> None:
        """local_rank: which of the machine's devices; SettingsError where it is not there."""
        self.config = config
        self.torch_device = torch.device(self.name)
        self.compiles = config.compile or config.compile_only
        self.fixed_shapes = self.fixed_shapes or self.compiles

    def join(self) -> None:
        """Join the other workers of torch.distributed, as the launcher's environment variables say."""
        torch.distributed.init_process_group(self.process_group)

    def seed(self, seed: int) -> None:
        """Seed every random generator that the model draws from."""
        torch.manual_seed(seed)  # every accelerator's generators too

    def autocast(self, precision: str) -> AbstractContextManager[object]:
        """Where the forward pass runs: matrix products in ``precision``, "fp32", "bf16" or "fp16"."""
        half = torch.float16 if precision == "fp16" else torch.bfloat16
        return torch.autocast(self.torch_device.type, half, enabled=precision != "fp32")

    def place(self, model: BertForPreTraining) -> BertForPreTraining:
        """The model on the device, compiled if that is asked for; tied weights are tied there too."""
        model = model.to(self.torch_device)
        if self.compiles:
            if not hasattr(model, "compile"):
                raise SettingsError(f"compile: torch {torch.__version__} cannot compile modules; 2.2 can")
            model.compile(mode=self.compile_mode, dynamic=False)
        return model

    def prepare(self, batch: Batch) -> Batch:
        """Many examples made ready to be moved; called in the loader's thread."""
        return batch

    def move(self, batch: Batch) -> Batch:
        """The batch on the device; may not have arrived yet."""
        return batch

    def losses(self, model: BertForPreTraining, batch: Batch) -> Losses:
        """What the model makes of a batch from the host."""
        batch = self.move(batch)
        with self.autocast(self.config.precision):
            logits = model(batch, fixed_shapes=self.fixed_shapes, jagged=self.jagged)
        return pretraining_loss(logits, batch)

    @contextmanager
    def evaluating(self, model: BertForPreTraining) -> Iterator[Callable[[Batch], Losses]]:
        """The model's losses without dropout and gradients; afterwards the model trains on."""
        model.eval()
        with torch.no_grad():
            yield lambda batch: self.losses(model, batch)
        model.train()

    def engine(self, workers: Collective, model: BertForPreTraining) -> Engine:
        """What makes updates of the model."""
        return Engine(self.config, self, workers, model)

    def optimiser(self, preset: Preset, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """The optimiser over groups that each hold params, weight_decay and trust."""
        return build_optimiser(preset, groups)

    def clip_(self, gradients: Sequence[Tensor], max_norm: float) -> Tensor:
        """The norm of all gradients together, which are clipped to it in place."""
        return clip_(gradients, max_norm)

    def scaler(self, precision: str, *, initial: float, floor: float, ceiling: float) -> LossScale:
        """What keeps small gradients of ``precision`` from vanishing; the bounds are for fp16."""
        return LossScale(initial, floor, ceiling) if precision == "fp16" else LossScale()

    def after_backward(self) -> None:
        """To be called after each backward pass."""

    def after_step(self) -> None:
        """To be called after each step of the optimiser."""

    def to_host(self, tensor: Tensor) -> Tensor:
        """The tensor in the host's memory, without its history."""
        return tensor.detach().cpu()

    def release(self) -> None:
        """To be called when a phase has ended and another, with a device of its own, is to come."""
        if self.compiles:
            torch.compiler.reset()  # else what was compiled keeps its memory

    def profile_activities(self) -> "list[ProfilerActivity] | None":
        """What torch's profiler is to record; None: what it records by itself."""
        return None

    def describe(self) -> str:
        """One line about the hardware and how it is used."""
        return self.name


def find_device(config: Config) -> Device:
    """The device that is asked for, of several on a machine the one of this worker's local rank.

    SettingsError where it is not there.
    """
    kind = getattr(_module(config.device), CLASSES[config.device])
    device: Device = kind(config, find_local_rank())
    return device


def examine(name: str) -> Finding:
    """What there is of the device, without taking hold of it; SettingsError for an unknown one."""
    _check(name)
    try:
        finding: Finding = _module(name).examine()
    except Exception as error:  # whatever is wrong with its packages, the other devices are to be seen
        return Finding(name, False, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    return finding


def _check(name: str) -> None:
    if name not in CLASSES:
        raise SettingsError(f"device {name!r}: no such device; known are {', '.join(CLASSES)}")


def _module(name: str) -> ModuleType:
    _check(name)
    try:
        return import_module(f"trainer.devices.{name}")
    except (ImportError, AttributeError) as error:  # a vendor's packages are imported later
        needs = f"needs what torch {torch.__version__} does not have ({error})"
        raise SettingsError(f"device {name!r} {needs}; install a newer one") from error
