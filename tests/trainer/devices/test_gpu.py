"""Short runs on a real GPU, compared with the processor: ``pytest -m gpu``; left out where there is none."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks.gpu.__main__ import main as check
from benchmarks.gpu.figures import read_figures
from tests.support.launching import ROOT, launch
from tests.support.training_runs import losses, tensors
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.config.model import ModelConfig
from trainer.config.sections.update import FP8_RECIPES
from trainer.model.fp8 import convert_linear_layers
from trainer.model.headed import BertForPreTraining

pytestmark = pytest.mark.gpu
SIZES = ("--num-hidden-layers=2", "--hidden-size=128", "--num-attention-heads=2", "--intermediate-size=256")
RUN = (
    "--batch-size=16",
    "--accumulation=2",
    "--steps=20",
    "--warmup=2",
    "--log-every=1",
    "--no-progress-bar",
    "--no-compile",
)
MODERNBERT = ("--model-type=modernbert", "--num-hidden-layers=3", "--local-attention=16")
NO_DROPOUT = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")
EXACT = 2e-4  # sums in another order
ROUNDED = 5e-2  # bf16 has 8 bits
TF32 = 5e-3


@pytest.fixture
def train(training_set, tmp_path, monkeypatch):
    """Run the trainer with the arguments; returns the output directory. Later arguments win."""
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")  # full fp32 unless a test allows TF32

    def run(
        name: str, *more: str, launcher: str = "alone", workers: int = 1, data: Path = training_set
    ) -> Path:
        words = ["pretrain", "--device=cuda", *SIZES, *RUN, f"--train-data={data}", *more]
        place = tmp_path / name
        module = ROOT / "tests" / "support" / "trainer_worker.py"
        outcome = launch(
            launcher, workers, module, *words, f"--output-dir={place}", seconds=240, python=sys.executable
        )
        assert outcome.status == 0, outcome.err
        (tmp_path / f"{name}.err").write_text(outcome.err)
        return place

    return run


def word_losses(run: Path) -> list[float]:
    return [row["mlm_loss"] for row in losses(run)]


def test_losses_in_fp32_are_those_of_the_processor(train):
    ours, theirs = train("gpu", *NO_DROPOUT), train("cpu", *NO_DROPOUT, "--device=cpu")
    assert word_losses(ours) == pytest.approx(word_losses(theirs), abs=EXACT)


def test_tf32_is_used_and_stays_near(train, monkeypatch):
    exact = train("exact", *NO_DROPOUT)
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE")
    rounded = train("tf32", *NO_DROPOUT)
    assert word_losses(rounded) != word_losses(exact)
    assert word_losses(rounded) == pytest.approx(word_losses(exact), abs=TF32)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_16_bits_learn_as_32_do(train, precision):
    steps = ("--steps=60", "--base-learning-rate=0.01")
    half, full = train(precision, f"--precision={precision}", *steps), train("fp32", *steps)
    halves, fulls = word_losses(half), word_losses(full)
    assert fulls[-1] < fulls[0] - 0.5
    assert sum(halves[-5:]) / 5 == pytest.approx(sum(fulls[-5:]) / 5, abs=0.1)


def test_resumed_is_the_same_as_never_stopped(train):
    words = ("--precision=bf16", "--deterministic", "--checkpoint-every=10")
    whole = train("whole", *words)
    train("cut", *words, "--steps-this-run=10")
    cut = train("cut", *words, "--resume")
    assert losses(cut) == losses(whole)
    assert tensors(cut, 20) == tensors(whole, 20)


def test_deterministic_runs_are_the_same_to_the_bit(train):
    one, other = (train(name, "--deterministic", "--precision=bf16") for name in ("one", "other"))
    assert tensors(one, 20) == tensors(other, 20)


@pytest.fixture
def fp8_layer() -> Callable[..., nn.Linear]:
    """Return a function that makes a linear layer in FP8 on the GPU, always with the same weights."""
    pytest.importorskip("torchao", reason="FP8 needs torchao")
    if torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("this GPU has no FP8")

    def make(recipe: str, emulates: bool) -> nn.Linear:
        torch.manual_seed(3)
        sizes = {"hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 256}
        model = BertForPreTraining(ModelConfig(vocab_size=64, num_hidden_layers=3, **sizes))
        convert_linear_layers(model, recipe, emulates)
        return model.bert.encoder.layer[1].intermediate.dense.cuda().bfloat16()

    return make


@pytest.mark.parametrize("recipe", FP8_RECIPES)
def test_a_layer_in_fp8_computes_what_its_emulation_computes(fp8_layer, recipe):
    draw = torch.Generator("cuda").manual_seed(1)
    given = torch.randn(64, 128, generator=draw, device="cuda").bfloat16()
    gradient = torch.randn(64, 256, generator=draw, device="cuda").bfloat16()
    results = []
    for emulates in (False, True):
        layer, rows = fp8_layer(recipe, emulates), given.clone().requires_grad_()
        output = layer(rows)
        output.backward(gradient)
        results.append([output, rows.grad, layer.weight.grad])
    for found, expected in zip(*results, strict=True):
        # The results are rounded to bf16, and the GPU's sums have fewer bits than fp32.
        assert (found - expected).abs().max() < 2**-6 * expected.abs().max()


@pytest.mark.parametrize("option", ["--no-compile", "--compile"])
@pytest.mark.parametrize("recipe", FP8_RECIPES)
@pytest.mark.usefixtures("fp8_layer")
def test_fp8_learns_as_bf16_does(train, recipe, option, tmp_path):
    more = ("--num-hidden-layers=4", "--steps=60", "--base-learning-rate=0.01", option)
    more = (*more, "--token-budget=1024")  # one graph
    half = train("bf16", *more, "--precision=bf16")
    eight = train("fp8", *more, "--precision=fp8", f"--fp8-recipe={recipe}")
    halves, eighths = word_losses(half), word_losses(eight)
    assert eighths != halves
    assert halves[-1] < halves[0] - 0.5
    assert sum(eighths[-5:]) / 5 == pytest.approx(sum(halves[-5:]) / 5, abs=0.1)
    assert f"precision fp8, recipe {recipe}: linear layers" in (tmp_path / "fp8.err").read_text()


@pytest.mark.parametrize("option", ["--compile", "--cuda-graphs"])
def test_compiled_losses_are_those_of_the_plain_run(train, option):
    """With accumulation: the gradients of one graph run must survive the next run."""
    plain, compiled = train("plain", *NO_DROPOUT), train("compiled", *NO_DROPOUT, option)
    assert word_losses(compiled) == pytest.approx(word_losses(plain), abs=EXACT)


def test_graphs_draw_new_dropout_each_time_and_train(train):
    rate = ("--cuda-graphs", "--precision=bf16", "--lr-schedule=custom")
    still = train("still", *rate, '--lr-schedule-by-step={"0": 0.0}', "--hidden-dropout-prob=0.5")
    assert len(set(word_losses(still))) == 20
    learning = train(
        "learning", *rate, '--lr-schedule-by-step={"0": 0.01}', "--steps=60", "--checkpoint-every=0"
    )
    found = word_losses(learning)
    assert found[-1] < found[0] - 0.5


@pytest.mark.parametrize("kernel", ["flash", "efficient", "cudnn", "math"])
def test_every_attention_kernel_computes_the_same(train, kernel, tmp_path):
    words = (*NO_DROPOUT, "--precision=bf16")
    auto, forced = train("auto", *words), train("forced", *words, f"--attention={kernel}")
    assert word_losses(forced) == pytest.approx(word_losses(auto), abs=ROUNDED)
    assert f"{kernel} attention" in (tmp_path / "forced.err").read_text()


@pytest.mark.parametrize("kernel", ["flash", "efficient", "math"])
def test_every_attention_kernel_trains_with_dropout(train, kernel):
    rate = ("--precision=bf16", "--steps=60", "--base-learning-rate=0.01", f"--attention={kernel}")
    found = word_losses(train("run", *rate))
    assert found[-1] < found[0] - 0.5


def test_modernbert_in_fp32_learns_what_it_does_on_the_processor(train, block_set):
    words = (*NO_DROPOUT, *MODERNBERT)
    ours, theirs = train("gpu", *words, data=block_set), train("cpu", *words, "--device=cpu", data=block_set)
    assert word_losses(ours) == pytest.approx(word_losses(theirs), abs=EXACT)


@pytest.mark.parametrize("option", ["--no-compile", "--compile"])
def test_the_windows_of_flash_attention_are_those_of_blocks(train, block_set, option):
    words = (*NO_DROPOUT, *MODERNBERT, "--precision=bf16", option, "--token-budget=2048")  # one graph
    flash, blocks = (
        train(kernel, *words, f"--attention={kernel}", data=block_set) for kernel in ("flash", "math")
    )
    assert word_losses(flash) == pytest.approx(word_losses(blocks), abs=ROUNDED)


def test_evaluation_and_phase_2_follow(train, training_set):
    words = (f"--eval-data={training_set}", "--precision=bf16")
    train("run", *words)
    place = train("run", *words, "--phase2", "--steps=4")
    assert max(find_checkpoints(str(place))) == 24
    assert "masked_lm_accuracy" in (place / "eval_results.txt").read_text()


def test_a_profile_shows_the_gpus_kernels(train):
    assert '"cat": "kernel"' in (train("run", "--profile") / "profile.json").read_text()


def test_a_worker_of_torchrun_learns_through_nccl_what_one_alone_does(train):
    """NCCL on a machine with one GPU: tables of bytes, broadcasts, buckets, closing."""
    one = train("one", *NO_DROPOUT)
    launched = train("launched", *NO_DROPOUT, launcher="torchrun", workers=1)
    assert word_losses(launched) == pytest.approx(word_losses(one), abs=EXACT)


def test_two_workers_learn_what_one_learns(train):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    one = train("one", *NO_DROPOUT)
    two = train("two", *NO_DROPOUT, "--accumulation=1", launcher="torchrun", workers=2)
    assert word_losses(two) == pytest.approx(word_losses(one), abs=EXACT)


def test_steps_of_the_check_write_their_figures(tmp_path):
    words = ["smoke", "options", "--small", f"--output={tmp_path}"]
    assert check([*words, "--only=ceiling;bandwidth;phase1 eager;phase1 attention math"]) == 0
    found = {
        (line["step"], line["name"]): line["value"] for line in read_figures(tmp_path) if "value" in line
    }
    for step in ("phase1 eager", "phase1 attention math"):
        for name in ("sequences", "real tokens", "share of the measured ceiling", "peak memory"):
            assert found[step, name] > 0
    assert 0 < found["phase1 eager", "real share of the tokens fed"] <= 1
