"""Updates on flat batches: no waiting for the device, no work for padding, no compiling again."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import islice

import pytest
import torch
from functorch.compile import make_boxed_func
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from bertdata.records import ShardLayout
from tests.support.compiling import capturing, count_graphs
from tests.support.operations import Operations
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatBatch, Form
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.devices import counting  # noqa: F401 - the formulas of the counted operations
from trainer.devices.cpu import Cpu
from trainer.devices.cuda_attention import flash_attention
from trainer.devices.device import Device
from trainer.model.headed import BertForPreTraining
from trainer.run.strategies import find_strategy
from trainer.tasks.pretraining import Pretraining
from trainer.update.strategy import Strategy, UpdateNumber
from trainer.update.worker import ModelShare, Worker
from trainer.workers.collective import Collective

SHAPE = ModelConfig(
    vocab_size=203,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=64,
)
COMPILED = replace(SHAPE, num_hidden_layers=1)
"""A compiler needs seconds for a layer."""
BATCH_SIZE = 8
WAITS = {"nonzero", "_local_scalar_dense", "is_nonzero", "masked_select", "_unique2", "bincount"}
"""Operations that return a value, or a shape, only when the device has done everything before them."""


class Meta(Device):
    """PyTorch's meta device, whose tensors have no values: to read one is an error."""

    name = "meta"
    process_group = "gloo"

    def autocast(self, precision: str) -> AbstractContextManager[object]:
        return nullcontext()

    def move(self, batch: Batch) -> Batch:
        return batch.map(lambda tensor: tensor.to("meta"))

    attention = staticmethod(flash_attention)


def make_strategy(kind: type[Device] = Cpu, shape: ModelConfig = SHAPE, **settings: object) -> Strategy:
    config = Config.of(optimiser="lamb-nvidia", batch_size=BATCH_SIZE, **settings)
    device = kind(config)
    torch.manual_seed(1)
    model = device.place(BertForPreTraining(shape, device.attention))
    return find_strategy(
        Worker(
            config=config,
            device=device,
            collective=Collective(device),
            model_share=ModelShare(copy=0, copies=1),
            task=Pretraining(),
            model=model,
        )
    )


@pytest.fixture
def flat() -> Iterator[Callable[..., tuple[list[FlatBatch], Form]]]:
    """A function for flat batches of the given fill and their form."""
    loaders = []

    def make(count: int, fill: float = 0.5, **sizes: int) -> tuple[list[FlatBatch], Form]:
        layout = ShardLayout(**{"max_seq_length": 64, "max_predictions_per_seq": 10, **sizes})
        data = generate_data(layout, vocabulary_size=SHAPE.vocab_size, fill=fill)
        form = make_form(Rows(data), batch_size=BATCH_SIZE)
        loaders.append(Loader(Rows(data), form=form, batch_size=BATCH_SIZE))
        return [update.batches[0] for update in islice(loaders[-1], count)], form

    yield make
    for loader in loaders:
        loader.close()


class Work(TorchDispatchMode):
    """Adds up floating-point operations by FlopCounterMode's formulas; that one needs modules, not graphs."""

    total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if count := flop_registry.get(function.overloadpacket):
            self.total += count(*args, **(kwargs or {}), out_val=result)
        return result


class Graphs:
    """The graphs of forward and backward passes, as a compiler gets them; they run operation by operation.

    work: floating-point operations of the graphs that have run.
    """

    def __init__(self) -> None:
        self.all: list[GraphModule] = []
        self.work = 0

    def keep(self, graph: GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        self.all.append(graph)

        def run(*given: Tensor) -> object:
            with Work() as counter:
                result = graph.forward(*given)
            self.work += counter.total
            return result

        return make_boxed_func(run)

    @property
    def operations(self) -> set[str]:
        nodes = (node for graph in self.all for node in graph.graph.nodes if node.op == "call_function")
        return {
            node.target.overloadpacket.__name__ for node in nodes if hasattr(node.target, "overloadpacket")
        }


@pytest.fixture
def graphs() -> Iterator[Graphs]:
    found = Graphs()
    with capturing(aot_autograd(fw_compiler=found.keep, bw_compiler=found.keep)):
        yield found


def update(strategy: Strategy, batch: FlatBatch, number: int = 0) -> Tensor:
    return strategy.update([[batch, batch]], 1e-3, UpdateNumber(0, number, number))[0]


def test_an_update_never_waits_for_the_device(flat):
    """On the meta device no value can be read; only the batches' tensors are copied, and to the device."""
    batches, _ = flat(2)
    strategy = make_strategy(Meta)
    with Operations() as seen:
        for batch in batches:
            values = update(strategy, batch)
    assert values.device.type == "meta"
    assert seen.counts["_flash_attention_forward"] == 2 * 2 * SHAPE.num_hidden_layers
    assert not WAITS & set(seen.counts)
    assert seen.copies == 2 * 2 * 9


def test_an_update_on_the_processor_reads_no_value(flat):
    batches, _ = flat(1)
    strategy = make_strategy()
    with Operations() as seen:
        update(strategy, batches[0])
    assert seen.counts["flat_attention"] == 2 * SHAPE.num_hidden_layers
    assert not WAITS & set(seen.counts)


def work_of(batch: FlatBatch, shape: ModelConfig) -> float:
    """Operations of forward and backward pass for the tokens of the batch, budget's padding included."""
    width, inner, words = shape.hidden_size, shape.intermediate_size, shape.padded_vocab_size
    tokens, slots, pairs = len(batch.input_ids), len(batch.masked_lm_ids), len(batch.first_rows)
    linear = shape.num_hidden_layers * tokens * (4 * width * width + 2 * width * inner)
    heads = slots * (width * width + width * words) + pairs * (width * width + 2 * width)
    # Two products forward, and five backward, where the scores are computed again.
    attention = 7 * shape.num_hidden_layers * width * float((batch.ends.diff().double() ** 2).sum())
    return 2 * (3 * (linear + heads) + attention)


@pytest.mark.parametrize(
    ("compiled", "fill", "count"),
    [
        (False, 0.5, 3),
        (False, 0.9, 3),
        (True, 0.5, 1),
        pytest.param(True, 0.5, 3, marks=pytest.mark.thorough),
        pytest.param(True, 0.9, 3, marks=pytest.mark.thorough),
    ],
)
@pytest.mark.thorough_after_first
def test_an_update_computes_the_tokens_fed_and_no_more(flat, graphs, compiled, fill, count):
    batches, _ = flat(count, fill)
    shape = COMPILED if compiled else SHAPE
    strategy = make_strategy(shape=shape, compile=compiled)
    for batch in batches:
        graphs.work = 0
        if compiled:
            update(strategy, batch)
        else:
            with FlopCounterMode(display=False) as counter:
                update(strategy, batch)
            graphs.work = counter.get_total_flops()
        assert 0.99 <= graphs.work / (2 * work_of(batch, shape)) <= 1.03


@pytest.mark.parametrize("fill", [0.5, 0.9])
def test_the_budgets_padding_is_small(flat, fill):
    batches, _ = flat(300, fill)
    tokens = sum(len(batch.input_ids) for batch in batches)
    assert sum(batch.tokens for batch in batches) >= 0.94 * tokens


@pytest.mark.parametrize(
    ("shape", "numbers"),
    [(COMPILED, [0, 1, 8, 10]), pytest.param(SHAPE, range(100), marks=pytest.mark.thorough)],
    ids=["4", "100"],
)
@pytest.mark.thorough
def test_compiled_updates_have_the_same_graphs_for_each_budget_each_way(flat, graphs, shape, numbers):
    drawn, form = flat(max(numbers) + 1)
    batches = [drawn[number] for number in numbers]
    strategy = make_strategy(shape=shape, compile=True)
    for number, batch in enumerate(batches):
        update(strategy, batch, number)
    budgets = len({len(batch.input_ids) for batch in batches})
    assert 1 < budgets <= min(len(form.budgets.budgets), len(batches) // 2)
    parts = 3  # embeddings, layers and heads
    assert count_graphs() == parts * budgets
    assert len(graphs.all) == 2 * parts * budgets
    assert {"addmm", "flat_attention", "flat_attention_backward"} <= graphs.operations
    assert not WAITS & graphs.operations


@pytest.mark.parametrize(
    ("shape", "numbers"),
    [(COMPILED, (0, 8, 0)), pytest.param(SHAPE, range(3), marks=pytest.mark.thorough)],
    ids=["one budget", "three budgets"],
)
def test_compiled_updates_equal_uncompiled_ones(flat, graphs, shape, numbers):
    drawn, _ = flat(max(numbers) + 1)
    batches = [drawn[number] for number in numbers]
    shape = replace(shape, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    results = []
    for compiled in (False, True):
        strategy = make_strategy(shape=shape, compile=compiled)
        sums = [update(strategy, batch, number) for number, batch in enumerate(batches)]
        results.append((sums, [one.detach().clone() for one in strategy.worker.model.parameters()]))
    assert graphs.all
    torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-6)
