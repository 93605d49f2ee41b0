"""Inductor's code for an H100 that is not there: kernel launches, bytes moved, and the speed to expect.

``python -m benchmarks.pretended_h100`` needs a CUDA build of PyTorch and Triton, no card. The model is traced
in memory that does not exist, on the processor, because autograd asks a card for its streams; the graphs are
moved to the card before Inductor makes kernels of them. Forward and backward pass of one micro-batch of
BERT-Large in bf16, with dropout, are generated for one layer and for two; 24 follow, because all are alike.

Bytes are those that each kernel reads and writes at least. The time to expect is that of the matrix
products at PRODUCTS of the card's limit, of attention at ATTENTION of it, and of the other kernels' bytes at
BANDWIDTH.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves, tree_map_only

from trainer.config.model import ModelConfig
from trainer.data.batches import FlatBatch
from trainer.devices.cuda_attention import flash_attention
from trainer.devices.cuda_losses import cross_entropy
from trainer.model.bert import BertForPreTraining
from trainer.tasks.pretraining import pretraining_loss
from trainer.tasks.task import Outcome

LAYERS = 24
LIMIT, MEMORY = 989e12, 3.35e12
"""Dense bf16 operations and bytes a second of an H100 with HBM3."""

PRODUCTS, ATTENTION, BANDWIDTH = 0.70, 0.35, 0.85
"""Shares of the limits that large products, attention with dropout, and elementwise kernels reach."""


class Size(NamedTuple):
    """A micro-batch: tokens of its budget, those that are real, masked slots, sequences, the longest."""

    tokens: int
    real: int
    masks: int
    sequences: int
    longest: int


PHASES = {
    "phase 1": Size(tokens=29_568, real=29_467, masks=4_408, sequences=256, longest=128),
    "phase 2": Size(tokens=33_088, real=32_766, masks=4_976, sequences=128, longest=512),
}


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


def empty_batch(size: Size) -> FlatBatch:
    """A micro-batch of that size, for its shapes."""
    masks, sequences = size.masks, size.sequences
    shapes = {
        "input_ids": size.tokens,
        "token_type_ids": size.tokens,
        "position_ids": size.tokens,
        "ends": 2 * sequences + 1,
        "first_rows": sequences,
        "masked_lm_rows": masks,
        "masked_lm_ids": masks,
        "next_sentence_labels": sequences,
    }
    tensors = {name: torch.zeros(length, dtype=torch.int32) for name, length in shapes.items()}
    return FlatBatch(**tensors, masked_lm_weights=torch.zeros(masks), longest=size.longest, tokens=size.real)


class Step(nn.Module):
    """Model and loss of a micro-batch, as the trainer compiles them on a card."""

    def __init__(self, model: BertForPreTraining) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: FlatBatch) -> Outcome:
        return pretraining_loss(self.model(batch), batch, cross_entropy)


def count_passes(size: Size, layers: int) -> tuple[Count, Count]:
    """Kernels of the forward and of the backward pass of a model with so many layers."""
    counts = list[Count]()
    with torch.device("meta"):
        model = BertForPreTraining(shape_of(layers))
    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        pretended_card(lambda graph: counts.append(count_kernels(graph))),
        patch.object(F, "dropout", native_dropout),
        torch.autocast("cpu", torch.bfloat16),
    ):
        model = model.to_empty(device="cpu")
        model.bert.attention = flash_attention
        step = torch.compile(Step(model), backend=backend, dynamic=False)
        step(empty_batch(size)).loss.backward()
    forward, backward = counts
    return forward, backward
