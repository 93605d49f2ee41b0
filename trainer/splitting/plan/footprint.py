"""Operations and memory of the parts of a model, counted by running the real modules on fake tensors.

PyTorch's fake tensors have shapes but no data, so a layer of any size is counted in a fraction of a second.
"""

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from trainer.config.model import ModelConfig
from trainer.devices.counting import HOST, make_flop_counter, make_host_autocast
from trainer.devices.device import HALVES
from trainer.model.modernbert import RotaryAttention
from trainer.splitting.plan.parts import ModelPart, Shape, list_part_names, make_part


class PassWork(NamedTuple):
    """Work of a forward or backward pass: floating-point operations, and bytes read and written."""

    flops: int
    moved: int


class Footprint(NamedTuple):
    """Work and memory of a part of the model for one micro-batch. All memory is in bytes.

    parameters: number of weights of the part.
    tied: number of elements of the word embeddings, if the part uses them although they belong to the
        embeddings part.
    forward: operations and memory traffic of the forward pass.
    backward: operations and memory traffic of the backward pass.
    kept: memory that is kept from the forward pass to the backward pass. It includes ``handed``.
    handed: size of the tensors that are passed on to the next part.
    working: memory needed in addition to ``kept`` at the busiest moment of both passes. It
        includes the gradients of weights for this micro-batch, but not the sums over micro-batches
        to which they are added.
    cast: size of the 16-bit copies of weights. ``kept`` includes it.
    """

    parameters: int
    tied: int
    kept: int
    handed: int
    working: int
    cast: int
    forward: PassWork
    backward: PassWork


@cache
def measure_footprints(
    config: ModelConfig, shape: Shape, precision: str, head: str
) -> Mapping[str, Footprint]:
    """Return the work and memory of each part of a model, for micro-batches of this shape.

    The keys are the names that ``list_part_names`` returns.
    precision: "fp32", "bf16", "fp16" or "fp8". For fp8, the layers are measured in bf16: layers in FP8 keep
        the same tensors for the backward pass.
    head: name of the task whose head the model has.
    """
    if shape.attention == "fused":  # the CPU's fused attention kernel does not support dropout
        config = replace(config, attention_probs_dropout_prob=0.0)
    with FakeTensorMode(), HOST:
        parts = {name: make_part(name, config, shape, head) for name in list_part_names(config)}
        if shape.attention == "fused":
            for module in (one for part in parts.values() for one in part.modules()):
                # Fused attention keeps the same memory for a window of tokens (local attention) as for all.
                if isinstance(module, RotaryAttention):
                    module.reach = None
        return {name: measure_part(part, shape, precision) for name, part in parts.items()}


def measure_part(part: ModelPart, shape: Shape, precision: str) -> Footprint:
    """Run a part forward and backward, and return its work and memory.

    The part's tensors may be fake or real.
    """
    # weights already have gradients after the first micro-batch of an update
    for weight in part.parameters():
        weight.grad = torch.zeros_like(weight)
    dtype = HALVES.get(precision, torch.float32)
    given = tuple(tensor.requires_grad_() for tensor in part.make_input(dtype))
    live = LiveBytes(byte_masks=shape.attention == "fused")
    with live, make_flop_counter(part.seen) as forward, make_host_autocast(dtype):
        handed = part(*given)
    kept, moved = live.now, live.moved
    with live, make_flop_counter(part.seen) as backward:
        torch.autograd.backward(handed, [torch.ones_like(one) for one in handed])
    tied = 0 if part.words is None else part.words.numel()
    linear = [weight for one in part.modules() if isinstance(one, nn.Linear) for weight in one.parameters()]
    cast = sum(weight.numel() for weight in linear) + tied  # weights that autocast copies to 16 bits
    return Footprint(
        parameters=sum(weight.numel() for weight in part.parameters()) - tied,
        tied=tied,
        kept=kept,
        handed=sum(one.numel() * one.element_size() for one in handed),
        working=live.peak - kept,
        cast=2 * cast if dtype != torch.float32 else 0,
        forward=PassWork(forward.get_total_flops(), moved),
        backward=PassWork(backward.get_total_flops(), live.moved - moved),
    )


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Dispatch mode that counts the memory of the tensors that are made while it is active, real or fake.

    Temporary memory inside a kernel is not seen.
    now: bytes of all tensors that exist at present.
    peak: maximum of ``now`` so far. It may be set to another value.
    moved: bytes that operations have read and written.
    byte_masks: whether a dropout mask counts as one byte per element, as accelerators store it. On a CPU, a
        mask is a float per element.
    """

    def __init__(self, byte_masks: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = self.moved = 0
        self._byte_masks = byte_masks
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        # A result needs new memory unless it shares storage with an input, as views and in-place results do.
        results = function(*args, **(kwargs or {}))
        read = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        made = [one for one in tree_leaves(results) if isinstance(one, Tensor)]
        older = {tensor.untyped_storage()._cdata for tensor in read}
        new = [one for one in made if one.untyped_storage()._cdata not in older]
        for tensor in new:
            self._add(tensor)
        # Operations that only make views move no bytes.
        if new or function._schema.is_mutable:
            self.moved += sum(tensor.numel() * tensor.element_size() for tensor in (*read, *made))
        if self._byte_masks and function is torch.ops.aten.bernoulli_.float:
            self._resize(made[0], made[0].numel())
        return results

    def _add(self, tensor: Tensor) -> None:
        """Count the storage of a tensor unless it is counted already. Stop counting it when it is freed."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._sizes:
            return
        self._sizes[key] = storage.nbytes()
        self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._drop, key)

    def _resize(self, tensor: Tensor, size: int) -> None:
        """Change the number of bytes that is counted for a tensor's storage."""
        key = tensor.untyped_storage()._cdata
        if key in self._sizes:
            self.now += size - self._sizes[key]
            self._sizes[key] = size

    def _drop(self, key: int) -> None:
        """Stop counting a storage that has been freed.

        key: key of the storage in the table of counted storages.
        """
        self.now -= self._sizes.pop(key)
