"""A model whose weights are divided among processes trains as one process trains it."""

from dataclasses import replace
from functools import cache
from itertools import product
from math import prod

import pytest
import torch

from tests.support.sharded_training import SHAPE, Result, Trial, distance, joined, train
from tests.support.split_training import even_plan
from tests.support.training_runs import errors, losses, refuse, start_workers, tensors, words
from tests.support.trials import run_trials
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.workers.collective import Collective

pytestmark = pytest.mark.usefixtures("one_thread")

TWENTY = {
    "lamb": Trial(),
    "adamw": Trial(settings={"optimiser": "adamw", "clipping": "per_update"}),
    "without dropout": Trial(
        model={"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}, settings={"batch_size": 2}
    ),
    "adamw without dropout": Trial(
        model={"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
        settings={"optimiser": "adamw", "clipping": "per_update"},
    ),
    "bf16": Trial(settings={"precision": "bf16"}),
    "bf16 adamw": Trial(settings={"precision": "bf16", "optimiser": "adamw", "clipping": "per_update"}),
}
FEW = {name: replace(TWENTY[name], updates=3) for name in ("lamb", "without dropout", "bf16")}
TRIALS = {
    **{f"{name}, twenty": trial for name, trial in TWENTY.items()},
    **FEW,
    # Its rates are those of whole tensors, of which each process has a half.
    "stableadamw": Trial(updates=3, settings={"optimiser": "stableadamw", "base_learning_rate": 0.01}),
    "recomputed": replace(FEW["lamb"], settings={"recompute": "always"}),
    "lamb, compiled": replace(FEW["lamb"], compiled=True),
    "lamb, compiled, recomputed": replace(FEW["lamb"], settings={"recompute": "always"}, compiled=True),
    # The largest scale overflows at once, and is halved until nothing does.
    "fp16": Trial(updates=12, settings={"precision": "fp16", "init_loss_scale": 2.0**24}),
}
"""By two processes; by three only "lamb"."""

HALVES = {"hidden_size": 32, "intermediate_size": 64, "vocab_size": 64}
"""Sizes whose halves fill a processor's vectors: the rest of a tensor may be rounded in another way."""
IN_ORDER = {
    f"{optimiser}, {precision}{twenty}": Trial(
        updates=20 if twenty else 3,
        model=HALVES,
        settings={"optimiser": optimiser, "precision": precision, "clipping": "per_update"},
    )
    for optimiser, precision, twenty in [
        ("lamb-nvidia", "bf16", ""),
        ("adamw", "fp32", ""),
        ("stableadamw", "fp32", ""),
        *product(("lamb-nvidia", "adamw"), ("fp32", "bf16"), [", twenty"]),
    ]
}
"""By two processes, and by one that adds up as they do."""


def names(*of: str) -> list[object]:
    """The names as parameters; trials of twenty updates are thorough."""
    return [
        pytest.param(name, marks=pytest.mark.thorough) if name.endswith("twenty") else name for name in of
    ]


@cache
def alone(trial_name: str) -> Result:
    """The training by one process that has the whole model."""
    trial = TRIALS[trial_name]
    return train(trial, Collective(Cpu(Config.of())))


class ByTwo(dict[str, list[Result]]):
    """The results of two processes; those of twenty updates are made together, and so are the others."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        super().__init__()
        self._factory = factory

    def __missing__(self, wanted: str) -> list[Result]:
        all_trials, are_long = TRIALS | IN_ORDER, wanted.endswith("twenty")
        trials = {name: trial for name, trial in all_trials.items() if name.endswith("twenty") == are_long}
        self.update(run_trials(trials, 2, self._factory.mktemp("two")))
        return self[wanted]


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> ByTwo:
    return ByTwo(tmp_path_factory)


@pytest.fixture(scope="module")
def three(tmp_path_factory) -> dict[str, list[Result]]:
    return run_trials({"lamb": TRIALS["lamb"]}, 3, tmp_path_factory.mktemp("three"))


# Numbers


@pytest.mark.parametrize(
    "name", names(*(name for name in TRIALS if name.startswith(("lamb", "adamw", "stableadamw", "without"))))
)
@pytest.mark.thorough_after_first
def test_updates_equal_those_of_one_process(two, name):
    found, expected = joined(two[name], "last"), joined([alone(name)], "last")
    assert distance(found, expected) < 1e-7
    if name == "stableadamw":
        # The terms of the pair head's two biases nearly cancel: sums in the order of two processes, three or
        # six, by one process, change them by 4e-6 to 1e-5. In the order of these two they are compared.
        expected = joined([train(TRIALS[name], Collective(Cpu(Config.of())), copies=2)], "last")
    for weight in (key for key in expected if "/" not in key and not key.endswith("key.bias")):
        # A bias starts at 0, so that its steps alone are compared; key biases change no loss.
        bound = 2e-6 if weight.endswith("bias") else 1e-6
        assert float((found[weight] - expected[weight]).norm() / expected[weight].norm()) < bound, weight
    assert (
        distance(joined([alone(name)], "first"), expected) > 5e-4 * TRIALS[name].updates
    )  # the weights did change
    means = [sum(pair) for pair in zip(*(result.losses for result in two[name]), strict=True)]
    assert means == pytest.approx(alone(name).losses, rel=1e-6)
    assert {result.applied for result in two[name]} == {TRIALS[name].updates}


@pytest.mark.parametrize("name", names(*IN_ORDER))
def test_training_has_the_bits_of_one_process_that_adds_up_in_the_same_order(two, name):
    twin = train(IN_ORDER[name], Collective(Cpu(Config.of())), copies=2)
    found, expected = joined(two[name], "last"), joined([twin], "last")
    assert found.keys() == expected.keys()
    assert [key for key in expected if not torch.equal(found[key], expected[key])] == []
    assert two[name][0].losses == twin.losses


def test_moments_equal_those_of_one_process(two):
    found, expected = joined(two["lamb"], "last"), joined([alone("lamb")], "last")
    moments = [name for name in expected if "/" in name]
    assert {name.partition("/")[0] for name in moments} == {"exp_avg", "exp_avg_sq"}
    for name in moments:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-4, atol=1e-9)


@pytest.mark.thorough
def test_three_processes_of_which_some_hold_no_row_equal_one(three):
    last = three["lamb"][2].last
    segments = last["bert.embeddings.token_type_embeddings.weight"]
    assert (segments.start, len(segments.rows)) == (2, 0)
    assert [len(result.last["bert.pooler.dense.weight"].rows) for result in three["lamb"]] == [6, 6, 4]
    assert distance(joined(three["lamb"], "last"), joined([alone("lamb")], "last")) < 1e-6


def test_first_weights_are_those_of_one_process_to_the_bit(two, three):
    expected = joined([alone("lamb")], "first")
    for results in (two["lamb"], three["lamb"]):
        found = joined(results, "first")
        weights = [name for name in found if "/" not in name]
        assert weights == list(expected)
        assert all(torch.equal(found[name], expected[name]) for name in weights)
        assert all(not found[name].any() for name in found if "/" in name)


def test_recomputed_activations_change_no_bit(two):
    found, expected = joined(two["recomputed"], "last"), joined(two["lamb"], "last")
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("name", names("lamb", "lamb, twenty", "adamw, twenty"))
def test_in_bf16_the_division_changes_less_than_the_precision_does(two, name):
    """Sums in another order flip roundings of activations, each of which is of the precision's size."""
    half_name = f"bf16 {name}".replace("bf16 lamb", "bf16")
    one, half = joined([alone(name)], "last"), joined([alone(half_name)], "last")
    assert distance(joined(two[half_name], "last"), half) < distance(half, one) / 2 < 1e-3
    means = [sum(pair) for pair in zip(*(result.losses for result in two[half_name]), strict=True)]
    assert means[0] == pytest.approx(alone(half_name).losses[0], rel=1e-7)
    assert means == pytest.approx(alone(half_name).losses, rel=1e-4)


def test_in_fp16_all_processes_skip_the_same_updates(two):
    ((applied, skipped, scale),) = {(one.applied, one.skipped, one.scale) for one in two["fp16"]}
    assert applied + skipped == 12
    assert min(applied, skipped) > 0
    assert scale == 2.0 ** (24 - skipped)
    assert all(torch.isfinite(whole).all() for whole in joined(two["fp16"], "last").values())


def test_an_evaluation_equals_that_of_one_process(two, three):
    for results in (two["lamb"], three["lamb"]):
        for result in results:
            torch.testing.assert_close(result.evaluated, alone("lamb").evaluated, rtol=1e-5, atol=1e-5)


def test_each_process_holds_its_share_of_weights_and_moments(two, three):
    for results in (two["lamb"], three["lamb"]):
        parts = results[0].last.values()
        rows = sum(4 * prod(part.shape[1:]) for part in parts)  # one of each tensor
        share = alone("lamb").bytes / len(results)
        assert all(result.bytes <= share + rows for result in results)
        assert sum(result.bytes for result in results) >= alone("lamb").bytes


@pytest.mark.parametrize("name", ["lamb", "bf16"])
def test_between_its_passes_a_layer_has_no_gathered_weight(two, name):
    least, rest = 3 * SHAPE.num_hidden_layers, 2 * 16 * 16 * 4  # the pooler and the head's are of that size
    assert alone(name).kept[0] > least
    assert alone(name).kept[1] > 2 * rest
    for result in two[name]:
        assert result.kept[0] > least
        assert result.kept[1] <= rest


# Stages of a pipeline


@pytest.mark.thorough
def test_two_stages_of_two_processes_each_equal_one_process(tmp_path):
    trial = TRIALS["without dropout"]
    plan = even_plan(trial.shape, 2, 2, sequence_length=32, batch_size=2, micro_batches=3)
    stages = tuple(replace(stage, sharded=True) for stage in plan.stages)
    (tmp_path / "plan.json").write_text(replace(plan, stages=stages).text(), encoding="utf-8")
    settings = {**trial.settings, "plan": str(tmp_path / "plan.json"), "global_batch_size": 12}
    results = run_trials({"stages": replace(trial, settings=settings)}, 4, tmp_path)["stages"]
    found, expected = joined(results, "last"), joined([alone("without dropout")], "last")
    assert found.keys() == expected.keys()
    assert distance(found, expected) < 1e-6
    evaluated = [result.evaluated for result in results]
    torch.testing.assert_close(evaluated[2], alone("without dropout").evaluated, rtol=1e-5, atol=1e-5)
    assert not evaluated[0].any()
    least = min(result.bytes for result in results)
    assert least < alone("without dropout").bytes / 3


# Whole runs

RUN = ("--strategy=sharded", "--clipping=per_update", "--steps=6")


@pytest.mark.thorough
def test_a_sharded_run_evaluates_saves_and_resumes_as_if_never_stopped(training_set, tmp_path):
    straight, cut = tmp_path / "straight", tmp_path / "cut"
    more = (*RUN, f"--eval-data={training_set}", "--eval-examples=21", "--checkpoint-every=3")
    assert start_workers("torchrun", 2, *words(training_set, straight, *more)).status == 0
    run = words(training_set, cut, *more)
    assert start_workers("torchrun", 2, *run, "--steps-this-run=3").status == 0
    outcome = start_workers("torchrun", 2, *run, "--resume")
    assert outcome.status == 0, outcome.err
    assert losses(cut) == losses(straight)
    assert tensors(cut, 6) == tensors(straight, 6)
    results = [(run / "evaluation.csv").read_text().splitlines()[-1] for run in (straight, cut)]
    assert results[0].split(",")[2:6] == results[1].split(",")[2:6]


@pytest.mark.thorough
def test_when_a_worker_dies_the_other_names_it_and_stops(training_set, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINER_ACCIDENT", '{"what": "kill", "rank": 1, "update": 4}')
    outcome = start_workers("torchrun", 2, *words(training_set, tmp_path, *RUN, "--checkpoint-every=3"))
    assert outcome.status != 0
    assert any("worker 1 of 2 was lost: its process ended" in line for line in errors(outcome)), outcome.err
    assert list(find_checkpoints(str(tmp_path))) == [3]


# Refused


def test_one_process_without_torch_distributed_is_refused(trainer, training_set, tmp_path):
    said = "strategy sharded needs torch.distributed: start the workers with torchrun; found single"
    refuse(trainer(*words(training_set, tmp_path, *RUN)), 2, said)
