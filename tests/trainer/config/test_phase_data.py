"""Data of each phase, and several datasets, on the command line and in a file."""

import pytest

from tests.support.configurations import config_file, refusal
from trainer.config.flags import make_config, make_configs


def test_phases_are_named_with_their_data():
    first, second = make_configs(["--train-data-phase1", "a", "--train-data-phase2=b", "--eval-data=e"])
    assert [one.data.train_data for one in (first, second)] == ["a", "b"]
    assert [one.data.eval_data for one in (first, second)] == ["e", "e"]
    assert [one.phase for one in (first, second)] == [1, 2]
    first, second = make_configs(["--train-data=a", "--eval-data-phase2=f"])
    assert [one.data.train_data for one in (first, second)] == ["a", "a"]
    assert [one.data.eval_data for one in (first, second)] == [None, "f"]


def test_data_of_phase_1_alone_make_one_phase_and_phase_2_alone_takes_its_own(tmp_path):
    (only,) = make_configs(["--train-data-phase1=a"])
    assert (only.data.train_data, only.phase) == ("a", 1)
    place = config_file(tmp_path, train_data_phase1="a", train_data_phase2="b")
    (second,) = make_configs(["--config", place, "--phase2"])
    assert (second.data.train_data, second.phase) == ("b", 2)
    assert [one.data.train_data for one in make_configs(["--config", place])] == ["a", "b"]
    flags = ["--config", place, "--train-data-phase1=c"]
    assert [one.data.train_data for one in make_configs(flags)] == ["c", "b"]


@pytest.mark.parametrize(
    "arguments",
    [["--train-data", "a+b"], ["--train-data=a", "--train_data", "b"]],
)
def test_datasets_are_united_with_plus_or_a_repeated_flag(arguments):
    (config,) = make_configs(arguments)
    assert config.data.train_data == "a+b"


def test_none_takes_back_a_files_data_and_adds_nothing_to_a_union(tmp_path):
    place = config_file(tmp_path, eval_data="a")
    assert make_config(["--config", place, "--eval-data=none"]).data.eval_data is None
    assert make_config(["--train-data=a", "--train-data=none"]).data.train_data == "a"


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["--train-data", "a", "b", "--steps=5"], "train-data"),
        (["--steps=5", "--train_data=a", "b"], "train-data"),
        (["--train_data", "a", "b"], "train-data"),
        (["--eval-data", "a", "b"], "eval-data"),
        (["--eval-data-phase1", "a", "b"], "eval-data"),
    ],
)
def test_two_datasets_in_one_flag_are_refused_with_both_remedies(arguments, key):
    message = refusal(arguments)
    assert f"--{key}-phase1 a --{key}-phase2 b" in message
    assert f"--{key} a+b" in message


def test_two_datasets_in_a_file_are_refused_with_both_remedies(tmp_path):
    message = refusal(["--config", config_file(tmp_path, train_data=["a", "b"])])
    assert message.endswith(
        "train_data has 2 values: for one in each phase give train_data_phase1 a train_data_phase2 b; "
        "for all together train_data a+b"
    )
