"""A plan fits the run that trains by it, or the first difference is named."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from bertdata.errors import SettingsError
from tests.support.plans import make_plan
from trainer.config.model_kinds import read_model_config
from trainer.config.settings import Config
from trainer.devices.cuda import Cuda
from trainer.splitting.plan.fit import SETTINGS_WITHOUT_EFFECT, can_split, check_fits

PLAN = make_plan()
RUN: dict[str, Any] = {
    "model": read_model_config(PLAN.model),
    "devices": 8,
    "sequence_length": 128,
    "precision": "bf16",
    "optimiser": "lamb-nvidia",
}


def test_the_run_that_a_plan_is_made_for_fits():
    check_fits(PLAN, **RUN, where="plan.json")


def test_shorter_sequences_fit():
    check_fits(PLAN, **RUN | {"sequence_length": 64}, where="plan.json")


def test_an_optimiser_with_moments_of_the_same_size_fits():
    check_fits(PLAN, **RUN | {"optimiser": "adamw"}, where="plan.json")


@pytest.mark.parametrize(("planned", "run"), [("masked words", None), (None, "masked words"), (None, None)])
def test_a_plan_or_a_run_that_says_no_head_fits(planned, run):
    check_fits(replace(PLAN, head=planned), **RUN, head=run, where="plan.json")


@pytest.mark.parametrize("name", SETTINGS_WITHOUT_EFFECT)
def test_what_no_plan_depends_on_may_differ(name):
    others = {"deep_weight_init": True, "model_type": "roberta", "pad_token_id": 1}
    other = replace(RUN["model"], **{name: others.get(name, 0.25)})
    assert other != RUN["model"]
    check_fits(PLAN, **RUN | {"model": other}, where="plan.json")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"devices": 4}, "is a plan for 8 devices = 4 (stages) * 2 (copies), found 4"),
        ({"sequence_length": 129}, "is a plan for sequences of 128 ids, this run's have up to 129"),
        ({"precision": "fp32"}, "is a plan for precision bf16, this run's is fp32"),
        (
            {"optimiser": "sgd"},
            "is a plan for optimiser lamb-nvidia, whose moments take 8 bytes a weight; "
            "those of sgd, this run's, take 0",
        ),
        (
            {"model": replace(RUN["model"], hidden_size=64)},
            "is a plan for another model: its hidden_size is 32, this run's 64",
        ),
        (
            {"model": replace(RUN["model"], megatron_residual_connection=True)},
            "its megatron_residual_connection is False, this run's True",
        ),
        ({"model": replace(RUN["model"], type_vocab_size=1)}, "its type_vocab_size is 2, this run's 1"),
    ],
)
def test_the_first_difference_is_named(changes, words):
    with pytest.raises(SettingsError) as caught:
        check_fits(PLAN, **RUN | changes, where="plan.json")
    assert str(caught.value) == (
        f"plan.json: {words}; make a plan for this run with python -m trainer split"
        if words.startswith("is ")
        else f"plan.json: is a plan for another model: {words}; make a plan for this run with python -m "
        "trainer split"
    )


@pytest.fixture
def gpus(monkeypatch):
    """Two pretended GPUs, and what PyTorch needs to compile for them, as far as it is looked for."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr("trainer.devices.cuda.find_spec", lambda name: name)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    precision = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(precision)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("keys", "fits"), [({}, True), ({"compile": True}, True), ({"cuda_graphs": True}, False)]
)
def test_a_model_in_a_cuda_graph_is_not_split_and_another_compiled_model_is(keys, fits):
    workers = SimpleNamespace(name="torch_distributed", size=2)
    device = Cuda(Config.of(device="cuda", **keys), 1)
    assert device.compiles
    assert can_split(device, workers) is fits
