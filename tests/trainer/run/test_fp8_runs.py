"""Runs in FP8, emulated on the processor: they learn as in bf16, and leave the same checkpoints."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from tests.support.compiling import capturing, count_graphs
from tests.support.training_runs import losses, refuse, start_workers, words
from trainer.config.sections.update import FP8_RECIPES
from trainer.devices.cpu import Cpu

pytest.importorskip("torchao", reason="FP8 needs torchao")

LAYERS = "--num-hidden-layers=4"
BF16 = ("--precision=bf16", LAYERS)
FP8 = ("--precision=fp8", "--fp8-emulation", LAYERS)
NO_DROPOUT = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")


def list_tensors(run: Path, step: int) -> dict[str, tuple[str, Sequence[int]]]:
    """Return type and shape of each weight and moment in a checkpoint, by file and name."""
    found = {}
    for path in sorted((run / "checkpoints" / f"step-{step:08d}").glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118
                one = file.get_slice(name)
                found[f"{path.name}/{name}"] = (one.get_dtype(), one.get_shape())
    return found


def word_losses(run: Path) -> list[float]:
    return [row["mlm_loss"] for row in losses(run)]


def test_a_run_goes_from_bf16_to_fp8_and_back_with_the_same_checkpoints(trainer, training_set, tmp_path):
    run = tmp_path / "run"
    for step, precision, before in ((2, BF16, ""), (4, FP8, "bf16"), (6, BF16, "fp8")):
        more = (*precision, "--steps=6", "--steps-this-run=2", *(["--resume"] if before else []))
        outcome = trainer(*words(training_set, run, *more))
        assert outcome.status == 0, outcome.err
        if before:
            now = precision[0].partition("=")[2]
            assert f"precision: {before} in the checkpoint, {now} in this run" in outcome.err
        if precision is FP8:
            converted = "linear layers of encoder layers 1 to 2; layers 0 and 3, embeddings and heads in bf16"
            assert f"trainer: precision fp8, recipe tensorwise, emulated: {converted}" in outcome.err
        assert list_tensors(run, step) == list_tensors(run, 2)
    assert len(losses(run)) == 6


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("casts_once", [False, True])
def test_fp8_changes_the_losses_a_little(trainer, training_set, tmp_path, monkeypatch, casts_once):
    monkeypatch.setattr(Cpu, "casts_once", casts_once)
    run = ("--steps=3", "--accumulation=2")
    for name, precision in (("bf16", BF16), ("fp8", FP8)):
        assert trainer(*words(training_set, tmp_path / name, *precision, *run)).status == 0
    found, expected = word_losses(tmp_path / "fp8"), word_losses(tmp_path / "bf16")
    assert found != expected
    assert found == pytest.approx(expected, rel=0.01)


@pytest.mark.thorough
@pytest.mark.parametrize("recipe", FP8_RECIPES)
def test_fp8_changes_the_losses_of_a_modernbert_a_little(trainer, block_set, tmp_path, recipe):
    run = ("--model-type=modernbert", "--local-attention=8", "--steps=3")
    for name, precision in (("bf16", BF16), ("fp8", (*FP8, f"--fp8-recipe={recipe}"))):
        assert trainer(*words(block_set, tmp_path / name, *run, *precision)).status == 0
    found, expected = word_losses(tmp_path / "fp8"), word_losses(tmp_path / "bf16")
    assert found != expected
    assert found == pytest.approx(expected, rel=0.01)


@pytest.mark.thorough
@pytest.mark.usefixtures("one_thread")
def test_500_updates_in_fp8_learn_as_in_bf16(trainer, training_set, tmp_path):
    """The mean losses of 50 updates each are within 1 %. The four runs take 150 CPU seconds."""

    def train(name: str, *precision: str) -> torch.Tensor:
        run = ("--batch-size=8", "--steps=500", "--warmup=20", "--optimiser=adamw")
        run = (*run, "--base-learning-rate=0.003", "--checkpoint-every=0", *precision)
        assert trainer(*words(training_set, tmp_path / name, *run)).status == 0
        return torch.tensor(word_losses(tmp_path / name)).view(10, 50).mean(1)

    expected = train("bf16", *BF16)
    assert expected[-1] < 0.8 * expected[0]
    for recipe in FP8_RECIPES:
        found = train(recipe, *FP8, f"--fp8-recipe={recipe}")
        assert 0 < ((found - expected).abs() / expected).max() < 0.01


@pytest.mark.thorough
def test_all_layers_in_fp8_are_compiled_by_one_graph_with_the_same_losses(trainer, training_set, tmp_path):
    run = (*FP8, "--num-hidden-layers=6", *NO_DROPOUT, "--steps=3", "--token-budget=256")  # one size
    assert trainer(*words(training_set, tmp_path / "plain", *run)).status == 0
    with capturing("aot_eager"):  # the backward pass is captured too
        assert trainer(*words(training_set, tmp_path / "compiled", *run, "--compile")).status == 0
        assert count_graphs() == 4  # embeddings, layers 0 and 5, layers in FP8, heads with the loss
    assert word_losses(tmp_path / "compiled") == pytest.approx(word_losses(tmp_path / "plain"), rel=1e-3)


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", ["sharded", "pipelined"])
def test_a_divided_model_learns_in_fp8_as_a_whole_one(trainer, training_set, tmp_path, strategy):
    run = (*FP8, *NO_DROPOUT, "--steps=4")
    split = words(training_set, tmp_path / "split", *run, f"--strategy={strategy}", "--bandwidth=10")
    outcome = start_workers("torchrun", 2, *split)
    assert outcome.status == 0, outcome.err
    assert trainer(*words(training_set, tmp_path / "alone", *run, "--accumulation=2")).status == 0
    assert word_losses(tmp_path / "split") == pytest.approx(word_losses(tmp_path / "alone"), rel=2e-3)


@pytest.mark.thorough
def test_layers_that_are_computed_again_learn_the_same(trainer, training_set, tmp_path):
    run = (*FP8, "--steps=3")
    assert trainer(*words(training_set, tmp_path / "kept", *run)).status == 0
    again = words(training_set, tmp_path / "again", *run, "--recompute=always", "--strategy=sharded")
    outcome = start_workers("torchrun", 1, *again)
    assert outcome.status == 0, outcome.err
    assert word_losses(tmp_path / "again") == pytest.approx(word_losses(tmp_path / "kept"), rel=2e-3)


# Refused


def test_a_processor_without_emulation_is_refused_before_anything_is_made(trainer, training_set, tmp_path):
    outcome = trainer(*words(training_set, tmp_path / "run", "--precision=fp8", "--device=cpu"))
    refuse(outcome, 2, "precision fp8: device 'cpu' has no FP8: give --precision bf16, or --fp8-emulation")
    assert not (tmp_path / "run").exists()


def test_a_token_budget_that_is_no_multiple_of_16_is_refused(trainer, training_set, tmp_path):
    outcome = trainer(*words(training_set, tmp_path / "run", *FP8, "--token-budget=100"))
    refuse(outcome, 2, "token_budget is 100, expected a multiple of 16, because precision is fp8")


def test_padded_rows_that_do_not_have_multiples_of_16_tokens_are_refused(trainer, training_set, tmp_path):
    more = (*FP8, "--rows", "--batch-size=1", "--bins=2")
    outcome = trainer(*words(training_set, tmp_path / "run", *more))
    refuse(outcome, 2, "padded rows have 1 (batch_size) * 8 tokens, expected a multiple of 16: give another")


def test_keys_of_fp8_are_said_to_have_no_effect_in_other_precisions(trainer, training_set, tmp_path):
    more = ("--fp8-recipe=rowwise", "--fp8-emulation", "--steps=3", "--steps-this-run=1")
    outcome = trainer(*words(training_set, tmp_path / "run", *more))
    assert "accepted, without effect on device cpu: fp8_emulation, fp8_recipe" in outcome.err
