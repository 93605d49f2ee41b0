"""The trainer's own commands know their own names only."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.configurations import CONFIGS, config_file, refusal
from tests.support.paths import ROOT
from trainer.config.flags import make_config


def test_a_flag_that_no_program_has_names_the_nearest_key():
    assert refusal(["--steps-this-rum=3"]).endswith("; the nearest known is --steps-this-run")


def test_lanes_is_the_older_name_of_open_files(tmp_path):
    assert make_config(["--lanes=3"]).data.open_files == 3
    assert make_config(["--config", config_file(tmp_path, lanes=5)]).data.open_files == 5
    assert "contradict each other" in refusal(["--lanes=3", "--open-files=4"])


def test_the_defaults_of_the_division_are_rannc_defaults():
    split = make_config([]).split
    assert split.memory_margin == 0.1
    assert (split.min_micro_batches, split.max_micro_batches) == (1, 32)
    assert split.power_of_two


@pytest.mark.parametrize(
    "path",
    [path for folder in (ROOT / "schemas", CONFIGS) for path in folder.glob("*.json")],
    ids=lambda path: path.name,
)
def test_nothing_is_declared_twice(path):
    """JSON keeps the second of two equal keys and drops the first without an error."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), [name for name, _ in pairs]
        return dict(pairs)

    json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=once)


def test_a_command_of_its_own_loads_no_other_programs_table():
    program = (
        "import sys; from trainer.__main__ import main; "
        "main(['pretrain', '--print-config']); "
        "sys.exit(any(name.startswith('trainer.programs') or name == 'torch' for name in sys.modules))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["program"] == "trainer pretrain"
