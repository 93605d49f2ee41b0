"""Estimate of the trainer's speed on an H100 without having one, from the code that is generated for it.

``python -m benchmarks.pretended_h100`` needs Triton and a C++ compiler, but no GPU. It prints kernel
launches, bytes moved and expected times. The model is traced on the processor with tensors without memory,
because autograd would ask a GPU for its streams. Then the graphs are moved to a pretended GPU, for which
Inductor, the code generator of torch's compiler, generates kernels.

The passes of a micro-batch of BERT-Large in bf16 with dropout are generated for one layer and for two layers.
The figures for 24 layers follow from these, because all layers are alike. "Before" is an earlier version of
the trainer: its loss keeps the softmax in fp32, and it converts the weights to bf16 in each micro-batch.

Bytes are the least that each kernel reads and writes. For the expected time it is assumed that matrix
products reach the share PRODUCTS of the GPU's arithmetic limit, and attention the share ATTENTION. All other
kernels are assumed to reach the share BANDWIDTH of the memory's bandwidth.
"""

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from benchmarks.pretended_card import compile_for_card, native_dropout, pretend_card
from bertdata.records import ShardLayout
from trainer.config.model import ModelConfig
from trainer.data.batches import FlatBatch
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.devices import cuda_losses
from trainer.devices.cuda_attention import flash_attention
from trainer.model.headed import BertForPreTraining
from trainer.tasks.pretraining import compute_pretraining_loss, cross_entropy
from trainer.tasks.task import Outcome, RowLosses
from trainer.update.half_weights import HalfWeights, find_linear_weights

LAYERS = 24
LIMIT, MEMORY = 989e12, 3.35e12
"""Limits of an H100 with HBM3 memory: dense bf16 operations per second, and bytes per second."""

PRODUCTS, ATTENTION, BANDWIDTH = 0.70, 0.35, 0.85
"""Shares of the limits of an H100 that its kernels are assumed to reach.

PRODUCTS and ATTENTION are shares of the limit LIMIT on operations: for large matrix products, and for
attention with dropout. BANDWIDTH is the share of the memory's bandwidth that elementwise kernels reach.
"""

PHASES = {"phase 1": (128, 20, 256, 0.9), "phase 2": (512, 80, 128, 0.5)}
"""For each phase: ids of an example, masks of an example, examples of a micro-batch, share of ids that are
not padding.
"""

ACCUMULATION = 8
"""Number of micro-batches of an update."""

LAMB = 68
"""Bytes that clipping and the fused LAMB read and write for each weight in an update."""


@dataclass
class KernelCounts:
    """Counts of the kernels of a pass.

    launches: number of launches.
    bytes: bytes that all kernels read and write.
    other_bytes: bytes that all kernels except matrix products and attention read and write.
    """

    launches: float = 0
    bytes: float = 0
    other_bytes: float = 0

    def __add__(self, other: "KernelCounts") -> "KernelCounts":
        return KernelCounts(*(one + two for one, two in zip(self.values(), other.values(), strict=True)))

    def __mul__(self, factor: float) -> "KernelCounts":
        return KernelCounts(*(value * factor for value in self.values()))

    def values(self) -> tuple[float, float, float]:
        """Return the three counts."""
        return self.launches, self.bytes, self.other_bytes


def count_kernels(graph: Any) -> KernelCounts:
    """Count the kernels of a graph for which Inductor has generated code.

    Matrix products and attention are recognised as kernels of other libraries.
    """
    from torch._inductor.scheduler import ExternKernelSchedulerNode

    found = KernelCounts()
    for node in graph.scheduler.nodes:
        moved = node.get_read_write_buffers_sizes()
        if moved == 0:
            continue
        is_product = isinstance(node, ExternKernelSchedulerNode)
        found += KernelCounts(1, moved, 0 if is_product else moved)
    return found


def make_shape(layers: int) -> ModelConfig:
    """Return BERT-Large with this many layers."""
    return ModelConfig(
        vocab_size=30522,
        hidden_size=1024,
        num_hidden_layers=layers,
        num_attention_heads=16,
        intermediate_size=4096,
    )


def make_typical_batch(phase: str) -> FlatBatch:
    """Return a micro-batch of generated examples with the sizes of the phase."""
    length, masks, size, fill = PHASES[phase]
    layout = ShardLayout(max_seq_length=length, max_predictions_per_seq=masks)
    data = generate_data(layout, vocabulary_size=30522, fill=fill)
    form = make_form(Rows(data), batch_size=size, micro_batches=ACCUMULATION)
    loader = Loader(Rows(data), form=form, batch_size=size, accumulation=ACCUMULATION)
    batches = [batch for update in islice(loader, 4) for batch in update.batches]
    loader.close()
    middle = sorted(batches, key=lambda batch: len(batch.input_ids))[len(batches) // 2]
    assert isinstance(middle, FlatBatch)
    return middle


class CompiledStep(nn.Module):
    """The model and the loss of a micro-batch as one module, which the trainer compiles as a whole."""

    def __init__(self, model: BertForPreTraining, row_losses: RowLosses) -> None:
        super().__init__()
        self.model, self.row_losses = model, row_losses

    def forward(self, batch: FlatBatch) -> Outcome:
        """Return the loss of a micro-batch."""
        return compute_pretraining_loss(self.model(batch), batch, self.row_losses)


def count_passes(batch: FlatBatch, layers: int, *, before: bool) -> KernelCounts:
    """Count the kernels of the forward and the backward pass of a model with this many layers.

    before: True for the earlier version of the trainer.
    """
    counts = list[KernelCounts]()
    with torch.device("meta"):
        model = BertForPreTraining(make_shape(layers))
    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        pretend_card(lambda graph: counts.append(count_kernels(graph))),
        patch.object(F, "dropout", native_dropout),
        torch.autocast("cpu", torch.bfloat16),
        torch._inductor.config.patch(force_disable_caches=True),
    ):
        model = model.to_empty(device="cpu")
        model.bert.attention = flash_attention
        step = CompiledStep(model, cross_entropy if before else cuda_losses.cross_entropy)
        step.compile(backend=compile_for_card, dynamic=False)
        fake = batch.map(torch.zeros_like)
        forward = step if before else HalfWeights(step, torch.bfloat16)
        forward(fake).loss.backward()
    torch._dynamo.reset()
    of_forward, of_backward = counts
    return of_forward + of_backward


def count_outside(weights: list[int], linear: list[int], *, before: bool) -> KernelCounts:
    """Count the kernels of a micro-batch that are not part of the compiled passes.

    They add the gradient of each weight to a sum in fp32. This moves 12 bytes per weight, or 10 bytes for a
    weight that has a 16-bit copy. The copies are made once per update.

    weights: number of elements of each weight.
    linear: number of elements of each weight that has a 16-bit copy.
    before: True for the earlier version of the trainer, which has no such copies.
    """
    if before:
        return KernelCounts(len(weights), 12 * sum(weights), 12 * sum(weights))
    moved = 12 * (sum(weights) - sum(linear)) + (10 + 6 / ACCUMULATION) * sum(linear)
    return KernelCounts(len(weights) + len(linear) / ACCUMULATION, moved, moved)


def count_micro_batch(batch: FlatBatch, *, before: bool) -> KernelCounts:
    """Count the kernels of a micro-batch of BERT-Large.

    before: True for the earlier version of the trainer.
    """
    one, two = (count_passes(batch, layers, before=before) for layers in (1, 2))
    inside = one + (two + one * -1) * (LAYERS - 1)
    with torch.device("meta"):
        model = BertForPreTraining(make_shape(LAYERS))
    weights = [weight.numel() for weight in model.parameters()]
    linear = [weight.numel() for weight in find_linear_weights(model).values()]
    return inside + count_outside(weights, linear, before=before)


def estimate_seconds(batch: FlatBatch, count: KernelCounts) -> float:
    """Return the seconds that a micro-batch takes on an H100, with its part of the update's end.

    count: counts of the micro-batch's kernels.
    """
    shape = make_shape(LAYERS)
    width, inner = shape.hidden_size, shape.intermediate_size
    layer = 4 * width * width + 2 * width * inner
    with torch.device("meta"):
        weights = BertForPreTraining(shape).count_weights()
    heads = len(batch.masked_lm_ids) * width * (width + shape.padded_vocab_size)
    products = 3 * 2 * (LAYERS * len(batch.input_ids) * layer + heads)
    lengths = batch.ends.diff().double()
    attention = (1 + 2.5) * 4 * LAYERS * width * float((lengths * lengths).sum())
    return (
        products / (PRODUCTS * LIMIT)
        + attention / (ATTENTION * LIMIT)
        + (count.other_bytes + LAMB * weights / ACCUMULATION) / (BANDWIDTH * MEMORY)
    )


def main() -> int:
    """Print the figures of both phases. Returns the exit status."""
    if find_spec("triton") is None:
        print("benchmarks.pretended_h100: needs Triton: pip install triton", file=sys.stderr)
        return 2
    print("| phase | | launches | GB moved | GB but products and attention | ms | sequences/s |")
    print("|---|---|---|---|---|---|---|")
    for phase in PHASES:
        batch = make_typical_batch(phase)
        for name, before in (("before", True), ("now", False)):
            count = count_micro_batch(batch, before=before)
            seconds = estimate_seconds(batch, count)
            numbers = f"{count.launches:,.0f} | {count.bytes / 1e9:.0f} | {count.other_bytes / 1e9:.1f}"
            print(
                f"| {phase} | {name} | {numbers} | {seconds * 1e3:.1f} | {len(batch) / seconds:,.0f} |",
                flush=True,
            )
    sys.stdout.flush()
    os._exit(0)  # Exit without the exit handlers, which would close a driver that does not exist.


if __name__ == "__main__":
    sys.exit(main())
