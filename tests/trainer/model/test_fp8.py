"""Linear layers in FP8, emulated on the processor and compared with a readable twin."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bertdata.errors import MissingExtraError, SettingsError
from tests.support.fp8_twin import E4M3, E5M2, Format, multiply, round_to
from trainer.config.model_kinds import read_model_config
from trainer.config.sections.update import FP8_RECIPES
from trainer.model import fp8
from trainer.model.fp8 import convert_linear_layers
from trainer.model.headed import BertForPreTraining, HeadedBert

pytest.importorskip("torchao", reason="FP8 needs torchao")

SHAPE = {
    "vocab_size": 48,
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "initializer_range": 0.2,
}
FIRST_AND_LAST = ("bert.encoder.layer.0.", "bert.encoder.layer.3.")
EXACT = 2e-6  # of the largest value: sums in another order


def make(recipe: str = "tensorwise", **changes: Any) -> HeadedBert:
    torch.manual_seed(3)
    model = BertForPreTraining(read_model_config(SHAPE | changes))
    convert_linear_layers(model, recipe, emulates=True)
    return model


def find_fp8_layers(model: nn.Module) -> set[str]:
    return {
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and type(module) is not nn.Linear
    }


def assert_close(found: Tensor, expected: np.ndarray) -> None:
    assert np.abs(found.detach().numpy() - expected).max() < EXACT * np.abs(expected).max()


@pytest.mark.parametrize("kind", ["bert", "modernbert"])
def test_all_linear_layers_between_the_first_and_the_last_encoder_layer_are_in_fp8(kind):
    model = make(model_type=kind)
    linear = {name for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    inner = {name for name in linear if ".encoder." in name and not name.startswith(FIRST_AND_LAST)}
    assert find_fp8_layers(model) == inner
    assert len(inner) == {"bert": 2 * 6, "modernbert": 2 * 4}[kind]


def test_weights_keep_names_order_shapes_types_and_values():
    torch.manual_seed(3)
    plain = BertForPreTraining(read_model_config(SHAPE)).state_dict()
    found = make().state_dict()
    assert list(found) == list(plain)
    assert {one.dtype for one in found.values()} == {torch.float32}
    assert all(torch.equal(found[name], plain[name]) for name in plain)


@pytest.mark.parametrize("recipe", FP8_RECIPES)
def test_a_layer_computes_what_the_twin_computes(recipe):
    layer = make(recipe).bert.encoder.layer[1].output.dense
    draw = torch.Generator().manual_seed(1)
    nn.init.normal_(layer.bias, generator=draw)
    # Rows and columns of very different sizes, so that one scale and scales of rows round differently.
    sizes = torch.logspace(-3, 1, 64)[torch.randperm(64, generator=draw)]
    rows = (torch.randn(16, 64, generator=draw) * sizes).requires_grad_()
    gradient = torch.randn(16, 32, generator=draw) * torch.logspace(-4, 0, 16)[:, None]
    output = layer(rows)
    output.backward(gradient)
    given = (rows, layer.weight, layer.bias, gradient)
    twin = multiply(*(one.detach().numpy() for one in given), recipe)
    for found, expected in zip((output, rows.grad, layer.weight.grad, layer.bias.grad), twin, strict=True):
        assert_close(found, expected)
    exact = rows.detach().numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    error = np.abs(twin.output - exact).max() / np.abs(exact).max()
    assert 100 * EXACT < error < 0.1  # the roundings are seen


@pytest.mark.parametrize("recipe", FP8_RECIPES)
def test_query_key_and_value_are_one_product_as_the_twin_computes_it(recipe):
    attention = make(recipe).bert.encoder.layer[2].attention.self
    draw = torch.Generator().manual_seed(2)
    parts = (attention.query, attention.key, attention.value)
    for number, part in enumerate(parts):
        nn.init.normal_(part.weight, std=10.0**-number, generator=draw)
        nn.init.normal_(part.bias, generator=draw)
    rows = torch.randn(16, 32, generator=draw).requires_grad_()
    gradient = torch.randn(16, 96, generator=draw)
    joined = torch.stack(attention.project(rows, one_product=True), 1).view(16, 96)
    joined.backward(gradient)
    weight, bias = (torch.cat([getattr(part, name) for part in parts]) for name in ("weight", "bias"))
    given = (rows, weight, bias, gradient)
    twin = multiply(*(one.detach().numpy() for one in given), recipe)
    assert_close(joined, twin.output)
    assert_close(rows.grad, twin.rows)
    assert_close(torch.cat([part.weight.grad for part in parts]), twin.weight)
    assert_close(torch.cat([part.bias.grad for part in parts]), twin.bias)


@pytest.mark.parametrize(
    ("form", "dtype"), [(E4M3, torch.float8_e4m3fn), (E5M2, torch.float8_e5m2)], ids=["e4m3", "e5m2"]
)
def test_the_twin_rounds_to_the_formats_as_pytorch_does(form: Format, dtype: torch.dtype):
    every = torch.arange(256, dtype=torch.uint8).view(dtype).float().numpy()
    numbers = np.unique(every[np.isfinite(every)])
    between = (numbers[1:] + numbers[:-1]) / 2  # as near to one as to the other
    values = np.concatenate([numbers, between, np.nextafter(between, np.float32(0)), numbers * 1.03])
    values = values[np.abs(values) <= form.largest]
    assert (round_to(values, form) == torch.from_numpy(values).to(dtype).float().numpy()).all()


# Refused


def test_a_model_without_layers_between_the_first_and_the_last_is_refused():
    with pytest.raises(SettingsError, match="fp8: the model has 2 layers, expected 3 or more, because"):
        make(num_hidden_layers=2)


@pytest.mark.parametrize("name", ["hidden_size", "intermediate_size"])
def test_sizes_that_are_no_multiples_of_16_are_refused(name):
    with pytest.raises(SettingsError, match=f"precision fp8: {name} is 40, expected a multiple of 16"):
        make(**{name: 40})


def test_without_the_library_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(fp8, "_LIBRARY", "no_such_library")
    with pytest.raises(MissingExtraError, match=r"precision fp8 needs the package .*'\.\[fp8\]'"):
        fp8.require_fp8_library()


@pytest.mark.thorough
def test_the_library_is_not_imported_for_other_precisions():
    code = """
import sys
import trainer.run.pretrain, trainer.devices.cpu, trainer.model.fp8
assert not [name for name in sys.modules if name.startswith("torchao")]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
