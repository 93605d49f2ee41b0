"""Names of other programs: each is refused with the program that has it."""

import pytest

from tests.support.configurations import config_file
from trainer.commands.foreign_names import _FOREIGN_NAMES, _OUR_KEYS, add_name_hints
from trainer.config.flags import UnknownKeyError, make_config
from trainer.config.settings import get_known_names
from trainer.programs.choice import find_program, find_programs_with


def hinted(arguments: list[str]) -> str:
    """The error for the arguments with the hint that every command gives."""
    with pytest.raises(UnknownKeyError) as caught:
        make_config(arguments)
    return str(add_name_hints(caught.value))


@pytest.mark.parametrize(
    ("flag", "program"),
    [
        ("--train_batch_size=8", "nvidia/run_pretraining.py"),
        ("--model_name_or_path=large", "habana/demo_bert.py"),
        ("--num_train_steps=8", "mlperf/run_pretraining.py"),
        ("--pipeline-depth=8", "graphcore/run_pretraining.py"),
        ("--use_habana", "habana/run_pretraining.py"),
    ],
)
def test_a_flag_of_another_program_is_refused_and_names_its_door(flag, program):
    said = hinted([flag])
    assert "is not a key of this trainer" in said
    assert program in said
    assert "python -m trainer like" in said


@pytest.mark.parametrize(
    ("flag", "ours"),
    [
        ("--learning-rate=1", "--base-learning-rate"),
        ("--learning_rate=1", "--base-learning-rate"),
        ("--max-steps=8", "--steps"),
        ("--train-batch-size=8", "--batch-size"),
        ("--epochs=8", "--num-train-epochs"),
        ("--fp16", "--precision fp16"),
        ("--lr=1", "--base-learning-rate"),
        ("--num-epochs=8", "--num-train-epochs"),
        ("--bf16", "--precision bf16"),
    ],
)
def test_another_name_for_a_flag_of_ours_is_refused_and_names_ours_first(flag, ours):
    name = flag.partition("=")[0].replace("_", "-")
    assert hinted([flag]).startswith(f"{name} is not a key of this trainer; use {ours}")


def test_another_name_for_a_key_of_ours_is_refused_and_names_ours_first(tmp_path):
    place = config_file(tmp_path, learning_rate=1)
    assert hinted(["--config", place]).startswith(
        f"{place}: learning_rate is not a key of this trainer; use base_learning_rate. To run a command line"
    )


def test_every_hint_names_a_key_of_ours_and_no_hint_hides_a_key():
    assert set(_FOREIGN_NAMES) <= set(get_known_names())
    assert set(_OUR_KEYS).isdisjoint(get_known_names())
    assert len(_OUR_KEYS) == sum(len(names.split()) for names in _FOREIGN_NAMES.values())


def test_a_key_of_another_programs_file_is_refused_and_names_its_door(tmp_path):
    place = config_file(tmp_path, seq_length=128)
    assert hinted(["--config", place]).startswith(
        f"{place}: seq_length is not a key of this trainer; use max_seq_length. "
        "To run a command line of graphcore/"
    )


def test_a_flag_that_no_program_has_is_no_programs():
    assert find_programs_with("--steps-this-rum") == []


def test_a_program_that_is_not_known_names_the_nearest():
    with pytest.raises(Exception, match=r"did you mean habana/demo_bert\.py or habana-tf/demo_bert\.py"):
        find_program("demo_bert.py")
