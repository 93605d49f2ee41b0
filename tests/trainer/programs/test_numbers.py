"""Numbers of other programs' command lines with which nothing can be computed: one line, status 2."""

import json

import pytest

from trainer.__main__ import main
from trainer.programs.choice import load_programs

GRAPHCORE = {"batch_size": 2, "train_file": "set", "steps": 3, "pipeline_depth": 4, "weight_decay": 0.01,
             "optimiser": "lamb", "lr_schedule": "custom", "lr_schedule_by_step": {"0": 0.1}}  # fmt: skip


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["like", *words, "--", "--print-config"]) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.parametrize(
    ("program", "flag", "told"),
    [
        ("habana-tf/demo_bert.py", "--batch_size=0", "nothing can be computed with --batch_size 0"),
        (
            "graphcore/run_pretraining.py",
            "--batches-per-step=0",
            "nothing can be computed with --batches_per_step 0",
        ),
        (
            "mlperf/run_pretraining.py",
            "--log_epsilon=1e308",
            "--log_epsilon 1e+308",
        ),
        ("nvidia/run_pretraining.py", "--max_steps=nan", "argument --max_steps: invalid float value: 'nan'"),
    ],
)
def test_a_number_that_nothing_can_be_computed_with_is_one_line(capsys, program, flag, told):
    published = load_programs()[program].published[0].replace("'", "").split()
    assert told in refusal(capsys, program, *published, flag)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("steps", "x", "steps is 'x', expected a number"),
        ("weight_decay", [1], "weight_decay is [1], expected a number"),
        ("pipeline_depth", None, "pipeline_depth is None, expected "),
        ("pipeline_depth", [4], "pipeline_depth is [4], expected "),
        ("batches_per_step", None, "batches_per_step is None, expected "),
        ("lr_schedule_by_step", {"x": 1}, "lr_schedule_by_step"),
        ("lr_schedule_by_step", [1], "lr_schedule_by_step is [1], expected an object"),
    ],
)
def test_a_value_of_another_type_in_graphcores_file_is_one_line(capsys, tmp_path, name, value, told):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**GRAPHCORE, name: value}))
    found = refusal(capsys, "graphcore/run_pretraining.py", "--config", str(path))
    assert f"{path}: " in found
    assert told in found
