"""Plans beside an exhaustive twin, limits of requests, and requests that nothing fits."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bertdata.errors import SettingsError
from tests.support.plans import changed, make_request
from trainer.config.model import ModelConfig
from trainer.splitting.plan.costs import ModelCosts, PartCosts
from trainer.splitting.plan.plan import parse_plan
from trainer.splitting.plan.planner import Planner, make_plan
from trainer.splitting.plan.rates import DeviceRate, ShardingRate

MODEL = ModelConfig(
    vocab_size=96, hidden_size=8, num_hidden_layers=8, num_attention_heads=2, intermediate_size=32
)
REQUEST = make_request(
    model=MODEL,
    sequence_length=16,
    precision="fp32",
    optimiser="adamw",
    examples=8,
    devices=4,
    memory=10**9,
    bandwidth=1e6,
    rate=DeviceRate(flops=1e9, bytes=1e9),
    power_of_two=False,
)
LARGE = ModelConfig(hidden_size=2048, num_hidden_layers=96, num_attention_heads=32, intermediate_size=8192)


def part(draw, name):
    size = st.integers(0, 1000)
    kept = draw(st.integers(100, 1000))
    return PartCosts(
        parameters=draw(st.integers(50, 1000)),
        tied=draw(st.sampled_from((0, 500))) if name == "heads" else 0,
        kept=kept,
        handed=draw(st.integers(0, kept)),
        working=draw(size),
        cast=draw(st.sampled_from((0, 100))),
        forward=draw(st.integers(1, 1000)) * 1e-6,
        backward=draw(st.integers(1, 1000)) * 1e-6,
        recompute=draw(st.integers(0, 1000)) * 1e-6,
    )


@st.composite
def cases(draw):
    """A request, and random costs of its parts by the rows of a micro-batch."""
    layers = draw(st.integers(1, 8))
    made = {
        rows: ModelCosts(
            embeddings=part(draw, "embeddings"),
            layers=tuple(part(draw, "layer") for _ in range(layers)),
            heads=part(draw, "heads"),
            step=draw(st.sampled_from((0.0, 1e-7))),
        )
        for rows in (1, 2, 4, 8)
    }
    request = changed(
        REQUEST,
        model=replace(MODEL, num_hidden_layers=layers),
        devices=draw(st.integers(1, 4)),
        memory=draw(st.integers(2_000, 100_000)),
        bandwidth=draw(st.sampled_from((1e6, 1e8))),
        sharding=draw(st.sampled_from((None, ShardingRate(forward=3e6, backward=7e5)))),
        optimiser=draw(st.sampled_from(("adamw", "sgd", "momentum", "lamb-mlperf"))),
        may_shard=draw(st.booleans()),
        may_shard_stages=draw(st.booleans()),
        recompute=draw(st.sampled_from(("auto", "never", "always"))),
        clipping=draw(st.sampled_from(("per_update", "per_micro_batch"))),
    )
    return request, made


def every_plan(request, made):
    """(seconds, most bytes of a device, are stages of a pipeline sharded) of all plans, in plain Python."""
    layers = request.model.num_hidden_layers
    for stages in range(1, request.devices + 1):
        copies = request.devices // stages
        if request.devices % stages or stages > layers or request.examples % copies:
            continue
        for micro_batches in range(1, request.examples // copies + 1):
            if request.examples // copies % micro_batches or (stages > 1 and micro_batches > 32):
                continue
            costs = made[request.examples // copies // micro_batches]
            for cuts in itertools.combinations(range(1, layers), stages - 1):
                bounds = list(itertools.pairwise((0, *cuts, layers)))
                kinds = itertools.product((False, True), (False, True))
                allowed = [
                    (recomputes, sharded)
                    for recomputes, sharded in kinds
                    if request.split.recompute in ("auto", ("never", "always")[recomputes])
                    and sharded <= (request.may_shard and copies > 1)
                ]
                for chosen in itertools.product(allowed, repeat=stages):
                    is_sharded = stages > 1 and any(sharded for _, sharded in chosen)
                    if chosen[0][1] != chosen[-1][1] or is_sharded > request.may_shard_stages:
                        continue  # both ends may have the word embeddings
                    yield *plan_costs(request, costs, copies, micro_batches, bounds, chosen), is_sharded


def plan_costs(request, costs, copies, micro_batches, bounds, chosen):
    stages = len(bounds)
    times, ends, peaks = [], [], []
    for place, (bound, kind) in enumerate(zip(bounds, chosen, strict=True)):
        in_flight = min(micro_batches, stages - place) if micro_batches >= stages else micro_batches
        busy, end = stage_seconds(request, costs, copies, bound, kind)
        times.append(busy)
        ends.append(end)
        peaks.append(stage_bytes(request, costs, copies, stages, micro_batches, in_flight, bound, kind))
    return sum(times) + (micro_batches - 1) * max(times) + max(ends), max(peaks)


def stage_parts(costs, first, last):
    """The parts of a stage, its values and those of word embeddings that another stage has too."""
    layers, whole = costs.layers[first:last], len(costs.layers)
    parts = [costs.embeddings] * (first == 0) + list(layers) + [costs.heads] * (last == whole)
    values = sum(one.parameters for one in parts)
    is_second = last == whole and first > 0
    is_shared = (first == 0) != (last == whole)
    return parts, values + is_second * costs.heads.tied, is_shared * costs.heads.tied


def stage_seconds(request, costs, copies, bound, kind):
    (first, last), (recomputes, sharded) = bound, kind
    parts, values, shared = stage_parts(costs, first, last)
    layers = costs.layers[first:last]
    busy = sum(one.forward + one.backward for one in parts)
    busy += sum(one.recompute for one in layers) if recomputes else 0
    busy += 2 * layers[-1].handed / request.bandwidth if last < len(costs.layers) else 0
    moved, casts = (copies - 1) / copies, sum(one.cast for one in layers)
    if sharded:
        rates = request.sharding or ShardingRate(request.bandwidth, request.bandwidth)
        gathered = moved * (4 * values - casts)
        busy += gathered / rates.forward + (gathered + moved * 4 * values) / rates.backward
    share = copies if sharded else 1
    reduce = (4 * shared / share + (0 if sharded else 2 * moved * 4 * values)) / request.bandwidth
    return busy, reduce + costs.step * values / share


def stage_bytes(request, costs, copies, stages, micro_batches, in_flight, bound, kind):
    (first, last), (recomputes, sharded) = bound, kind
    whole, layers, share = len(costs.layers), costs.layers[first:last], copies if sharded else 1
    _, values, _ = stage_parts(costs, first, last)
    ends = [costs.embeddings] * (first == 0) + [costs.heads] * (last == whole)
    weights = 4 * math.ceil(values / share)
    moments = {"adamw": 8, "lamb-mlperf": 8, "momentum": 4, "sgd": 0}[request.update.optimiser]
    moments *= math.ceil(values / share)
    kept = sum(one.kept for one in ends) + sum(
        one.handed if recomputes else one.kept - sharded * one.cast for one in layers
    )
    waiting = 4 * costs.heads.tied if first == 0 and last == whole else 0
    busiest_layer = max(one.working + (one.kept if recomputes else 0) for one in layers)
    heads = costs.heads if last == whole else None
    start = max(
        heads.working if heads else 0,
        busiest_layer + waiting - (heads.kept if heads else 0),
        sum(one.cast for one in layers) if recomputes and not sharded else 0,
    )
    embeddings = costs.embeddings if first == 0 else None
    end = (embeddings.kept if embeddings else 0) + waiting
    lowest = max(one.kept + one.working for one in layers)
    end += max(lowest, embeddings.working if embeddings else 0)
    # Values of so few weights are one chunk of the optimiser.
    step = 4 * (values // share) if request.update.optimiser == "lamb-mlperf" else 0
    tied = costs.heads.tied if last == whole and first > 0 else 0
    gathered = 4 * (sum(one.parameters for one in ends) + tied + 2 * max(one.parameters for one in layers))
    gathered *= sharded
    at_start = in_flight * kept + start + gathered
    clips = request.update.clips_micro_batches and stages == 1
    apart = weights if clips and not sharded and micro_batches > 1 else 0
    at_end = max((in_flight - 1) * kept + end + apart, step) + weights + 2 * gathered
    if micro_batches > in_flight or (stages == 1 and copies > 1 and not clips):
        at_start += weights  # the sums of gradients
    received = (costs.layers[first - 1].handed if first else 0) + (layers[-1].handed if last < whole else 0)
    return weights + moments + max(at_start, at_end) + micro_batches * received


@settings(max_examples=60, deadline=None)
@given(cases())
def test_the_plan_is_the_fastest_of_all_that_fit(case):
    request, made = case
    every = list(every_plan(request, made))
    assume(every)
    fitting = [(seconds, last) for seconds, peak, last in every if peak <= request.usable_memory]
    assert Planner(request, made.__getitem__).find_least_memory()[0] == min(peak for _, peak, _ in every)
    whole = [seconds for seconds, is_last_resort in fitting if not is_last_resort]
    if not fitting:
        with pytest.raises(SettingsError, match="a device needs at least"):
            make_plan(request, made.__getitem__)
        return
    plan = make_plan(request, made.__getitem__)
    assert plan.seconds == pytest.approx(min(whole or [seconds for seconds, _ in fitting]), rel=1e-4)
    assert max(stage.memory.total for stage in plan.stages) <= request.usable_memory
    chosen = [(stage.recomputes, stage.sharded) for stage in plan.stages]
    bounds = [(stage.first, stage.last) for stage in plan.stages]
    costs = made[plan.batch_size]
    seconds, peak = plan_costs(request, costs, plan.copies, plan.micro_batches, bounds, chosen)
    assert plan.seconds == pytest.approx(seconds)
    assert max(stage.memory.total for stage in plan.stages) == peak


def test_a_plan_survives_its_file():
    plan = make_plan(REQUEST)
    assert parse_plan(plan.as_json(), "plan.json") == plan
    assert plan.examples == REQUEST.examples
    assert plan.devices == 4


def large(**changes):
    return changed(
        REQUEST,
        model=LARGE,
        sequence_length=512,
        precision="bf16",
        optimiser="lamb-mlperf",
        examples=256,
        devices=64,
        memory=32 * 10**9,
        bandwidth=1e11,
        rate=DeviceRate(flops=6e13, bytes=5e11),
        **changes,
    )


@pytest.mark.thorough
def test_96_layers_on_64_devices_have_one_plan():
    request = large(may_shard=False)
    plan = make_plan(request)
    assert plan.devices == 64
    assert len(plan.stages) > 1
    assert all(stage.memory.total <= request.usable_memory for stage in plan.stages)
    assert make_plan(request).text() == plan.text()


@pytest.mark.parametrize(
    ("changes", "stages", "copies", "strategy"),
    [
        ({"strategy": "replicated"}, 1, 4, "replicated"),
        ({"strategy": "sharded"}, 1, 4, "sharded"),
        ({"stages": 2}, 2, 2, "pipelined"),
        ({"copies": 1}, 4, 1, "pipelined"),
        ({"strategy": "sharded", "devices": 1}, 1, 1, "sharded"),
    ],
)
@pytest.mark.thorough_after_first
def test_a_request_chooses_strategy_stages_and_copies(changes, stages, copies, strategy):
    plan = make_plan(changed(REQUEST, **changes))
    assert (len(plan.stages), plan.copies, plan.strategy) == (stages, copies, strategy)


def test_a_given_batch_size_fixes_the_micro_batches():
    plan = make_plan(changed(REQUEST, batch_size=1, strategy="pipelined"))
    assert plan.batch_size == 1
    assert plan.micro_batches * plan.copies == 8


def test_stages_are_sharded_only_where_no_other_plan_fits():
    """Alike on the first and the last stage, which both have the word embeddings."""
    request = changed(REQUEST, strategy="pipelined", stages=2, copies=2, batch_size=1, memory_margin=0.0)
    enough = Planner(replace(request, may_shard_stages=False)).find_least_memory()[0]
    whole = make_plan(replace(request, memory=enough))
    assert not any(stage.sharded for stage in whole.stages)
    with pytest.raises(SettingsError, match="a device needs at least"):
        make_plan(replace(request, memory=enough - 1, may_shard_stages=False))
    sharded = make_plan(replace(request, memory=enough - 1))
    assert all(stage.sharded for stage in sharded.stages)
    assert max(stage.memory.total for stage in sharded.stages) < enough
    assert sharded.seconds > whole.seconds


def test_a_request_recomputes_everywhere_or_nowhere():
    kept = make_plan(changed(REQUEST, recompute="never"))
    again = make_plan(changed(REQUEST, recompute="always"))
    assert not any(stage.recomputes for stage in kept.stages)
    assert all(stage.recomputes for stage in again.stages)
    assert again.seconds > kept.seconds


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"devices": 3, "examples": 8, "stages": 1}, "3 devices cannot share 8 examples"),
        ({"devices": 16, "copies": 1}, "16 devices cannot share"),
        ({"batch_size": 3}, "in micro-batches of 3 rows"),
        ({"strategy": "pipelined", "min_micro_batches": 9}, "with 9 to 32 micro-batches"),
    ],
)
def test_devices_that_cannot_share_an_update_are_refused(changes, message):
    with pytest.raises(SettingsError, match=message):
        make_plan(changed(REQUEST, **changes))


def test_a_model_too_large_says_by_how_much_and_what_would_fit():
    small = changed(REQUEST, memory=20_000, memory_margin=0.0)
    needed = Planner(small).find_least_memory()[0]
    with pytest.raises(SettingsError) as caught:
        make_plan(small)
    message = str(caught.value)
    assert f"needs at least {needed / 1e9:,.2f} GB" in message
    assert "\n" not in message
    assert make_plan(replace(small, memory=needed)).stages
    with pytest.raises(SettingsError):
        make_plan(replace(small, memory=needed - 1))


def test_too_few_devices_name_a_number_that_fits():
    request = replace(large(may_shard=False), devices=2)
    with pytest.raises(SettingsError, match="or on 4 devices of this memory"):
        make_plan(request)
    assert make_plan(replace(request, devices=4)).devices == 4


def test_sequences_longer_than_the_models_are_refused():
    with pytest.raises(SettingsError, match="plan: sequences of 513 ids, the model has .* 512"):
        changed(REQUEST, sequence_length=513)
