"""Printed commands on tiny data: without their device they refuse for it alone, on a processor they train."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.fine_tuning import mrpc_files, squad_file
from tests.support.published_commands import commands, substituted
from tests.support.training_runs import MODEL
from trainer.checkpoints.reading import choose_checkpoint, read_state

DOORS = {
    "habana-pytorch demo_bert.py": "habana/demo_bert.py",
    "mlperf run_pretraining.py": "mlperf/run_pretraining.py",
    "graphcore run_pretraining.py": "graphcore/run_pretraining.py",
}
TRAINED = (
    *("001-pretrain-1", "001-pretrain-2", "001-pretrain-3", "001-pretrain-5", "001-pretrain-8"),
    *("003-train-v100", "003-train-tpu"),
    *("004-pretrain-1", "004-pretrain-2", "004-pretrain-3", "004-pretrain-4"),
)
TUNED = ("001-finetune-1", "001-finetune-2", "001-finetune-10")
COMMANDS = {one["id"]: one for one in commands(*DOORS) if one["id"] in (*TRAINED, *TUNED)}

QUICK = ("001-pretrain-1", "003-train-v100", "004-pretrain-1", "004-pretrain-3", *TUNED[:2])


def some(names: tuple[str, ...]) -> list[object]:
    """The names as parameters, if the kit is at hand; but for one of each kind they are thorough."""
    there = [name for name in names if name in COMMANDS]
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough) for name in there]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path | str]:
    """Files in place of those that the commands name: a small model's description, an absent checkpoint."""
    config = tmp_path / "bert_config.json"
    shape = {"vocab_size": 2000, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config.write_text(json.dumps(shape | {"intermediate_size": 64}), encoding="utf-8")
    return {"<path to bert_config.json>": config, "gs://<input GCS path>/bert_config.json": config}


def printed(name: str, files: dict[str, Path | str]) -> list[str]:
    command = COMMANDS[name]
    return ["like", DOORS[command["program"]], *substituted(command["argv"][1:], files)]


def overrides(command: dict[str, Any], first: Path, second: Path, place: Path) -> list[str]:
    """Flags of ours that make a small run of a printed command: data, shape, one worker, two updates."""
    both = len(command["expects"]["phases"]) == 2
    data = [f"--train-data={first}", "--max-seq-length=64", "--max-predictions-per-seq=10"]
    if both:
        data = [f"--train-data-phase1={first}", f"--train-data-phase2={second}"]
        data += ["--max-seq-length", "64", "96", "--max-predictions-per-seq", "10", "15"]
    sizes = ["--batch-size=2", "--accumulation=2", "--vocab-size=2000", *MODEL, "--hidden-dropout-prob=0"]
    run = ["--device=cpu", "--dist=false", "--world-size=1", f"--output-dir={place}", "--steps-this-run=2"]
    return ["--", *data, *sizes, *run, "--warmup=0", "--start-from-ckpt=none", "--wandb=false"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_printed_command_is_refused_for_the_missing_device_alone(name, files, trainer):
    outcome = trainer(*printed(name, files), *(["--", "--output-dir=out"] if "tpu" in name else []))
    assert outcome.status == 2
    device = COMMANDS[name]["expects"]["phases"][0]["device"]
    assert f"the program runs on {device}, which is not there" in outcome.err.splitlines()[-1]


@pytest.mark.parametrize("name", some(TRAINED))
def test_a_printed_command_trains_two_updates_on_a_processor(
    name, files, trainer, training_set, longer_set, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    more = overrides(COMMANDS[name], training_set, longer_set, tmp_path / "run")
    outcome = trainer(*printed(name, files), *more)
    assert outcome.status == 0, outcome.err
    state = read_state(choose_checkpoint(str(tmp_path / "run")))
    expected = COMMANDS[name]["expects"]["phases"]
    assert (state.phase, state.step) == (1, 2)
    assert state.config["optimiser"] == expected[0]["optimiser"]
    assert state.config["precision"] == expected[0].get("precision", state.config["precision"])
    assert state.config["base_learning_rate"] == expected[0]["base_learning_rate"]


@pytest.mark.parametrize("name", some(TUNED))
def test_a_printed_command_fine_tunes_two_updates_on_a_processor(name, files, trainer, pretrained, tmp_path):
    (wanted,) = COMMANDS[name]["expects"]["phases"]
    if wanted["task"] == "mrpc":
        data = [f"--data-dir={mrpc_files(tmp_path / 'MRPC')}", "--train-file=none", "--eval-file=none"]
    else:
        data = [f"--train-file={squad_file(tmp_path / 'train.json')}"]
        data.append(f"--eval-file={squad_file(tmp_path / 'dev.json', 8)}")
    sizes = ["--max-seq-length=32", "--doc-stride=8", "--max-query-length=8", "--batch-size=4", "--steps=2"]
    run = ["--device=cpu", "--dist=false", "--world-size=1", f"--output-dir={tmp_path / 'run'}"]
    ours = ["--", *data, *sizes, *run, f"--start-from-ckpt={pretrained}"]
    outcome = trainer(*printed(name, files), *ours)
    assert outcome.status == 0, outcome.err
    state = read_state(choose_checkpoint(str(tmp_path / "run")))
    assert state.step == 2
    kept = (
        "task",
        "optimiser",
        "optimiser_epsilon",
        "weight_decay",
        "base_learning_rate",
        "precision",
        "seed",
    )
    assert {key: state.config[key] for key in kept} == {key: wanted[key] for key in kept}
    assert (tmp_path / "run" / "eval_results.txt").is_file()
