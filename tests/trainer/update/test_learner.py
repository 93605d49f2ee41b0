"""A model that is compiled by its parts: few graphs for many layers, and the updates of a plain model."""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

import pytest
import torch
from functorch.compile import make_boxed_func
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.utils import counters
from torch._inductor import config as inductor
from torch.fx import GraphModule

from bertdata.records import ShardLayout
from tests.support.compiling import capturing, count_graphs
from trainer.config.model_kinds import read_model_config
from trainer.config.settings import Config
from trainer.data.batches import FlatBatch
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.devices.cpu import Cpu
from trainer.run.strategies import find_inference, find_strategy
from trainer.tasks.choice import find_task
from trainer.update.strategy import Strategy, UpdateNumber
from trainer.update.worker import ModelShare, Worker
from trainer.workers.collective import Collective

LAYERS = 6
SIZES = {
    "vocab_size": 203,
    "hidden_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "hidden_dropout_prob": 0.1,
}
PRE_NORM = {"megatron_residual_connection": True}
MODERNBERT = {"model_type": "modernbert", "local_attention": 8, "embedding_dropout": 0.1, "mlp_dropout": 0.1}
BATCH_SIZE = 4

pytestmark = pytest.mark.usefixtures("one_thread")


def make_strategy(model: dict[str, Any], *, recomputes: bool = False, **settings: object) -> Strategy:
    config = Config.of(optimiser="adamw", batch_size=BATCH_SIZE, **settings)
    device = Cpu(config)
    torch.manual_seed(1)
    task = find_task("masked_words" if "model_type" in model else "pretraining", config, None)
    shape = read_model_config({**SIZES, **model}, "model")
    whole = device.place(task.new_model(shape, device.attention))
    whole.bert.recomputes = recomputes
    share, workers = ModelShare(copy=0, copies=1), Collective(device)
    return find_strategy(
        Worker(config=config, device=device, collective=workers, model_share=share, task=task, model=whole)
    )


@pytest.fixture(scope="module")
def batches() -> list[FlatBatch]:
    """Micro-batches of one size, with padding."""
    layout = ShardLayout(max_seq_length=32, max_predictions_per_seq=5)
    data = generate_data(layout, vocabulary_size=203, fill=0.6)
    form = make_form(Rows(data), batch_size=BATCH_SIZE, token_budget=128)
    with closing(Loader(Rows(data), form=form, batch_size=BATCH_SIZE)) as loader:
        return [update.batches[0] for update in islice(loader, 4)]


def make_updates(strategy: Strategy, batches: list[FlatBatch]) -> tuple[Tensor, dict[str, Tensor]]:
    """Make two updates of two micro-batches. Returns the losses and sums, and the weights."""
    values = [
        strategy.update([batches[2 * number : 2 * number + 2]], 1e-2, UpdateNumber(0, number, number))[0]
        for number in range(2)
    ]
    weights = strategy.worker.model.named_parameters()
    return torch.stack(values), {name: weight.detach().clone() for name, weight in weights}


CASES = {
    "bert": ({}, {}, 1),
    "bert in bf16": ({}, {"precision": "bf16"}, 1),
    "pre-norm in bf16": (PRE_NORM, {"precision": "bf16"}, 1),
    "modernbert": (MODERNBERT, {}, 2),
    "modernbert in bf16": (MODERNBERT, {"precision": "bf16"}, 2),
}
"""Changes of the model, changes of the configuration, and the number of kinds of layers."""


@pytest.mark.parametrize(("model", "settings", "kinds"), CASES.values(), ids=CASES)
def test_all_layers_of_a_kind_share_a_graph(model, settings, kinds, batches):
    embeddings, heads = 1, 1
    with capturing():
        strategy = make_strategy(model, compile=True, **settings)
        make_updates(strategy, batches)
        assert count_graphs() == embeddings + kinds + heads
        with find_inference(strategy.worker, strategy).evaluating() as measure:
            measure(batches[0])
        assert count_graphs() == 2 * (embeddings + kinds + heads)


@pytest.mark.parametrize("recomputes", [False, True])
@pytest.mark.parametrize("model", [{}, PRE_NORM, MODERNBERT], ids=["bert", "pre-norm", "modernbert"])
def test_updates_equal_those_of_a_plain_model_with_the_same_dropout(model, recomputes, batches):
    """The dropout of each part has a seed of its own, also if the part is a graph."""
    values, weights = make_updates(make_strategy(model), batches)
    with capturing():
        found, others = make_updates(make_strategy(model, recomputes=recomputes, compile=True), batches)
        assert count_graphs()
    torch.testing.assert_close(found, values, rtol=0, atol=0)
    torch.testing.assert_close(others, weights, rtol=1e-5, atol=1e-6)


def test_a_layer_has_its_gradients_before_the_layers_below_it_are_computed(batches):
    """So that workers exchange them meanwhile. A graph of the whole model gives all gradients at its end."""
    events = list[str | int]()

    def note_backward(graph: GraphModule, _: object) -> Callable[..., object]:
        def run(*given: Tensor) -> object:
            events.append("backward pass")
            return graph.forward(*given)

        return make_boxed_func(run)

    backend = aot_autograd(
        fw_compiler=lambda graph, _: make_boxed_func(graph.forward), bw_compiler=note_backward
    )
    with capturing(backend):
        strategy = make_strategy({}, compile=True)
        for number, layer in enumerate(strategy.worker.model.bert.encoder.layer):
            layer.output.dense.weight.register_post_accumulate_grad_hook(
                lambda _, number=number: events.append(number)
            )
        strategy.update([batches[:1]], 1e-2, UpdateNumber(0, 0, 0))
    of_heads = of_embeddings = ["backward pass"]
    of_layers = [event for number in reversed(range(LAYERS)) for event in ("backward pass", number)]
    assert events == [*of_heads, *of_layers, *of_embeddings]


def test_weights_keep_their_names(batches):
    plain = make_strategy({})
    with capturing():
        strategy = make_strategy({}, compile=True)
        make_updates(strategy, batches)
        assert list(strategy.worker.model.state_dict()) == list(plain.worker.model.state_dict())
        assert list(strategy.learner.state_dict()) == list(plain.learner.state_dict())


@pytest.fixture
def without_caches(monkeypatch) -> Iterator[None]:
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no processes that import torch to compile
    torch._dynamo.reset()
    counters.clear()
    with inductor.patch(compile_threads=1):
        yield
    torch._dynamo.reset()


@pytest.mark.thorough
@pytest.mark.usefixtures("without_caches")
@pytest.mark.parametrize("model", [{}, MODERNBERT], ids=["bert", "modernbert"])
def test_losses_equal_those_of_one_graph(model, batches, monkeypatch):
    """With the kernels that PyTorch's compiler makes for the processor."""
    still = {**model, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "num_hidden_layers": 3}
    still |= {"embedding_dropout": 0.0, "mlp_dropout": 0.0} if model else {}
    by_parts, _ = make_updates(make_strategy(still, compile=True), batches)
    assert counters["stats"]["unique_graphs"] == 2 + len(model and [0]) + 1
    assert counters["inductor"]
    torch._dynamo.reset()
    counters.clear()
    monkeypatch.setattr(Cpu, "compiles_whole", True)
    whole, _ = make_updates(make_strategy(still, compile=True), batches)
    assert counters["stats"]["unique_graphs"] == 1
    torch.testing.assert_close(by_parts, whole, rtol=1e-5, atol=1e-6)
