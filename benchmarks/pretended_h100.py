"""Inductor's code for an H100 that is not there: kernel launches, bytes moved, and the speed to expect.

``python -m benchmarks.pretended_h100`` needs a CUDA build of PyTorch and Triton, no card. The model is traced
in memory that does not exist, on the processor, because autograd asks a card for its streams; the graphs are
moved to the card before Inductor makes kernels of them. Forward and backward pass of one micro-batch of
BERT-Large in bf16, with dropout, are generated for one layer and for two; 24 follow, because all are alike.
"Before" is the same with the loss that keeps the softmax in fp32, and the weights cast in each micro-batch.

Bytes are those that each kernel reads and writes at least. The time to expect is that of the matrix products
at PRODUCTS of the card's limit, of attention at ATTENTION of it, and of all other bytes at BANDWIDTH of the
memory's.
"""

import os
import sys
from dataclasses import dataclass
from itertools import islice
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from benchmarks.pretended_card import backend, native_dropout, pretended_card
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
from trainer.tasks.pretraining import cross_entropy, pretraining_loss
from trainer.tasks.task import Outcome, RowLosses
from trainer.update.half_weights import HalfWeights, find_linear_weights

LAYERS = 24
LIMIT, MEMORY = 989e12, 3.35e12
"""Dense bf16 operations and bytes a second of an H100 with HBM3."""

PRODUCTS, ATTENTION, BANDWIDTH = 0.70, 0.35, 0.85
"""Shares of the limits that large products, attention with dropout, and elementwise kernels reach."""

PHASES = {"phase 1": (128, 20, 256, 0.9), "phase 2": (512, 80, 128, 0.5)}
"""Ids and masked slots of an example, examples of a micro-batch, and fill, the share of real ids."""

ACCUMULATION = 8
"""Micro-batches of an update."""

LAMB = 68
"""Bytes a weight that clipping and the fused LAMB read and write in an update."""


@dataclass
class Count:
    """Kernels of one pass: all launches, and bytes of those that are not matrix products or attention."""

    launches: float = 0
    bytes: float = 0
    other_bytes: float = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(*(one + two for one, two in zip(self.values(), other.values(), strict=True)))

    def __mul__(self, factor: float) -> "Count":
        return Count(*(value * factor for value in self.values()))

    def values(self) -> tuple[float, float, float]:
        return self.launches, self.bytes, self.other_bytes


def count_kernels(graph: Any) -> Count:
    """Launches and bytes of a generated graph. Matrix products and attention count as foreign kernels."""
    from torch._inductor.scheduler import ExternKernelSchedulerNode

    found = Count()
    for node in graph.scheduler.nodes:
        moved = node.get_read_write_buffers_sizes()
        if moved == 0:
            continue
        is_product = isinstance(node, ExternKernelSchedulerNode)
        found += Count(1, moved, 0 if is_product else moved)
    return found


def shape_of(layers: int) -> ModelConfig:
    """BERT-Large with so many layers."""
    return ModelConfig(
        vocab_size=30522,
        hidden_size=1024,
        num_hidden_layers=layers,
        num_attention_heads=16,
        intermediate_size=4096,
    )


def typical_batch(phase: str) -> FlatBatch:
    """A micro-batch of the phase, of generated examples."""
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
    """Model and loss of a micro-batch, as the trainer compiles them."""

    def __init__(self, model: BertForPreTraining, row_losses: RowLosses) -> None:
        super().__init__()
        self.model, self.row_losses = model, row_losses

    def forward(self, batch: FlatBatch) -> Outcome:
        return pretraining_loss(self.model(batch), batch, self.row_losses)


def count_passes(batch: FlatBatch, layers: int, *, before: bool) -> Count:
    """Kernels of the forward and backward pass of a model with so many layers."""
    counts = list[Count]()
    with torch.device("meta"):
        model = BertForPreTraining(shape_of(layers))
    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        pretended_card(lambda graph: counts.append(count_kernels(graph))),
        patch.object(F, "dropout", native_dropout),
        torch.autocast("cpu", torch.bfloat16),
        torch._inductor.config.patch(force_disable_caches=True),
    ):
        model = model.to_empty(device="cpu")
        model.bert.attention = flash_attention
        step = CompiledStep(model, cross_entropy if before else cuda_losses.cross_entropy)
        step.compile(backend=backend, dynamic=False)
        fake = batch.map(torch.zeros_like)
        forward = step if before else HalfWeights(step, torch.bfloat16)
        forward(fake).loss.backward()
    torch._dynamo.reset()
    of_forward, of_backward = counts
    return of_forward + of_backward


def count_outside(weights: list[int], linear: list[int], *, before: bool) -> Count:
    """Launches and bytes around the compiled passes. weights, linear: sizes of all, and of copied tensors.

    Gradients are added to those in fp32, 12 bytes each, a copy's 10; the copies are made once an update.
    """
    if before:
        return Count(len(weights), 12 * sum(weights), 12 * sum(weights))
    moved = 12 * (sum(weights) - sum(linear)) + (10 + 6 / ACCUMULATION) * sum(linear)
    return Count(len(weights) + len(linear) / ACCUMULATION, moved, moved)


def count_micro_batch(batch: FlatBatch, *, before: bool) -> Count:
    """Kernels of a micro-batch of BERT-Large."""
    one, two = (count_passes(batch, layers, before=before) for layers in (1, 2))
    inside = one + (two + one * -1) * (LAYERS - 1)
    with torch.device("meta"):
        model = BertForPreTraining(shape_of(LAYERS))
    weights = [weight.numel() for weight in model.parameters()]
    linear = [weight.numel() for weight in find_linear_weights(model).values()]
    return inside + count_outside(weights, linear, before=before)


def expected_seconds(batch: FlatBatch, count: Count) -> float:
    """Seconds of a micro-batch on the card, with its padding and its share of the update's end."""
    shape = shape_of(LAYERS)
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
    if torch.version.cuda is None:
        print("benchmarks.pretended_h100: needs a build of torch for CUDA, with Triton", file=sys.stderr)
        return 2
    print("| phase | | launches | GB moved | GB but products and attention | ms | sequences/s |")
    print("|---|---|---|---|---|---|---|")
    for phase in PHASES:
        batch = typical_batch(phase)
        for name, before in (("before", True), ("now", False)):
            count = count_micro_batch(batch, before=before)
            seconds = expected_seconds(batch, count)
            numbers = f"{count.launches:,.0f} | {count.bytes / 1e9:.0f} | {count.other_bytes / 1e9:.1f}"
            print(
                f"| {phase} | {name} | {numbers} | {seconds * 1e3:.1f} | {len(batch) / seconds:,.0f} |",
                flush=True,
            )
    sys.stdout.flush()
    os._exit(0)  # a driver that is not there cannot be closed


if __name__ == "__main__":
    sys.exit(main())
