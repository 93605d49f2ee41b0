"""The optimisers' base, and how one is made: one function over tensors, which the host never waits for."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bertdata.config.value_check import check_names
from trainer.config.settings import Config
from trainer.config.update import Preset, find_preset
from trainer.devices.device import Device
from trainer.registry import find

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


Rule = Callable[[Tensors, Numbers, Any], None]
"""A step, in place, on tensors of one parameter group with its settings."""

_SETTINGS = {
    "lamb": ("betas", "eps", "debias"),
    "adamw": ("betas", "eps"),
    "stableadamw": ("betas", "eps", "decays_by_share"),
    "sgd": ("momentum",),
}
"""The fields of a preset that its kind of optimiser takes."""


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
        return torch.stack(list(torch._foreach_norm(list(tensors))))

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        """0-dim: the norm of the whole model's gradients together, of which the tensors are this process's.

        The tensors are those of all weights that have a gradient, in the order of the optimiser's groups.
        """
        norm: Tensor = torch.linalg.vector_norm(self.each(tensors))
        return norm


LOCAL_NORMS = Norms()


class Optimiser(torch.optim.Optimizer):
    """An optimiser whose step is a function: ``rule`` in plain operations, ``fused`` in fused kernels.

    A group's ``step`` counts the calls of ``step``. state_dict holds tensors and plain numbers only. usual:
    a group's settings, where none are given. chunk: the approximate number of elements changed at a time,
    which bounds temporary memory. fuses: ``step`` uses the fused kernels, which PyTorch has for some devices.
    norms: of weights and changes.
    sizes: elements that count for the chunks, of weights of which each process holds a part: processes that
    compute norms together must have the same chunks.
    """

    kind: str
    usual: Mapping[str, Any]
    fuses = True
    norms: Norms = LOCAL_NORMS
    fused: Rule

    def __init__(self, params: Iterable[Any], *, chunk: int = CHUNK, **settings: Any) -> None:
        check_names(settings, self.usual, f"{self.kind}: ")
        self.chunk = chunk
        self.sizes: Mapping[Tensor, int] = {}
        super().__init__(params, {**self.usual, **settings, "step": 0})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update each parameter that has a gradient, with the groups' rates."""
        with torch.enable_grad():
            result = closure() if closure else None
        for group in self.param_groups:
            group["step"] += 1
            settings = self.settings(group)
            for tensors in self._tensors(group, self.chunk):
                values = group["lr"], float(group["step"])
                if self.fuses:
                    device = tensors.weights[0].device
                    numbers = Numbers(*(torch.full((), value, device=device) for value in values))
                    self.fused(tensors, numbers, settings)
                else:
                    self.rule(tensors, Numbers(*values), settings)
        return result

    @property
    def rule(self) -> Rule:
        """A step in plain operations, which a compiler joins."""
        rule: Rule = find("plain step", self.kind)
        return rule

    @abstractmethod
    def settings(self, group: dict[str, Any]) -> Any:
        """The group's settings, immutable, without its rate."""

    @abstractmethod
    def moments_of(self, settings: Any) -> tuple[str, ...]:
        """Names of the moments that the state holds for each weight, as PyTorch names them."""

    def tensors(self, chunk: int | None) -> list[tuple[Tensors, Any]]:
        """Tensors of all weights that have a gradient, with settings. None: one entry a group."""
        return [
            (tensors, self.settings(group))
            for group in self.param_groups
            for tensors in self._tensors(group, chunk)
        ]

    def _tensors(self, group: dict[str, Any], chunk: int | None) -> Iterator[Tensors]:
        names = self.moments_of(self.settings(group))
        used = [weight for weight in group["params"] if weight.grad is not None]
        ends = accumulate(self.sizes.get(weight, weight.numel()) for weight in used)
        for _, items in groupby(zip(used, ends, strict=True), lambda item: chunk and item[1] // chunk):
            weights = [weight for weight, _ in items]
            gradients = [weight.grad for weight in weights]
            moments = tuple([self.moment(weight, name) for weight in weights] for name in names)
            yield Tensors(weights, gradients, moments)

    def moment(self, weight: Tensor, name: str) -> Tensor:
        """That moment of the weight, zeros before the first step."""
        state: dict[str, Tensor] = self.state[weight]
        if name not in state:
            state[name] = torch.zeros_like(weight, dtype=torch.float32, requires_grad=False)
        return state[name]


def configured_preset(config: Config) -> Preset:
    """The configured optimiser's preset, with the settings that the configuration gives."""
    keys, usual = config.update, find_preset(config.update.optimiser)
    beta1, beta2 = usual.betas
    settings = {
        "lr": config.schedule.base_learning_rate if usual.decays_by_share else None,
        "betas": (beta1 if keys.beta1 is None else keys.beta1, beta2 if keys.beta2 is None else keys.beta2),
        "eps": keys.optimiser_epsilon,
        "weight_decay": keys.weight_decay,
        "decay_skips": None if keys.decay_skips is None else tuple(keys.decay_skips),
        "debias": keys.use_debiasing,
        "momentum": keys.momentum,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    return find_preset(keys.optimiser, **given)


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


def build_optimiser(preset: Preset, groups: list[dict[str, Any]]) -> Optimiser:
    """The preset's optimiser over the groups."""
    settings = {name: getattr(preset, name) for name in _SETTINGS[preset.kind]}
    optimiser: Optimiser = find("optimiser", preset.kind)(groups, lr=preset.lr, **settings)
    return optimiser
