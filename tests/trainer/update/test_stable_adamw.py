"""StableAdamW against its formula in fp64, and against ModernBERT's own program."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.optimisers import make_optimiser
from trainer.config.model import ModelConfig
from trainer.config.schedules.form import Preset
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.model.headed import BertForPreTraining
from trainer.plugins import find
from trainer.update.make_step import make_optimiser_step
from trainer.update.optimisers import StableAdamW

RATES = [1e-3, 2e-3, 2e-3, 5e-4]
SHAPES = {"one.weight": (4, 6), "one.bias": (6,), "one.norm.weight": (6,)}


class Plain(Cpu):
    """A processor that runs the plain operations one by one."""

    fused_step = False


def drawn(seed: int, scale: float = 1.0) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {name: scale * draw.normal(size=shape) for name, shape in SHAPES.items()}


def by_hand(gradients, *, betas, eps, decay, peak=None):
    """The formula's twin, with decay of the matrices alone."""
    weights, (b1, b2) = drawn(0), betas
    m = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    v = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    for t, (rate, step) in enumerate(zip(RATES, gradients, strict=True), start=1):
        for name, g in step.items():
            m[name] = b1 * m[name] + (1 - b1) * g
            v[name] = b2 * v[name] + (1 - b2) * g**2
            mean, square = m[name] / (1 - b1**t), v[name] / (1 - b2**t)
            surprise = np.sqrt(np.mean(g**2 / np.maximum(square, eps**2)))
            own = rate / max(1.0, surprise)
            if weights[name].ndim > 1:
                weights[name] = weights[name] * (1 - own / (peak or 1) * decay)
            weights[name] = weights[name] - own * mean / (np.sqrt(square) + eps)
    return weights


def steps_of(kind, gradients, **settings):
    """The weights after the trainer's own steps, by fused kernels or by plain operations."""
    config = Config.of(optimiser="stableadamw-modernbert", base_learning_rate=max(RATES), **settings)
    weights = {name: torch.nn.Parameter(torch.tensor(v).float()) for name, v in drawn(0).items()}
    step = make_optimiser_step(config, kind(config), weights.items())
    for number, (rate, each) in enumerate(zip(RATES, gradients, strict=True), start=1):
        for name, weight in weights.items():
            weight.grad = torch.tensor(each[name]).float()
        step.take([weight.grad for weight in weights.values()], rate, number)
    return {name: weight.detach().numpy() for name, weight in weights.items()}


@pytest.mark.parametrize("kind", [Cpu, Plain])
def test_the_step_is_the_formula(kind):
    gradients = [drawn(seed, scale) for seed, scale in ((1, 1.0), (2, 20.0), (3, 0.1), (4, 1e-9))]
    wanted = by_hand(gradients, betas=(0.9, 0.98), eps=1e-6, decay=0.3, peak=max(RATES))
    found = steps_of(kind, gradients, weight_decay=0.3)
    for name in SHAPES:
        np.testing.assert_allclose(found[name], wanted[name], rtol=2e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", [Cpu, Plain])
def test_a_surprising_gradient_changes_the_weights_by_no_more_than_the_rate(kind):
    calm = [drawn(1), drawn(1), drawn(1)]
    outburst = {name: 1000 * value for name, value in drawn(1).items()}
    before, after = (steps_of(kind, [*calm, last], weight_decay=0.0) for last in (drawn(1), outburst))
    for name in SHAPES:
        assert np.abs(after[name] - before[name]).mean() < 2 * RATES[-1], name


@pytest.mark.parametrize("fuses", [True, False])
@pytest.mark.parametrize("case", ["decoupled_stableadamw", "stableadamw"])
def test_five_steps_end_where_modernberts_program_ends(kit: Path, case, fuses):
    oracle = json.loads((kit / "encoders/modernbert/stableadamw.json").read_text(encoding="utf-8"))[case]
    given = oracle["settings"]
    weights = [torch.nn.Parameter(torch.tensor(value)) for value in oracle["weights"]]
    groups = [
        {"params": [weight], "weight_decay": 0.0 if number in given["no_decay"] else given["weight_decay"]}
        for number, weight in enumerate(weights)
    ]
    preset = Preset(
        kind="stableadamw",
        lr=given["max_lr"],
        betas=tuple(given["betas"]),
        eps=given["eps"],
        decays_by_share=given["decouple_lr"],
        trust="none",
    )
    optimiser = StableAdamW(groups, preset)
    optimiser.fuses = fuses
    for rate, gradients, wanted in zip(given["lrs"], oracle["gradients"], oracle["after"], strict=True):
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = torch.tensor(gradient)
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
        for weight, value in zip(weights, wanted, strict=True):
            np.testing.assert_allclose(weight.detach().numpy(), np.array(value), rtol=0, atol=5e-7)


def test_the_published_settings_are_the_presets():
    preset = find("optimiser", "stableadamw-modernbert")
    assert (preset.betas, preset.eps, preset.weight_decay) == ((0.9, 0.98), 1e-6, 1e-5)
    assert (preset.decays_by_share, preset.schedule, preset.clipping) == (True, "trapezoidal", "none")


def test_weights_of_one_dimension_alone_do_not_decay():
    model = BertForPreTraining(ModelConfig(vocab_size=40, hidden_size=8, num_attention_heads=2))
    preset = find("optimiser", "stableadamw-modernbert")
    for name, weight in model.named_parameters():
        assert preset.decays(name) == (weight.ndim > 1), name


def test_one_beta_that_is_given_leaves_the_other_the_optimisers():
    config = Config.of(optimiser="stableadamw-modernbert", beta1=0.8)
    weight = torch.nn.Parameter(torch.ones(2, 2))
    assert make_optimiser_step(config, Cpu(config), [("a", weight)]).optimiser.preset.betas == (0.8, 0.98)


def test_the_decay_follows_the_share_of_the_rate_in_the_base_rate():
    weight = torch.nn.Parameter(torch.ones(2, 2))
    optimiser = make_optimiser(
        "stableadamw-modernbert", [("a", weight)], lr=0.1, weight_decay=0.5, eps=1e30
    )  # so that nothing but the decay is left
    for rate in (0.1, 0.05):
        weight.grad = torch.zeros(2, 2)
        optimiser.param_groups[0]["lr"] = rate
        optimiser.step()
    torch.testing.assert_close(weight.detach(), torch.full((2, 2), 0.5 * 0.75))
