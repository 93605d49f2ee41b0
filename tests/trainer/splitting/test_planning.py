"""Plans that runs make: of the strategy that is asked for, or where a device cannot hold the model."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.support.plans import make_request
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.errors import ReportedError
from trainer.model.headed import BertForPreTraining
from trainer.splitting.memory import find_device_memory
from trainer.splitting.placing import find_plan, find_rate, fits_as_configured, place_by_plan
from trainer.splitting.plan import fit
from trainer.splitting.plan.costs import compute_analytic_costs
from trainer.splitting.plan.plan import Plan
from trainer.splitting.plan.planner import Planner, make_plan
from trainer.splitting.plan.rates import DeviceRate, ShardingRate
from trainer.splitting.plan.request import PlanRequest
from trainer.tasks.pretraining import MaskedWords, Pretraining
from trainer.tasks.task import Task
from trainer.update.worker import Runtime, hold_whole_model
from trainer.workers.collective import Collective

SHAPE = ModelConfig(
    vocab_size=1000, hidden_size=64, num_hidden_layers=4, num_attention_heads=2, intermediate_size=256
)
GIGABYTES = 10**9


class Connected(Collective):
    """Rank 0 of some workers that do not exist: what it gathers are copies of its own values."""

    name = "torch_distributed"
    size = 4

    def gather(self, value):
        return [value, value, value, value]


class Waiting(Connected):
    """Rank 1 of them, which is told what rank 0 has found: that it may go on, and then its plan."""

    rank = 1

    def __init__(self, device):
        super().__init__(device)
        self.answers = iter([True, False, True, plan_of_rank_0().as_json()])

    def broadcast_object(self, value):
        return [False, next(self.answers)]


def plan_of_rank_0() -> Plan:
    return make_plan(request(GIGABYTES, strategy="pipelined"))


def runtime(workers: type[Collective] = Connected, task: Task | None = None, **settings: object) -> Runtime:
    config = Config.of(**{"batch_size": 4, "bandwidth": 1.0, **settings})
    device = Cpu(config)
    found = workers(device)
    return Runtime(
        config=config,
        device=device,
        collective=found,
        model_share=hold_whole_model(found),
        task=task or Pretraining(),
    )


def memory_of(runtime: Runtime) -> int:
    return find_device_memory(runtime.config, runtime.device, runtime.collective)


def request(memory: int, **changes: object) -> PlanRequest:
    rate = DeviceRate(flops=5e10, bytes=1e10)
    known = {"examples": 16, "devices": 4, "batch_size": 4, "optimiser": "lamb-nvidia", "precision": "fp32"}
    return make_request(
        **{"model": SHAPE, "sequence_length": 64, "memory": memory, "bandwidth": 1e9, "rate": rate}
        | known
        | changes
    )


def test_a_model_that_fits_is_not_divided_unless_that_is_asked_for():
    assert find_plan(runtime(), SHAPE, 64) is None
    assert find_plan(runtime(strategy="replicated"), SHAPE, 64) is None
    assert find_plan(runtime(Collective), SHAPE, 64) is None
    for strategy in ("pipelined", "sharded"):
        plan = find_plan(runtime(strategy=strategy), SHAPE, 64)
        assert plan is not None
        assert (plan.strategy, plan.devices, plan.examples) == (strategy, 4, 16)


def test_a_run_of_masked_words_alone_is_planned_without_a_next_sentence_head():
    both, alone = (
        find_plan(runtime(task=task, strategy="pipelined"), SHAPE, 64) for task in (None, MaskedWords())
    )
    assert both is not None
    assert alone is not None
    width = SHAPE.hidden_size
    assert both.stages[-1].memory.weights - alone.stages[-1].memory.weights == 4 * (
        width * width + 3 * width + 2
    )
    assert both.stages[0] == alone.stages[0]


def test_auto_makes_a_plan_for_a_model_that_fits_no_device_as_configured():
    kept = make_plan(request(GIGABYTES, strategy="replicated", recompute="never")).stages[0].memory.total
    memory = 0.97 * kept / 0.9
    plan = find_plan(runtime(device_memory=memory / 1e9), SHAPE, 64)
    assert plan is not None
    assert max(stage.memory.total for stage in plan.stages) <= 0.9 * memory
    assert plan.strategy != "replicated" or plan.stages[0].recomputes


@pytest.mark.parametrize("may_shard", [False, True])
def test_bandwidths_that_are_not_given_are_measured(monkeypatch, may_shard):
    asked = []

    def bandwidth(device, workers, dtype):
        asked.append(("bandwidth", device.name, workers.size, dtype))
        return 3e8

    def sharding(device, workers, dtype):
        asked.append(("sharding", device.name, workers.size, dtype))
        return ShardingRate(forward=2e6, backward=1e6)

    monkeypatch.setattr("trainer.splitting.placing.measure_bandwidth", bandwidth)
    monkeypatch.setattr("trainer.splitting.placing.measure_sharding", sharding)
    monkeypatch.setattr(fit, "_has_fully_shard", lambda: may_shard)
    settings = {"strategy": "sharded" if may_shard else "pipelined"}
    plan = find_plan(runtime(bandwidth=None, **settings), SHAPE, 64)
    kinds = ["bandwidth", "sharding"][: 1 + may_shard]
    assert asked == [(kind, "cpu", 4, None) for kind in kinds]
    assert plan is not None
    if may_shard:
        (stage,) = plan.stages
        moved = 3 / 4 * 4 * BertForPreTraining(SHAPE).count_weights()
        assert stage.forward == pytest.approx(moved / 2e6, rel=0.1)
        assert stage.backward == pytest.approx(2 * moved / 1e6, rel=0.1)
    asked.clear()
    assert find_plan(runtime(**settings), SHAPE, 64) is not None
    fits = 16 * BertForPreTraining(SHAPE).count_weights() / 0.25 / 1e9  # too little to be certain
    assert find_plan(runtime(bandwidth=None, device_memory=fits), SHAPE, 64) is None
    assert asked == []


def test_a_worker_alone_measures_no_bandwidth(monkeypatch):
    class Alone(Connected):
        size = 1

        def gather(self, value):
            return [value]

    monkeypatch.setattr("trainer.splitting.placing.add_bandwidths", None)
    assert find_plan(runtime(Alone, bandwidth=None, strategy="sharded"), SHAPE, 64) is not None


@pytest.fixture
def profiles(monkeypatch):
    """The requests whose layers are timed, by devices a million times as slow as computed ones."""
    asked = []

    def costs(request, device, workers):
        asked.append((request, device.name, workers.size))
        slow = replace(request, rate=DeviceRate(flops=5e4, bytes=1e4))
        return compute_analytic_costs(slow)

    monkeypatch.setattr("trainer.splitting.placing.measure_costs", costs)
    return asked


def test_layers_are_timed_with_the_requests_attention_on_every_worker(profiles, capsys):
    plan = find_plan(runtime(strategy="pipelined", profile_layers=True, rows=True), SHAPE, 64)
    assert plan is not None
    assert plan.stages[0].forward > 100
    ((request, name, size),) = profiles
    assert (request.attention, request.devices, name, size) == ("scores", 4, "cpu", 4)
    assert "layers measured on device cpu" in capsys.readouterr().err
    waiting = runtime(Waiting, strategy="pipelined", profile_layers=True)
    assert find_plan(waiting, SHAPE, 64) == plan_of_rank_0()
    assert [found.attention for found, *_ in profiles] == ["scores", "flat"]


def test_nothing_is_timed_where_no_profile_is_asked_for_or_the_model_fits(profiles):
    assert find_plan(runtime(strategy="pipelined"), SHAPE, 64) is not None
    fits = 16 * BertForPreTraining(SHAPE).count_weights() / 0.25 / 1e9  # too little to be certain
    assert find_plan(runtime(device_memory=fits, profile_layers=True), SHAPE, 64) is None
    assert profiles == []


def test_stages_of_a_pipeline_are_sharded_where_nothing_else_fits(monkeypatch):
    wide = replace(SHAPE, hidden_size=256, intermediate_size=1024, num_hidden_layers=12)
    asked = request(GIGABYTES, model=wide, strategy="pipelined", stages=2)
    plan = find_plan(runtime(strategy="pipelined", stages=2), wide, 64)
    assert (len(plan.stages), plan.copies) == (2, 2)
    assert not any(stage.sharded for stage in plan.stages)
    whole, sharded = (
        Planner(replace(asked, may_shard_stages=may)).find_least_memory()[0] for may in (False, True)
    )
    assert sharded < 0.9 * whole
    given = {"stages": 2, "device_memory": (sharded + whole) / 2 / 0.9 / 1e9}
    plan = find_plan(runtime(strategy="pipelined", **given), wide, 64)
    assert all(stage.sharded for stage in plan.stages)
    assert find_plan(runtime(strategy="auto", **given), wide, 64) == plan
    monkeypatch.setattr(fit, "_has_fully_shard", lambda: False)
    with pytest.raises(ReportedError):
        find_plan(runtime(strategy="pipelined", **given), wide, 64)


def test_a_model_fits_where_activations_need_not_be_recomputed():
    kept = make_plan(request(GIGABYTES, strategy="replicated", recompute="never"))
    enough = int(kept.stages[0].memory.total / 0.9) + 2
    assert fits_as_configured(request(enough))
    assert not fits_as_configured(request(enough - enough // 50))


def test_the_plans_micro_batches_are_the_runs():
    divided = place_by_plan(runtime(strategy="pipelined", accumulation=2), SHAPE, 64)
    plan = divided.model_share.plan
    assert plan is not None
    assert divided.config.update.micro_batches(divided.copies) == (4, 8 // plan.copies)
    assert divided.config.update.examples(divided.copies) == 4 * 2 * 4  # batch_size x accumulation x workers


def test_a_plan_that_fits_nowhere_is_refused_and_auto_goes_on_where_memory_is_not_given(monkeypatch, capsys):
    with pytest.raises(ReportedError):
        find_plan(runtime(device_memory=1e-3), SHAPE, 64)
    assert "error: plan: a device needs at least" in capsys.readouterr().err
    monkeypatch.setattr(Cpu, "memory", lambda self, neighbours: 10**6)
    assert find_plan(runtime(), SHAPE, 64) is None
    assert "warning: plan: a device needs at least" in capsys.readouterr().err


def test_processors_share_the_memory_of_their_machine(monkeypatch):
    asked = []
    monkeypatch.setattr(Cpu, "memory", lambda self, neighbours: asked.append(neighbours) or 7)
    assert memory_of(runtime()) == 7
    assert asked == [1]  # the workers claim to have rank 0 on a machine each
    assert memory_of(runtime(device_memory=2.0)) == 2 * GIGABYTES


def test_rates_of_a_gpu_are_found_by_its_name():
    cuda = SimpleNamespace(
        torch_device=SimpleNamespace(type="cuda"),
        describe=lambda: "cuda:0: NVIDIA H200, 141 GiB, CUDA 13.0",
        config=Config.of(precision="bf16"),
    )
    assert find_rate(cuda).name == "h200"
    cuda.describe = lambda: "cuda:0: another one"
    assert find_rate(cuda).name == "a100"
    assert find_rate(Cpu(Config.of())).name == "a core of a processor"
