"""Checkpoints found by the names that other programs' commands have for them."""

from dataclasses import replace

import pytest
import torch

from trainer.checkpoints.checkpoint import make_initial_state, write_checkpoint
from trainer.checkpoints.source import find_trainer_checkpoint, open_checkpoint
from trainer.config.model import ModelConfig
from trainer.config.settings import Config


@pytest.fixture
def run(tmp_path):
    for number in (4, 10):
        (tmp_path / f"checkpoints/step-{number:08d}").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("name", ["model.ckpt-4", "ckpt_4.pt"])
def test_a_checkpoint_of_a_run_has_other_programs_names_too(run, name):
    assert find_trainer_checkpoint(f"{run}/{name}") == run / "checkpoints/step-00000004"


@pytest.mark.parametrize("name", ["model.ckpt-5", "ckpt_5.pt", "model.ckpt", "ckpt_x.pt", "4"])
def test_other_names_and_numbers_are_no_checkpoints_of_the_run(run, name):
    assert find_trainer_checkpoint(f"{run}/{name}") is None


@pytest.mark.parametrize(
    ("name", "file"), [("model.ckpt-4", "model.ckpt-4.index"), ("ckpt_4.pt", "ckpt_4.pt")]
)
def test_another_program_s_files_of_that_name_go_first(run, name, file):
    (run / file).touch()
    assert find_trainer_checkpoint(f"{run}/{name}") is None


@pytest.mark.parametrize(
    ("optimiser", "keys", "expected"),
    [
        ("lamb-mlperf", {}, (0.9, 0.999)),
        ("lamb-mlperf", {"beta2": 0.98}, (0.9, 0.98)),
        ("stableadamw", {}, (0.9, 0.99)),
        ("stableadamw-modernbert", {"beta1": 0.8}, (0.8, 0.98)),
        ("no_such_module:Optimiser", {"beta1": 0.8}, (0.8, 0.999)),
        ("of-a-later-version", {}, (0.9, 0.999)),
    ],
)
def test_the_decay_rates_of_moments_are_the_configured_ones_or_the_optimisers(
    tmp_path, optimiser, keys, expected
):
    """An export writes them to the files of other programs. The user's own optimiser is not imported."""
    state = replace(make_initial_state(Config.of(**keys), ModelConfig()), step=1, optimiser=optimiser)
    place = tmp_path / "checkpoints/step-00000001"
    tensors = {"bert.pooler.dense.bias": torch.zeros(4)}
    write_checkpoint(place, state, tensors, {f"exp_avg/{name}": one for name, one in tensors.items()})
    assert open_checkpoint(str(place)).betas == expected
