"""``--print-config``: the resolved configuration as JSON."""

import json

import pytest

from trainer.__main__ import main


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main([*arguments, "--print-config"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_constants_of_optimiser_and_schedule_are_shown(capsys):
    (phase,) = printed(capsys, "pretrain", "--optimiser=lamb-mlperf")["phases"]
    shown = {name: phase[name] for name in ("beta1", "beta2", "optimiser_epsilon", "weight_decay", "power")}
    assert shown == {
        "beta1": 0.9,
        "beta2": 0.999,
        "optimiser_epsilon": 1e-6,
        "weight_decay": 0.01,
        "power": 1.0,
    }
    assert (phase["lr_schedule"], phase["clipping"]) == ("mlperf", "per_micro_batch")


def test_each_phase_has_its_own_values_and_the_size_of_its_update(capsys):
    found = printed(capsys, "pretrain", "--config=habana_large", "--world-size=8", "--train-data-phase1=a")
    assert found["world_size"] == 8
    first, second = found["phases"]
    assert (first["train_data"], second["train_data"]) == ("a", None)
    assert (first["batch_size"], first["accumulation"], first["update_examples"]) == (64, 128, 65536)
    assert (second["batch_size"], second["accumulation"], second["update_examples"]) == (8, 512, 32768)
    assert (second["phase2"], second["steps"]) == (True, 1563)


def test_the_models_file_is_read_and_its_keys_are_shown(capsys, tmp_path):
    place = tmp_path / "bert_config.json"
    place.write_text(
        json.dumps({"vocab_size": 99, "hidden_size": 16, "num_attention_heads": 2}), encoding="utf-8"
    )
    (phase,) = printed(capsys, "pretrain", f"--model-config={place}", "--hidden-size=32")["phases"]
    assert (phase["vocab_size"], phase["hidden_size"], phase["num_attention_heads"]) == (99, 32, 2)


def test_a_wrong_configuration_is_refused_as_without_it(capsys):
    assert main(["pretrain", "--print-config", "--steps=0"]) == 2
    assert "steps is 0, expected 1 or more" in capsys.readouterr().err


@pytest.mark.parametrize("rank", [0, 1])
def test_of_several_workers_the_first_prints(rank, capsys, monkeypatch):
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["pretrain", "--print-config"]) == 0
    shown = capsys.readouterr().out
    assert bool(shown) == (rank == 0)
    if rank == 0:
        assert json.loads(shown)["program"] == "trainer pretrain"
