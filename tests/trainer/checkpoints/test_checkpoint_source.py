"""Checkpoints found by the names that other programs' commands have for them."""

import pytest

from trainer.checkpoints.source import find_trainer_checkpoint


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
