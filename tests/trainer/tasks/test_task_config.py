"""The command line of fine-tuning: its own defaults and names."""

import json
import re

import pytest

from bertdata.errors import SettingsError
from tests.support.configurations import assert_keys
from trainer.__main__ import main
from trainer.config.settings import Config
from trainer.config.task_config import make_task_config
from trainer.config.task_names import expand_task_flags

ADAMW = {
    "optimiser": "adamw-bert",
    "schedule": "mlperf",
    "clipping_point": "per_update",
    "warmup": 0.1,
    "weight_decay": 0.01,
}


def test_a_command_that_names_no_optimiser_has_googles_and_its_epochs():
    config = make_task_config(["--task=mrpc"])
    assert_keys(config, **ADAMW, num_train_epochs=3, base_learning_rate=5e-5)
    assert_keys(make_task_config(["--task=mrpc", "--steps=7"]), num_train_epochs=None, steps=7)
    given = make_task_config(["--task=mrpc", "--optimiser=adamw", "--base-learning-rate=1e-3"])
    assert_keys(given, schedule="polynomial_decay", warmup=0, weight_decay=None, base_learning_rate=1e-3)
    assert_keys(make_task_config(["--config=squad_base", "--steps=7"]), num_train_epochs=None, steps=7)
    shipped = make_task_config(["--config=squad_large"])
    assert_keys(shipped, base_learning_rate=3e-5, num_train_epochs=2, global_batch_size=32)


def test_the_help_says_the_defaults_of_fine_tuning(capsys):
    with pytest.raises(SystemExit):
        make_task_config(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "name of the optimiser: lamb-mlperf, lamb-nvidia" in shown
    assert "sgd, or your own package.module:NAME (default: adamw-bert)" in shown
    assert "learning rate after warm-up (default: 5e-05)" in shown
    assert "weight decay (default: 0.01)" in shown
    assert "lamb-nvidia)" not in shown
    assert "JSON file, or one of mrpc_base, mrpc_large, squad_base, squad_large --help-all" in shown
    assert "--task NAME task to fine-tune: squad, mrpc" in shown
    assert "--data-dir DIRECTORY directory with the task's files" in shown
    flags = set(re.findall(r"--[a-z][\w-]*", shown))
    assert {"--train-file", "--doc-stride", "--labels", "--vocab", "--max-seq-length"} <= flags
    of_pretraining = {"--masking", "--phase2", "--train-data", "--target-accuracy", "--strategy", "--bins"}
    assert flags.isdisjoint(of_pretraining)
    assert "[N]" not in shown
    assert "pretraining" not in shown


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("evaluate", {"--poll", "--eval-data", "--eval-file", "--resume-step", "--start-from-ckpt"}),
        ("split", {"--devices", "--memory", "--strategy", "--stages", "--recompute", "--bandwidth"}),
    ],
)
def test_the_help_of_a_command_lists_keys_of_the_configuration_that_it_uses(capsys, command, expected):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    flags = set(re.findall(r"--[a-z][\w-]*", capsys.readouterr().out))
    assert expected <= flags
    assert {"--steps", "--masking", "--phase2"}.isdisjoint(flags)


def test_a_long_warm_up_fits_the_updates_of_the_epochs():
    config = make_task_config(["--task=mnli", "--warmup=5000"])
    assert (config.schedule.warmup, config.schedule.num_train_epochs) == (5000, 3)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--task=colla"], "task is 'colla', expected one of"),
        (["--task=mrpc", "--evaluate-during-traning"], "is not a known key"),
        (["--task=mrpc", "--model_name_or_path=base"], "is not a known key"),
    ],
)
def test_what_cannot_be_meant_is_refused(flags, said):
    with pytest.raises(SettingsError, match=said):
        make_task_config(flags)


def test_names_become_those_of_keys():
    assert expand_task_flags(["--data_dir=x", "--train_file", "y", "--do_eval"]) == [
        "--task-dir=x", "--task-train-file", "y", "--do-eval",
    ]  # fmt: skip


def test_the_configuration_is_one_that_a_checkpoint_keeps():
    config = make_task_config(["--config=squad_large", "--do-predict", "--predict-file=plain.json"])
    assert Config.of(**config.as_json()) == config


def test_fine_tuning_is_shown_with_its_defaults(capsys):
    assert main(["finetune", "--task=mrpc", "--data-dir=mrpc", "--print-config"]) == 0
    (phase,) = json.loads(capsys.readouterr().out)["phases"]
    assert (phase["task"], phase["task_dir"], phase["num_train_epochs"]) == ("mrpc", "mrpc", 3.0)
    assert (phase["optimiser"], phase["optimiser_epsilon"], phase["use_debiasing"]) == (
        "adamw-bert",
        1e-6,
        False,
    )
