"""16-bit copies of the weights, made once per update.

PyTorch's autocast would make such copies in each micro-batch.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call

from trainer.data.batches import Batch
from trainer.tasks.task import Outcome


class HalfWeights:
    """A model with its loss whose linear layers use 16-bit copies of their weights.

    As soon as the gradient of a copy is complete, it is added to the gradient of the fp32 weight and freed.
    half: type of the copies, bfloat16 or float16.
    """

    def __init__(self, learner: nn.Module, half: torch.dtype) -> None:
        self._learner = learner
        self._weights = find_linear_weights(learner)
        self._copies = {
            name: weight.detach().to(half).requires_grad_() for name, weight in self._weights.items()
        }
        for name, copy in self._copies.items():
            copy.register_post_accumulate_grad_hook(_make_adding_hook(self._weights[name]))  # type: ignore[no-untyped-call]

    def __call__(self, batch: Batch) -> Outcome:
        outcome: Outcome = functional_call(self._learner, self._copies, (batch,))
        return outcome

    @torch.no_grad()
    def refresh(self) -> None:
        """Copy the present values of the weights into the 16-bit copies. Call this before each update."""
        torch._foreach_copy_(list(self._copies.values()), list(self._weights.values()))

    def leaves(self, weights: list[Tensor]) -> list[Tensor]:
        """Return for each weight the tensor whose gradient the backward pass computes.

        This is the 16-bit copy if the weight has one, otherwise the weight.
        """
        copies = {id(self._weights[name]): copy for name, copy in self._copies.items()}
        return [copies.get(id(weight), weight) for weight in weights]


def find_linear_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights and biases of the model's linear layers, by name."""
    return {
        f"{path}.{name}": weight
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear)
        for name, weight in module.named_parameters(recurse=False)
    }


def _make_adding_hook(weight: Tensor) -> Callable[[Tensor], None]:
    """Return a function for the backward pass that adds the gradient of a 16-bit copy to ``weight.grad``."""

    def add_gradient(copy: Tensor) -> None:
        assert copy.grad is not None
        if weight.grad is None:
            weight.grad = copy.grad.to(weight.dtype)
        else:
            weight.grad.add_(copy.grad)
        copy.grad = None

    return add_gradient
