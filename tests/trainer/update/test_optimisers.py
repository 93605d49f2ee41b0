"""Every named optimiser against its formula, and LAMB against the original programs."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from bertdata.errors import SettingsError
from tests.support.optimisers import make_optimiser
from trainer.config.schedules.form import Preset
from trainer.config.settings import Config
from trainer.devices.clipping import clip_
from trainer.plugins import list_names
from trainer.update.optimisers import Lamb

RATES = [0.01, 0.02, 0.005, 0.01]
# A norm of zero: of the initial weights, of the update, or of both.
ZERO_WEIGHTS, ZERO_GRADIENTS, ZEROS = "fresh.weight", "still.weight", "dead.weight"
SHAPES = {
    "bert.encoder.layer.0.attention.self.query.weight": (4, 6),
    "bert.encoder.layer.0.attention.self.query.bias": (4,),
    "bert.embeddings.LayerNorm.weight": (6,),
    "old.layer_norm.scale": (5,),
    "old.gamma": (5,),
    ZERO_WEIGHTS: (3, 3),
    ZERO_GRADIENTS: (3, 2),
    ZEROS: (2, 2),
}
TENSORFLOW = ("LayerNorm", "layer_norm", "bias")
NVIDIA = ("bias", "gamma", "beta", "LayerNorm")


def start() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(1)
    weights = {name: draw.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    for name in (ZERO_WEIGHTS, ZEROS):
        weights[name][:] = 0
    return weights


def gradients() -> list[dict[str, np.ndarray]]:
    draw = np.random.default_rng(2)
    steps = []
    for _ in RATES:
        steps.append({name: draw.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()})
        for name in (ZERO_GRADIENTS, ZEROS):
            steps[-1][name][:] = 0
    return steps


def run(optimiser_of, steps=None) -> dict[str, np.ndarray]:
    """The weights after all steps of the optimiser made for the named parameters."""
    parameters = {name: torch.nn.Parameter(torch.tensor(value)) for name, value in start().items()}
    optimiser = optimiser_of(parameters.items())
    for rate, step in zip(RATES, steps or gradients(), strict=True):
        for name, parameter in parameters.items():
            parameter.grad = torch.tensor(step[name])
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
    return {name: parameter.detach().numpy() for name, parameter in parameters.items()}


def skipped(name: str, parts: tuple[str, ...]) -> bool:
    return any(part in name for part in parts)


def lamb_by_hand(decay_skips, trust_skips, debias, decay=0.01, betas=(0.9, 0.999), eps=1e-6):
    """TRAINER_FACTS' formulas in fp64; trust_skips None: no trust ratio at all."""
    weights = {name: value.astype(np.float64) for name, value in start().items()}
    m = {name: np.zeros_like(value) for name, value in weights.items()}
    v = {name: np.zeros_like(value) for name, value in weights.items()}
    for t, (rate, step) in enumerate(zip(RATES, gradients(), strict=True), start=1):
        for name, w in weights.items():
            g = step[name].astype(np.float64)
            m[name] = betas[0] * m[name] + (1 - betas[0]) * g
            v[name] = betas[1] * v[name] + (1 - betas[1]) * g**2
            mean, square = m[name], v[name]
            if debias:
                mean, square = mean / (1 - betas[0] ** t), square / (1 - betas[1] ** t)
            u = mean / (np.sqrt(square) + eps)
            if not skipped(name, decay_skips):
                u = u + decay * w
            ratio = 1.0
            norms = np.linalg.norm(w), np.linalg.norm(u)
            if trust_skips is not None and not skipped(name, trust_skips) and all(norms):
                ratio = norms[0] / norms[1]
            weights[name] = w - rate * ratio * u
    return weights


BY_HAND = {
    "lamb-mlperf": (TENSORFLOW, TENSORFLOW, True),
    "lamb-nvidia": (NVIDIA, NVIDIA, True),
    "lamb-nvlamb": (NVIDIA, (), True),
    "lamb-habana-tf": (TENSORFLOW, (), True),
    "lamb-graphcore": ((), (), False),
    "lamb-graphcore-pytorch": (("bias", "LayerNorm"), ("bias",), True),
    "adamw-bert": (TENSORFLOW, None, False),
}


def assert_equal(found, wanted):
    assert found.keys() == wanted.keys()
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("name", BY_HAND)
def test_presets_follow_their_formulas(name):
    found = run(lambda parameters: make_optimiser(name, parameters))
    assert_equal(found, lamb_by_hand(*BY_HAND[name]))


def test_settings_change_a_preset():
    betas, decay = (0.88, 0.88), 0.0166629
    record = run(lambda p: make_optimiser("lamb-mlperf", p, betas=betas, weight_decay=decay, eps=1e-4))
    assert_equal(record, lamb_by_hand(TENSORFLOW, TENSORFLOW, True, decay, betas, 1e-4))
    corrected = run(lambda p: make_optimiser("lamb-graphcore", p, debias=True))
    assert_equal(corrected, lamb_by_hand((), (), True))
    everywhere = run(lambda p: make_optimiser("lamb-nvidia", p, weight_decay=0.0))
    assert_equal(everywhere, lamb_by_hand((), None, True, decay=0.0))


def adam_by_hand(epsilon_in, eps=1e-3, decay=0.01):
    """Adam with decay in fp64. eps is large, so that its place matters."""
    weights = {name: value.astype(np.float64) for name, value in start().items()}
    m = {name: np.zeros_like(value) for name, value in weights.items()}
    v = {name: np.zeros_like(value) for name, value in weights.items()}
    for t, (rate, step) in enumerate(zip(RATES, gradients(), strict=True), start=1):
        one, two = 1 - 0.9**t, 1 - 0.999**t
        for name, w in weights.items():
            g = step[name].astype(np.float64)
            m[name], v[name] = 0.9 * m[name] + 0.1 * g, 0.999 * v[name] + 0.001 * g**2
            if epsilon_in == "uncorrected":  # transformers 3.0.2, fairseq: step_size = rate sqrt(two) / one
                u = np.sqrt(two) / one * m[name] / (np.sqrt(v[name]) + eps)
            elif epsilon_in == "square":  # Habana's AdamWeightDecay, without bias correction
                u = m[name] / np.sqrt(v[name] + eps**2)
            else:
                u = m[name] / one / (np.sqrt(v[name] / two) + eps)
            weights[name] = w - rate * (u + decay * w)
    return weights


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("epsilon_in", ["corrected", "uncorrected", "square"])
def test_epsilon_is_added_where_the_program_adds_it(epsilon_in, fused):
    name = "adamw-bert" if epsilon_in == "square" else "adamw"

    def make(parameters):
        more = {"eps": 1e-3, "weight_decay": 0.01, "decay_skips": (), "epsilon_in": epsilon_in}
        made = make_optimiser(name, parameters, **more)
        made.fuses = fused
        return made

    assert_equal(run(make), adam_by_hand(epsilon_in))


def test_adamw_momentum_and_sgd_are_pytorchs():
    def by_hand(update):
        weights = {name: value.astype(np.float64) for name, value in start().items()}
        state = {name: [np.zeros_like(value), np.zeros_like(value)] for name, value in weights.items()}
        for t, (rate, step) in enumerate(zip(RATES, gradients(), strict=True), start=1):
            for name in weights:
                weights[name] = update(weights[name], step[name].astype(np.float64), state[name], rate, t)
        return weights

    def adamw(w, g, state, rate, t):
        state[:] = 0.9 * state[0] + 0.1 * g, 0.999 * state[1] + 0.001 * g**2
        mean, square = state[0] / (1 - 0.9**t), state[1] / (1 - 0.999**t)
        return w * (1 - rate * 0.01) - rate * mean / (np.sqrt(square) + 1e-8)

    def momentum(w, g, state, rate, t):
        state[0] = 0.9 * state[0] + g
        return w - rate * state[0]

    for name, update in (
        ("adamw", adamw),
        ("momentum", momentum),
        ("sgd", lambda w, g, s, rate, t: w - rate * g),
    ):
        found = run(lambda parameters, name=name: make_optimiser(name, parameters))
        assert_equal(found, by_hand(update))


@pytest.mark.parametrize(
    ("case", "clipped"),
    [
        # Its worker clips each micro-batch before the all-reduce; the optimiser alone does not.
        ("lamb-mlperf", False),
        ("lamb-mlperf (clip after all-reduce)", True),
        ("lamb-nvidia", True),
        ("lamb-nvlamb", True),
    ],
)
def test_lamb_ends_where_the_original_programs_end(kit: Path, case, clipped):
    golden = json.loads((kit / "optimizers.json").read_text(encoding="utf-8"))
    inputs, wanted = golden["inputs"], golden["weights after 5 steps"][case]

    def wave(of, k, shape):
        return torch.tensor(of(k, np.arange(math.prod(shape))).astype(np.float32).reshape(shape))

    shapes = {name: (k, shape) for k, (name, shape) in enumerate(inputs["shapes"].items(), start=1)}
    parameters = {
        name: torch.nn.Parameter(wave(lambda k, i: 0.5 * np.sin(0.37 * k * i + k), k, shape))
        for name, (k, shape) in shapes.items()
    }
    preset = case.split()[0]
    optimiser = make_optimiser(preset, parameters.items())
    for t, rate in enumerate(inputs["learning rates"]):
        for name, (k, shape) in shapes.items():
            parameters[name].grad = wave(
                lambda k, i, t=t: 0.2 * (1 + t) * np.cos(0.71 * k * i + 0.3 * t + k), k, shape
            )
        if clipped:
            clip_([parameter.grad for parameter in parameters.values()], 1.0)
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
    for name, parameter in parameters.items():
        np.testing.assert_allclose(parameter.detach().numpy().ravel(), wanted[name], rtol=0, atol=1e-6)


def test_presets_clip_where_their_programs_do():
    clips = {name: Config.of(optimiser=name).update.clipping_point for name in list_names("optimiser")}
    assert clips.pop("lamb-habana-tf") == "per_micro_batch_divided"
    assert clips.pop("lamb-mlperf") == clips.pop("adamw-bert") == "per_micro_batch"
    assert clips.pop("lamb-nvidia") == clips.pop("lamb-nvlamb") == "per_update"
    assert clips == dict.fromkeys(
        [
            *("lamb-graphcore", "lamb-graphcore-pytorch", "adamw", "momentum", "sgd"),
            *("stableadamw", "stableadamw-modernbert"),
        ],
        "none",
    )
    assert Config.of().update.max_grad_norm == 1.0


def test_query_key_and_value_have_a_trust_ratio_each():
    draw = torch.Generator().manual_seed(0)
    weights = [scale * torch.randn(4, 4, generator=draw) for scale in (0.1, 1.0, 10.0)]
    slopes = [torch.randn(4, 4, generator=draw) for _ in range(3)]

    def step(weights, slopes):
        parameters = [torch.nn.Parameter(weight.clone()) for weight in weights]
        for parameter, slope in zip(parameters, slopes, strict=True):
            parameter.grad = slope.clone()
        Lamb(parameters, Preset(lr=0.1)).step()
        return [parameter.detach() - weight for parameter, weight in zip(parameters, weights, strict=True)]

    apart = step(weights, slopes)
    for change, weight in zip(apart, weights, strict=True):
        assert float(change.norm()) == pytest.approx(0.1 * float(weight.norm()), rel=1e-4)
    fused = step([torch.cat(weights)], [torch.cat(slopes)])[0]
    assert not torch.allclose(fused, torch.cat(apart), rtol=0.1)


@pytest.mark.parametrize("name", sorted(list_names("optimiser")))
def test_a_restored_optimiser_goes_on_bit_for_bit(name):
    def stopped_halfway(parameters):
        return Halfway(name, dict(parameters))

    straight = run(lambda parameters: make_optimiser(name, parameters))
    resumed = run(stopped_halfway)
    for path, value in straight.items():
        assert np.array_equal(value, resumed[path]), path


class Halfway:
    """An optimiser that is saved as safetensors and JSON, and read back, before each of its steps."""

    def __init__(self, name, parameters):
        self.name, self.parameters = name, parameters
        self.optimiser = make_optimiser(name, parameters.items())

    @property
    def param_groups(self):
        return self.optimiser.param_groups

    def step(self):
        saved = self.optimiser.state_dict()
        tensors = {
            f"{number}.{key}": value
            for number, state in saved["state"].items()
            for key, value in state.items()
            if value is not None
        }
        tensors, groups = load(save(tensors)), json.loads(json.dumps(saved["param_groups"]))
        state: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in tensors.items():
            number, _, inner = key.partition(".")
            state.setdefault(int(number), {})[inner] = value
        self.optimiser = make_optimiser(self.name, self.parameters.items())
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})
        self.optimiser.step()


def test_the_chunk_changes_no_bit():
    runs = [
        run(lambda parameters, chunk=chunk: Lamb([value for _, value in parameters], Preset(), chunk))
        for chunk in (1, 20, 10_000)
    ]
    for name in SHAPES:
        assert np.array_equal(runs[0][name], runs[1][name])
        assert np.array_equal(runs[0][name], runs[2][name])


def test_parameters_without_gradient_stay():
    used, unused = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    optimiser = make_optimiser("lamb-nvlamb", [("a", used), ("b", unused)])
    used.grad = torch.ones(2)
    optimiser.step()
    assert torch.equal(unused, torch.ones(2))
    assert not torch.equal(used, torch.ones(2))


def test_clipping_divides_by_the_norm_above_the_limit_only():
    tensors = [torch.tensor([3.0]), torch.tensor([[0.0, 4.0]])]
    assert clip_(tensors, 1.0) == 5
    torch.testing.assert_close(tensors, [torch.tensor([0.6]), torch.tensor([[0.0, 0.8]])])
    before = [tensor.clone() for tensor in tensors]
    assert float(clip_(tensors, 1.5)) == pytest.approx(1)
    assert all(map(torch.equal, tensors, before))
    zeros = [torch.zeros(3)]
    assert clip_(zeros, 1.0) == 0
    assert torch.equal(zeros[0], torch.zeros(3))
    assert clip_([], 1.0) == 0
    lost = [torch.tensor([1.0, math.nan])]
    assert math.isnan(clip_(lost, 1.0))


def test_the_clipping_of_no_norm_is_refused():
    with pytest.raises(SettingsError, match="max_norm is 0, expected more than 0"):
        clip_([torch.ones(1)], 0)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"optimiser": "lamb-nvida"}, "optimiser is 'lamb-nvida', expected one of lamb-mlperf, lamb-nvidia"),
        ({"wieght_decay": 0}, "wieght_decay is not a known key; the nearest known is weight_decay"),
        ({"beta2": 1.0}, "beta2 is 1.0, expected less than 1"),
        ({"optimiser_epsilon": 0.0}, "optimiser_epsilon is 0.0, expected more than 0"),
        ({"weight_decay": -1.0}, "weight_decay is -1.0, expected 0 or more"),
        ({"momentum": 1.0}, "momentum is 1.0, expected less than 1"),
    ],
)
def test_wrong_names_and_settings_are_refused(keys, message):
    with pytest.raises(SettingsError) as caught:
        Config.of(**keys)
    assert message in str(caught.value)
