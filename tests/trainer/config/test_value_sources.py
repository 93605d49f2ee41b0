"""Where values come from: a model file of the command line, sources of ``--print-config``."""

import json
from pathlib import Path

import pytest

from trainer.__main__ import main
from trainer.config.flags import make_config, make_layered

SHAPE = {"vocab_size": 500, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}


@pytest.fixture
def model_file(tmp_path: Path) -> str:
    return written(tmp_path, **SHAPE)


def written(folder: Path, **keys: object) -> str:
    place = folder / "cfg.json"
    place.write_text(json.dumps(keys), encoding="utf-8")
    return str(place)


def test_a_model_file_of_the_command_line_goes_before_a_named_configurations_shape(model_file):
    shape = make_config(["--config=tiny", f"--model-config={model_file}"]).model_settings
    assert {name: shape[name] for name in SHAPE} == SHAPE
    assert "intermediate_size" not in shape  # tiny's 512 belongs to tiny's width
    assert shape["hidden_dropout_prob"] == 0.0  # of which the file says nothing


def test_what_is_set_aside_is_told(model_file):
    (layered,) = make_layered(["--config=tiny", f"--model-config={model_file}"])
    assert layered.contradictions == [
        f"--model-config {model_file} goes before tiny, whose hidden_size 128, num_hidden_layers 2, "
        "num_attention_heads 2, intermediate_size 512 are not taken"
    ]


def test_a_file_of_another_kind_of_model_takes_nothing_from_the_named_configuration(model_file):
    settings = make_config(["--config=roberta_base", f"--model-config={model_file}"]).model_settings
    assert settings == SHAPE


def test_a_flag_goes_before_the_model_file_and_is_told(model_file):
    (layered,) = make_layered([f"--model-config={model_file}", "--num-hidden-layers=3", "--hidden-size=32"])
    assert layered.config.model_settings["num_hidden_layers"] == 3
    assert layered.contradictions == [
        f"num_hidden_layers is 3 by --num-hidden-layers, which goes before the 1 of {model_file}"
    ]


def test_a_door_takes_the_model_file_of_our_flags(model_file, capsys):
    line = ["like", "habana/demo_bert.py", "pretraining", "--model_name_or_path=large", "--data_type=bf16"]
    assert main([*line, "--print-config", "--", f"--model-config={model_file}"]) == 0
    printed = capsys.readouterr()
    for phase in json.loads(printed.out)["phases"]:
        assert {name: phase[name] for name in SHAPE} == SHAPE
    assert "goes before the program's command line, whose " in printed.err


def sources(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    assert main([*words, "--print-config"]) == 0
    found: dict[str, str] = json.loads(capsys.readouterr().out)["sources"][0]
    return found


def test_the_source_of_every_value_is_printed(capsys, model_file, monkeypatch):
    monkeypatch.setenv("FORCE_WEIGHT_SYNC", "1")
    words = ["--config=tiny", f"--model-config={model_file}", "--steps=9", "--wandb"]
    found = sources(capsys, "pretrain", *words)
    assert {
        name: found[name] for name in ("steps", "batch_size", "hidden_size", "beta1", "power", "seed")
    } == {
        "steps": "--steps",
        "batch_size": "tiny",
        "hidden_size": model_file,
        "beta1": "optimiser lamb-nvidia",
        "power": "default",
        "seed": "default",
    }
    assert found["force_weight_sync"] == "FORCE_WEIGHT_SYNC"


def test_fine_tunings_own_defaults_are_told_apart(capsys):
    found = sources(capsys, "finetune", "--task=mrpc", "--data-dir=mrpc")
    assert (found["task"], found["optimiser"]) == ("--task", "finetune")


def test_of_another_program_flags_and_variables_are_named(capsys, monkeypatch):
    monkeypatch.setenv("NP", "4")
    monkeypatch.setenv("TRAIN_STEPS_P1", "100")
    found = sources(capsys, "like", "rannc/run_pretraining_rannc.sh")
    assert (found["world_size"], found["steps"]) == ("NP", "TRAIN_STEPS_P1")
    assert found["output_dir"] == "NP and TRAIN_STEPS_P1"
    assert found["optimiser"] == "rannc/run_pretraining_rannc.sh"


@pytest.mark.parametrize(
    ("variable", "value", "line", "key", "wanted"),
    [
        ("TF_XLA_FLAGS", "--tf_xla_auto_jit=2", "mlperf/run_pretraining.py --do_train --input_file=a "
         "--bert_config_file=b --output_dir=c", "compile", True),
        ("TF_BF16_CONVERSION", "1", "habana-tf/run_pretraining.py --bert_config_file=a --do_train "
         "--input_files_dir=b --output_dir=c", "precision", "bf16"),
        ("NUM_WORKERS_PER_HLS", "4", "habana-tf/demo_bert.py pretraining -v -d bf16 -m large",
         "world_size", 4),
        ("FORCE_WEIGHT_SYNC", "0", "habana-tf/demo_bert.py pretraining -v -d bf16 -m large",
         "force_weight_sync", False),
    ],
)  # fmt: skip
def test_a_variable_that_a_program_reads_is_a_source(capsys, monkeypatch, variable, value, line, key, wanted):
    monkeypatch.setenv(variable, value)
    assert main(["like", *line.split(), "--print-config"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["phases"][0][key] == wanted
    assert variable in printed["sources"][0][key]


@pytest.mark.parametrize(
    ("mode", "key", "value"), [("offline", "wandb_offline", True), ("disabled", "wandb", False)]
)
def test_what_wandb_mode_sets_is_printed_with_the_variable(capsys, monkeypatch, mode, key, value):
    monkeypatch.setenv("WANDB_MODE", mode)
    assert main(["pretrain", "--wandb", "--print-config"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["phases"][0][key], printed["sources"][0][key]) == (value, "WANDB_MODE")
