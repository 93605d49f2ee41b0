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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.func import functional_call
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves, tree_map_only

from bertdata.records import ShardLayout
from trainer.config.model import ModelConfig
from trainer.data.batches import FlatBatch
from trainer.data.forms import make_form
from trainer.data.generated import generated_data
from trainer.data.loader import Loader
from trainer.devices import cuda_losses
from trainer.devices.cuda_attention import flash_attention
from trainer.model import losses
from trainer.model.bert import BertForPreTraining
from trainer.model.pretraining import pretraining_loss
from trainer.model.task import Outcome, RowLosses

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


class Properties:
    """What Inductor asks of a card, as an H100 answers."""

    name = "NVIDIA H100 80GB HBM3"
    major, minor = 9, 0
    total_memory = 80 * 2**30
    multi_processor_count = 132
    max_threads_per_multi_processor = 2048
    max_threads_per_block = 1024
    regs_per_multiprocessor = 65536
    shared_memory_per_block = 49152
    shared_memory_per_block_optin = 232448
    L2_cache_size = 50 * 2**20
    warp_size = 32
    gcnArchName = ""


class Driver:
    """What Triton asks of a card's driver."""

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)


class Generated(Exception):
    """Inductor has made the code, which cannot run here."""


@contextmanager
def pretended_card(keep: Callable[[Any], None]) -> Iterator[None]:
    """Inductor makes code for the card and gives its graph to ``keep`` in place of loading the code."""
    import triton
    from torch._dynamo.device_interface import CudaInterface
    from torch._inductor.graph import GraphLowering

    def generate(graph: Any) -> None:
        graph.freeze_runtime_asserts()
        graph.codegen()
        keep(graph)
        raise Generated

    answers: dict[Any, dict[str, Any]] = {
        torch.cuda: {
            "get_device_properties": lambda *_: Properties,
            "_get_device_properties": lambda *_: Properties,
            "get_device_capability": lambda *_: (9, 0),
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "_lazy_init": lambda: None,
        },
        CudaInterface: {
            "is_available": staticmethod(lambda: True),
            "is_bf16_supported": staticmethod(lambda *_, **__: True),
            "is_triton_capable": staticmethod(lambda *_, **__: True),
            "raise_if_triton_unavailable": staticmethod(lambda *_, **__: None),
            "get_compute_capability": staticmethod(lambda *_, **__: 90),
        },
        CudaInterface.Worker: {"get_device_properties": staticmethod(lambda *_, **__: Properties)},
        GraphLowering: {"compile_to_module": generate},
    }
    patches = [patch.multiple(owner, create=True, **given) for owner, given in answers.items()]
    triton.runtime.driver.set_active(Driver())
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


def count_kernels(graph: Any) -> Count:
    """Launches and bytes of a generated graph; matrix products and attention count as kernels of others."""
    from torch._inductor.scheduler import ExternKernelSchedulerNode

    found = Count()
    for node in graph.scheduler.nodes:
        moved = node.get_read_write_buffers_sizes()
        if moved == 0:
            continue
        is_product = isinstance(node, ExternKernelSchedulerNode)
        found += Count(1, moved, 0 if is_product else moved)
    return found


def on_the_card(graph: torch.fx.GraphModule) -> None:
    """Move a traced graph, whose tensors have no memory, from the processor to the card."""
    values = [leaf for node in graph.graph.nodes for leaf in tree_leaves(node.meta.get("val"))]
    mode = next(value.fake_mode for value in values if isinstance(value, FakeTensor))

    def moved(tensor: Tensor) -> Tensor:
        with mode:
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda")

    card = partial(tree_map_only, torch.device, lambda _: torch.device("cuda", 0))
    for node in graph.graph.nodes:
        if "val" in node.meta:
            node.meta["val"] = tree_map_only(FakeTensor, moved, node.meta["val"])
        node.meta.pop("tensor_meta", None)
        node.args, node.kwargs = card(node.args), card(dict(node.kwargs))
    graph.recompile()


def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
    """torch.compile's Inductor for the pretended card; what it returns computes nothing."""
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    def inner(graph: torch.fx.GraphModule, _: Sequence[Any], **settings: Any) -> Any:
        outputs = next(node for node in graph.graph.nodes if node.op == "output").args[0]
        kept = [one.meta["val"] if isinstance(one, torch.fx.Node) else one for one in outputs]
        on_the_card(graph)
        given = [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"]
        try:
            compile_fx_inner(graph, given, **settings)
        except Exception as error:
            if not _is_generated(error):
                raise

        def run(_: Sequence[Any]) -> list[Any]:
            return tree_map_only(Tensor, lambda one: one.new_empty_strided(one.shape, one.stride()), kept)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return compile_fx(graph, inputs, inner_compile=inner)


def _is_generated(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, Generated):
        error = error.__cause__ or error.__context__
    return error is not None


def native_dropout(rows: Tensor, rate: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout as on a card, where its mask has a byte a value."""
    return torch.native_dropout(rows, rate, True)[0] if training and rate else rows


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
    data = generated_data(layout, vocabulary_size=30522, fill=fill)
    form = make_form(data, batch_size=size, rows=False, micro_batches=ACCUMULATION)
    loader = Loader(data, form=form, batch_size=size, accumulation=ACCUMULATION)
    batches = [batch for update in islice(loader, 4) for batch in update.batches]
    loader.close()
    middle = sorted(batches, key=lambda batch: len(batch.input_ids))[len(batches) // 2]
    assert isinstance(middle, FlatBatch)
    return middle


class Step(nn.Module):
    """Model and loss of a micro-batch, as the trainer compiles them."""

    def __init__(self, model: BertForPreTraining, row_losses: RowLosses) -> None:
        super().__init__()
        self.model, self.row_losses = model, row_losses

    def forward(self, batch: FlatBatch) -> Outcome:
        return pretraining_loss(self.model(batch), batch, self.row_losses)


def half_copies(model: nn.Module) -> dict[str, Tensor]:
    """The weights of linear layers in bf16, as ``trainer.strategies.half_weights`` makes them."""
    return {
        f"model.{path}.{name}": weight.detach().to(torch.bfloat16).requires_grad_()
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear)
        for name, weight in module.named_parameters(recurse=False)
    }


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
        step = Step(model, losses.cross_entropy if before else cuda_losses.cross_entropy)
        step.compile(backend=backend, dynamic=False)
        fake = batch.map(torch.zeros_like)
        copies = {} if before else half_copies(model)
        functional_call(step, copies, (fake,)).loss.backward()
    torch._dynamo.reset()
    forward, backward = counts
    return forward + backward


def count_outside(weights: list[int], linear: list[int], *, before: bool) -> Count:
    """What is launched around the compiled passes; weights, linear: sizes of all tensors and of those copied.

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
    linear = [copy.numel() for copy in half_copies(model).values()]
    return inside + count_outside(weights, linear, before=before)


def expected_seconds(batch: FlatBatch, count: Count) -> float:
    """Seconds of a micro-batch on the card, with its padding and its share of the update's end."""
    shape = shape_of(LAYERS)
    width, inner = shape.hidden_size, shape.intermediate_size
    layer = 4 * width * width + 2 * width * inner
    heads = len(batch.masked_lm_ids) * width * (width + shape.padded_vocab_size)
    products = 3 * 2 * (LAYERS * len(batch.input_ids) * layer + heads)
    lengths = batch.ends.diff().double()
    attention = (1 + 2.5) * 4 * LAYERS * width * float((lengths * lengths).sum())
    return (
        products / (PRODUCTS * LIMIT)
        + attention / (ATTENTION * LIMIT)
        + (count.other_bytes + LAMB * shape.parameters / ACCUMULATION) / (BANDWIDTH * MEMORY)
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
