"""Base class of the optimisers, parameter groups, and norms of weights and gradients."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trainer.config.schedules.form import Preset
from trainer.config.settings import Config
from trainer.devices.clipping import compute_norms
from trainer.devices.device import Device
from trainer.plugins import find

CHUNK = Device.step_chunk
"""Number of elements that a step changes at a time, unless the device sets another number.

With fewer elements, a step needs less temporary memory.
"""


class StepScalars(NamedTuple):
    """The numbers that an optimiser step needs. Tensors are 0-dim, fp32 and on the weights' device.

    rate: learning rate.
    applied: number of steps that have changed the weights, including this step.
    divisor: number by which the gradients are divided. None means 1.
    skip: 1.0 to leave weights and moments unchanged in every bit, otherwise 0.0. None means that steps are
        never skipped.
    """

    rate: Tensor | float
    applied: Tensor | float
    divisor: Tensor | None = None
    skip: Tensor | None = None


class StepTensors(NamedTuple):
    """Tensors of some weights of a parameter group, as lists with equal length and equal order."""

    weights: list[Tensor]
    gradients: list[Tensor]
    moments: tuple[list[Tensor], ...]


class Norms:
    """Norms of weights and gradients. This class is for processes that hold the whole model.

    Subclasses are for a model that is divided among processes, and compute norms over all of them. With a
    subclass, each process must make the same calls in the same order.
    """

    def count_elements(self, weight: Tensor) -> int:
        """Return the number of elements of the whole weight.

        ``weight`` may be the part of it that this process holds.
        """
        return weight.numel()

    def compute_each(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the norm of each whole weight or gradient, with shape (n,).

        tensors: weights or gradients, or the parts of them that this process holds.
        """
        return compute_norms(tensors)

    def compute_total(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the norm of all gradients of the model together, as a 0-dim tensor.

        tensors: gradients of all weights that have one, or the parts of them that this process holds. They
            are in the order of the optimiser's groups.
        """
        norm: Tensor = torch.linalg.vector_norm(self.compute_each(tensors))
        return norm


LOCAL_NORMS = Norms()


class GroupSettings(NamedTuple):
    """Settings of a parameter group, except its learning rate.

    An optimiser reads only the settings that its formula has.
    trust: whether the formula uses trust ratios (LAMB) for these weights.
    norms: object that computes norms of weights and of their changes.
    epsilon_in: where eps is added, one of the names that ``Preset.epsilon_in`` lists.
    """

    betas: tuple[float, float]
    eps: float
    weight_decay: float
    debias: bool
    trust: bool
    momentum: float
    norms: Norms = LOCAL_NORMS
    epsilon_in: str = "corrected"


Rule = Callable[[StepTensors, StepScalars, GroupSettings], None]
"""Function that makes an optimiser step: it changes the tensors of a parameter group in place."""


class Optimiser(torch.optim.Optimizer):
    """Optimiser whose step is a function over tensors.

    The function has a plain form and a form with fused kernels.

    ``state_dict`` contains only tensors and plain numbers.
    rule: the function in plain operations.
    fused: the function with fused kernels.
    step: number of calls of the method ``step``, which each parameter group stores.
    chunk: approximate number of elements that are changed at a time, which bounds temporary memory.
    fuses: whether the fused kernels are used, which PyTorch has for some devices.
    sizes: for weights of which each process holds a part, the number of elements by which chunks are formed.
        Processes that compute norms together must form the same chunks.
    """

    fuses = True
    norms: Norms = LOCAL_NORMS
    rule: Rule
    fused: Rule

    def __init__(self, groups: Iterable[Any], preset: Preset, chunk: int = CHUNK) -> None:
        """Create an optimiser with the preset's settings.

        groups: parameter groups from ``group_parameters``, or weights that all get the preset's
            decay and trust ratios.
        """
        self.preset, self.chunk = preset, chunk
        self.sizes: Mapping[Tensor, int] = {}
        usual = {"weight_decay": preset.weight_decay, "trust": preset.trust == "all"}
        super().__init__(groups, {"lr": preset.lr, **usual, "step": 0})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Change each parameter that has a gradient, with the learning rate of its group."""
        for group in self.param_groups:
            group["step"] += 1
            for tensors in self._tensors(group, self.chunk):
                values: list[Any] = [group["lr"], float(group["step"])]
                if self.fuses:
                    values = [torch.full((), value, device=tensors.weights[0].device) for value in values]
                (self.fused if self.fuses else self.rule)(tensors, StepScalars(*values), self.settings(group))

    def settings(self, group: dict[str, Any]) -> GroupSettings:
        """Return the settings of a parameter group as a record."""
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
        """Names of the moments that the state holds for each weight. They are PyTorch's names."""

    def tensors(self, chunk: int | None) -> list[tuple[StepTensors, GroupSettings]]:
        """Return the tensors of all weights that have a gradient, in chunks, each with the
        settings of its group.

        chunk: approximate number of elements in a chunk. None for one chunk per parameter group.
        """
        return [
            (tensors, self.settings(group))
            for group in self.param_groups
            for tensors in self._tensors(group, chunk)
        ]

    def _tensors(self, group: dict[str, Any], chunk: int | None) -> Iterator[StepTensors]:
        """Yield the tensors of a parameter group in chunks.

        chunk: approximate number of elements in a chunk. None for a single chunk.
        """
        used = [weight for weight in group["params"] if weight.grad is not None]
        # Weights whose ends lie in the same multiple of ``chunk`` are changed together. For example, four
        # weights of size 3 end at [3, 6, 9, 12]. With chunk 6 these ends lie in the multiples [0, 1, 1, 2],
        # which makes 3 chunks.
        ends = accumulate(self.sizes.get(weight, weight.numel()) for weight in used)
        for _, items in groupby(zip(used, ends, strict=True), lambda item: chunk and item[1] // chunk):
            weights = [weight for weight, _ in items]
            gradients = [weight.grad for weight in weights]
            moments = tuple([self.moment(weight, name) for weight in weights] for name in self.moments)
            yield StepTensors(weights, gradients, moments)

    def moment(self, weight: Tensor, name: str) -> Tensor:
        """Return a moment of the weight. It is zero before the first step.

        name: name of the moment, one of ``moments``.
        """
        state: dict[str, Tensor] = self.state[weight]
        if name not in state:
            state[name] = torch.zeros_like(weight, dtype=torch.float32, requires_grad=False)
        return state[name]


def find_configured_preset(config: Config) -> Preset:
    """Return the preset of the configured optimiser, with the settings that the user has changed."""
    preset: Preset = find("optimiser", config.update.optimiser)
    if preset.decays_by_share:
        preset = replace(preset, lr=config.schedule.base_learning_rate)
    return config.optimiser.changed(preset)


def group_parameters(
    preset: Preset, named_parameters: Iterable[tuple[str, nn.Parameter]]
) -> list[dict[str, Any]]:
    """Return the parameter groups of the weights, as dictionaries with the keys params,
    weight_decay and trust.

    There is a group for each combination of weight decay (yes or no) and trust ratio (yes or no) that occurs.
    """
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for path, parameter in named_parameters:
        if parameter.requires_grad:
            groups.setdefault((preset.decays(path), preset.trusts(path)), []).append(parameter)
    return [
        {"params": parameters, "weight_decay": preset.weight_decay if decays else 0.0, "trust": trusts}
        for (decays, trusts), parameters in groups.items()
    ]
