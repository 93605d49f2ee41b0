"""NVIDIA's commands really run, on a processor: rates, phases, GELU, predictions."""

import json
from pathlib import Path

import pytest

from tests.support.fine_tuning import evaluations, squad_file
from tests.support.training_runs import Trainer, losses
from trainer.checkpoints.reading import choose_checkpoint, read_state

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def trainer(capsys):
    return Trainer(capsys)


@pytest.fixture
def place(pretrained, tmp_path, monkeypatch):
    """The working directory, with the small model's bert_config.json as NVIDIA has it."""
    monkeypatch.chdir(tmp_path)
    values = json.loads((pretrained / "config.json").read_text(encoding="utf-8"))
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    shape = {name: values[name] for name in names} | {"hidden_act": "gelu"}
    (tmp_path / "bert_config.json").write_text(json.dumps(shape), encoding="utf-8")
    return tmp_path


def rates(run: Path) -> list[float]:
    return [row["lr"] for row in losses(run)]


def test_both_phases_train_with_nvidias_rates_and_hand_over(trainer, training_set, place):
    common = ("--config_file=bert_config.json", "--output_dir=run", "--train_batch_size=8", "--do_train")
    common = (
        *common,
        f"--input_dir={training_set}",
        "--gradient_accumulation_steps=2",
        "--max_seq_length=64",
    )
    common = (*common, "--max_predictions_per_seq=10", "--warmup_proportion=0.5", "--disable_progress_bar")
    ours = ("--", "--device=cpu")
    door = ("like", "nvidia/run_pretraining.py", *common)
    first = trainer(*door, "--max_steps=4", "--learning_rate=1e-3", *ours)
    assert first.status == 0, first.err
    assert "1 x 4 x 2 = 8 examples an update, fp32, lamb-nvidia, cuda" in first.err
    assert rates(place / "run") == pytest.approx([5e-4, 1e-3 * 0.5**0.5, 1e-3 * 0.25**0.5, 0.0])
    state = read_state(choose_checkpoint("run"))
    assert (state.phase, state.step, state.model["hidden_act"]) == (1, 4, "gelu")
    assert (place / "results" / "dllogger.json").exists()
    phase2 = ("--phase2", "--resume_from_checkpoint", "--phase1_end_step=4", "--max_steps=2")
    second = trainer(*door, *phase2, *ours)
    assert second.status == 0, second.err
    state = read_state(choose_checkpoint("run"))
    assert (state.phase, state.step, state.number) == (2, 2, 6)


def test_a_device_that_is_not_there_is_refused_with_the_way_around_it(
    trainer, training_set, place, monkeypatch
):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    words = (
        "--config_file=bert_config.json",
        "--output_dir=run",
        f"--input_dir={training_set}",
        "--do_train",
    )
    refused = trainer("like", "nvidia/run_pretraining.py", *words)
    assert refused.status == 2
    assert "append -- --device cpu" in refused.err


def test_squad_is_learned_in_nvidias_gelu_and_scored_on_the_file_to_predict(trainer, pretrained, place):
    data = squad_file(place / "train.json")
    words = (
        "--bert_model=small",
        f"--init_checkpoint={pretrained}",
        f"--vocab_file={pretrained / 'vocab.txt'}",
    )
    words = (*words, "--config_file=bert_config.json", f"--train_file={data}", f"--predict_file={data}")
    words = (*words, "--max_seq_length=40", "--max_query_length=16", "--train_batch_size=12", "--no_cuda")
    words = (
        *words,
        "--learning_rate=3e-3",
        "--num_train_epochs=2",
        "--warmup_proportion=0.5",
        "--log_freq=1",
    )
    words = (*words, "--do_train", "--do_predict", "--do_eval", "--do_lower_case", "--disable-progress-bar")
    done = trainer("like", "nvidia/run_squad.py", *words, "--output_dir=out")
    assert done.status == 0, done.err
    assert read_state(choose_checkpoint("out")).model["hidden_act"] == "gelu"
    assert len(evaluations(place / "out")) == 1
    predictions = json.loads((place / "out" / "predict" / "predictions.json").read_text(encoding="utf-8"))
    assert len(predictions) == 24
    with (place / "out" / "training.csv").open(encoding="utf-8") as file:
        header, *rows = file.read().splitlines()
    column = header.split(",").index("lr")
    assert [float(row.split(",")[column]) for row in rows] == pytest.approx([0.0, 1.5e-3, 3e-3, 1.5e-3])
