"""docs/training.md against the code: its table of flags, its commands, its presets."""

import re
import shlex

import pytest

from docs.flag_table import PAGE, replaced
from trainer.config import Config
from trainer.flags import make_config, presets

TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = "\n".join(re.findall(r"```\n(.*?)```", TEXT, re.DOTALL)).replace("\\\n", " ").splitlines()
COMMANDS = [line for line in BLOCKS if " trainer pretrain " in line]


def test_the_table_of_flags_is_the_codes():
    assert replaced(TEXT) == TEXT, "python -m docs.flag_table writes it anew"


def configured(words: list[str]) -> Config:
    return make_config(words[words.index("pretrain") + 1 :])


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_understood(command):
    words = shlex.split(command)
    config = configured(words)
    workers = int(
        next((words[at + 1] for at, word in enumerate(words) if word in ("-np", "--nproc-per-node")), 1)
    )
    assert config.train_data
    assert config.output_dir
    assert config.update_examples(workers) > 0


def test_nvidias_flags_mean_their_preset():
    (flags,) = (command for command in COMMANDS if "--warmup_proportion" in command)
    theirs = configured(shlex.split(flags))
    preset = make_config(["--config", "nvidia_large_phase1"])
    for name in (
        "steps",
        "warmup",
        "base_learning_rate",
        "optimiser",
        "precision",
        "device",
        "checkpoint_every",
    ):
        assert getattr(theirs, name) == getattr(preset, name), name
    assert theirs.micro_batches(8) == preset.micro_batches(8)


def test_every_preset_is_in_the_table():
    table = TEXT.split("## The presets")[1].split("\n\n")[1]
    full = re.sub(r"`(graphcore_\w+?)_(128|384)`, `_(\w+)`", r"`\1_\2`, `graphcore_\3`", table)
    assert [name for name in presets() if f"`{name}`" not in full] == []
