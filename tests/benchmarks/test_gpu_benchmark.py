"""The benchmark of GPUs, on a processor: its counts, its table, its refusals."""

import subprocess

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import gpu
from tests.support.flat import flatten, make_rows
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.model.bert import BertForPreTraining
from trainer.tasks.pretraining import Pretraining

SMALL = {"vocab_size": 104, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES = {"max_seq_length": 16, "max_predictions_per_seq": 2, "batch_size": 2}
FIGURES = {"sequences": 4000.0, "tokens": 460000.0, "operations": 9e14, "fill": 0.9, "fed": 0.957}


def test_without_a_gpu_it_is_refused_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert gpu.main([]) == 2
    assert capsys.readouterr().err.startswith(
        "benchmarks.gpu: device 'cuda' is not there: worker 0 has no GPU"
    )


@pytest.mark.parametrize("rows", [False, True])
def test_speed_and_fill_are_of_the_tokens_that_exist(rows):
    sizes = SIZES | {"batch_size": 16, "max_seq_length": 64, "max_predictions_per_seq": 10}
    found = gpu.measure({"device": "cpu", "rows": rows, "fill": 0.6, **SMALL, **sizes}, updates=4)
    assert found["fill"] == pytest.approx(0.6, abs=0.15)
    assert found["tokens"] == pytest.approx(found["sequences"] * 64 * found["fill"])
    if rows:
        assert found["fed"] == pytest.approx(found["fill"])
    else:
        assert found["fed"] > 0.85
    assert found["device"].startswith("cpu: ")


def test_operations_are_those_that_pytorch_counts():
    rows = make_rows([5, 12, 9], longest=12, slots=3, vocabulary=104)
    batch = flatten(rows)
    shape = ModelConfig(**SMALL, intermediate_size=64, attention_probs_dropout_prob=0.0)
    model = BertForPreTraining(shape).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        Pretraining().outcome(model, batch)
    # Versions of PyTorch differ in whether they count attention, and theirs is over padded sequences.
    products = counter.get_flop_counts()["Global"][torch.ops.aten.addmm]
    attention = sum(4 * length**2 for length in (5, 12, 9)) * shape.hidden_size * shape.num_hidden_layers
    masks = int(batch.masked_lm_weights.sum())
    assert gpu.forward_operations([5, 12, 9], masks, shape) == products + attention
    assert gpu.operations_of(batch, shape) == gpu.operations_of(rows, shape)


def test_the_published_work_of_a_sequence_is_found():
    shape = ModelConfig(**gpu.LARGE)
    for length, masks, giga in ((128, 20, 240.6), (512, 80, 1020.5)):
        assert 3 * gpu.forward_operations([length], masks, shape) == pytest.approx(giga * 1e9, rel=0.01)


def test_the_table_holds_figures_and_reasons(monkeypatch, capsys):
    results = [{**FIGURES, "memory": 12.4, "device": ""}, {"error": "it has burnt"}]
    monkeypatch.setattr(gpu, "in_a_process", lambda settings, updates: results[settings["batch_size"] == 4])
    phases = {"phase 1": SIZES, "phase 2": SIZES | {"batch_size": 4}}
    gpu.table({}, phases, ["as it is"], 2, 1000.0)
    assert capsys.readouterr().out.splitlines() == [
        "| option | phase 1: sequences/s at batch 2 | tokens/s | fill | real share of the tokens fed | "
        "TFLOP/s (of the limit) | memory | phase 2: sequences/s at batch 4 | tokens/s | fill | "
        "real share of the tokens fed | TFLOP/s (of the limit) | memory |",
        f"|{'---|' * 13}",
        "| as it is | 4,000 | 460,000 | 0.90 | 0.96 | 900 (90%) | 12 GiB | it has burnt |  |  |  |  |  |",
    ]


def test_options_can_be_named_and_are_settings():
    assert not any("," in name for name in gpu.OPTIONS)  # --only takes several
    for options in gpu.OPTIONS.values():
        config = Config.of(**{"device": "cuda", **gpu.LARGE, **options})
        cudnn = config.cuda.attention == "cudnn"
        assert not cudnn or (config.model.settings()["attention_probs_dropout_prob"] * 16).is_integer()


WRONG = {"device": "cpu", "vocab_size": 100, "hidden_size": 30}


def test_a_failure_is_told_in_its_cell(monkeypatch, capsys):
    """The process's program run in this one."""

    def run(command, **_):
        status = gpu.main(command[command.index("benchmarks.gpu") + 1 :])
        return subprocess.CompletedProcess(command, status, *capsys.readouterr())

    monkeypatch.setattr(gpu.subprocess, "run", run)
    assert "hidden_size is 30, no multiple of num_attention_heads" in gpu.in_a_process(WRONG, 1)["error"]


@pytest.mark.thorough
def test_a_failure_in_a_process_of_its_own_is_told_in_its_cell():
    assert "hidden_size is 30, no multiple of num_attention_heads" in gpu.in_a_process(WRONG, 1)["error"]
