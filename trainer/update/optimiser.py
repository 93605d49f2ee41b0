"""The base of every optimiser: its parameter groups, its tensors, and the norms of gradients."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trainer.config.schedules.form import Preset
from trainer.config.settings import Config
from trainer.devices.clipping import norms_of
from trainer.devices.device import Device
from trainer.plugins import find

CHUNK = Device.step_chunk
"""Elements changed at a time, unless the device has another number: they need little temporary memory."""


class Numbers(NamedTuple):
    """Numbers of one step. A tensor is 0-dim, fp32 and on the weights' device.

    applied: steps that changed the weights, this one included. divisor: gradients are divided by it; None
    means 1. skip: 1.0 if weights and moments must stay bit for bit, else 0.0; None means never.
    """

    rate: Tensor | float
    applied: Tensor | float
    divisor: Tensor | None = None
    skip: Tensor | None = None


class Tensors(NamedTuple):
    """Tensors of some weights of one parameter group: lists of the same length, in the same order."""

    weights: list[Tensor]
    gradients: list[Tensor]
    moments: tuple[list[Tensor], ...]


class Norms:
    """Norms of weights and gradients where each process holds the whole model.

    Subclasses have norms over all processes that hold it together; each must make the same calls, in the same
    order.
    """

    def size(self, weight: Tensor) -> int:
        """Elements of the whole weight, of which the tensor is this process's part."""
        return weight.numel()

    def each(self, tensors: Sequence[Tensor]) -> Tensor:
        """(n,): the norm of each weight, or of its gradient, of which a tensor is this process's part."""
        return norms_of(tensors)

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        """0-dim: the norm of the whole model's gradients together, of which the tensors are this process's.

        The tensors are those of all weights that have a gradient, in the order of the optimiser's groups.
        """
        norm: Tensor = torch.linalg.vector_norm(self.each(tensors))
        return norm


LOCAL_NORMS = Norms()


class GroupSettings(NamedTuple):
    """Settings of a parameter group, of which each optimiser reads those that it has. Its rate is apart.

    trust: its weights have trust ratios. norms: of weights and changes. epsilon_in: as of ``Preset``.
    """

    betas: tuple[float, float]
    eps: float
    weight_decay: float
    debias: bool
    trust: bool
    momentum: float
    norms: Norms = LOCAL_NORMS
    epsilon_in: str = "corrected"


Rule = Callable[[Tensors, Numbers, GroupSettings], None]
"""A step, in place, on tensors of one parameter group with its settings."""


class Optimiser(torch.optim.Optimizer):
    """An optimiser whose step is a function: ``rule`` in plain operations, ``fused`` in fused kernels.

    A group's ``step`` counts the calls of ``step``. state_dict holds tensors and plain numbers only.
    chunk: the approximate number of elements changed at a time, which bounds temporary memory. fuses: the
    fused kernels are used, which PyTorch has for some devices.
    sizes: elements that count for the chunks, of weights of which each process holds a part: processes that
    compute norms together must have the same chunks.
    """

    fuses = True
    norms: Norms = LOCAL_NORMS
    rule: Rule
    fused: Rule

    def __init__(self, groups: Iterable[Any], preset: Preset, chunk: int = CHUNK) -> None:
        """groups: those of ``group_parameters``, or weights that all have the preset's decay and trust."""
        self.preset, self.chunk = preset, chunk
        self.sizes: Mapping[Tensor, int] = {}
        usual = {"weight_decay": preset.weight_decay, "trust": preset.trust == "all"}
        super().__init__(groups, {"lr": preset.lr, **usual, "step": 0})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update each parameter that has a gradient, with the groups' rates."""
        for group in self.param_groups:
            group["step"] += 1
            for tensors in self._tensors(group, self.chunk):
                values: list[Any] = [group["lr"], float(group["step"])]
                if self.fuses:
                    values = [torch.full((), value, device=tensors.weights[0].device) for value in values]
                (self.fused if self.fuses else self.rule)(tensors, Numbers(*values), self.settings(group))

    def settings(self, group: dict[str, Any]) -> GroupSettings:
        """The group's settings."""
        preset, own = self.preset, (group["weight_decay"], group["trust"])
        debias = preset.debias or preset.kind == "adamw"
        return GroupSettings(
            betas=preset.betas,
            eps=preset.eps,
            weight_decay=own[0],
            debias=debias,
            trust=own[1],
            momentum=preset.momentum,
            norms=self.norms,
            epsilon_in=preset.epsilon_in,
        )

    @property
    @abstractmethod
    def moments(self) -> tuple[str, ...]:
        """Names of the moments that the state holds for each weight, as PyTorch names them."""

    def tensors(self, chunk: int | None) -> list[tuple[Tensors, GroupSettings]]:
        """Tensors of all weights that have a gradient, with settings. None: one entry a group."""
        return [
            (tensors, self.settings(group))
            for group in self.param_groups
            for tensors in self._tensors(group, chunk)
        ]

    def _tensors(self, group: dict[str, Any], chunk: int | None) -> Iterator[Tensors]:
        used = [weight for weight in group["params"] if weight.grad is not None]
        ends = accumulate(self.sizes.get(weight, weight.numel()) for weight in used)
        for _, items in groupby(zip(used, ends, strict=True), lambda item: chunk and item[1] // chunk):
            weights = [weight for weight, _ in items]
            gradients = [weight.grad for weight in weights]
            moments = tuple([self.moment(weight, name) for weight in weights] for name in self.moments)
            yield Tensors(weights, gradients, moments)

    def moment(self, weight: Tensor, name: str) -> Tensor:
        """That moment of the weight, zeros before the first step."""
        state: dict[str, Tensor] = self.state[weight]
        if name not in state:
            state[name] = torch.zeros_like(weight, dtype=torch.float32, requires_grad=False)
        return state[name]


def configured_preset(config: Config) -> Preset:
    """The configured optimiser's preset, with the settings that the configuration gives."""
    preset: Preset = find("optimiser", config.update.optimiser)
    if preset.decays_by_share:
        preset = replace(preset, lr=config.schedule.base_learning_rate)
    return config.optimiser.changed(preset)


def group_parameters(
    preset: Preset, named_parameters: Iterable[tuple[str, nn.Parameter]]
) -> list[dict[str, Any]]:
    """Parameter groups, one for each combination of decay and trust: params, weight_decay, trust."""
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for path, parameter in named_parameters:
        if parameter.requires_grad:
            groups.setdefault((preset.decays(path), preset.trusts(path)), []).append(parameter)
    return [
        {"params": parameters, "weight_decay": preset.weight_decay if decays else 0.0, "trust": trusts}
        for (decays, trusts), parameters in groups.items()
    ]
