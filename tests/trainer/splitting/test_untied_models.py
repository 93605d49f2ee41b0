"""Split models whose word logits have weights of their own: no stage but the first has the embeddings."""

import pytest
import torch

from tests.support.launching import launch
from tests.support.training_runs import MODEL, WORKER
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state, read_tensors
from trainer.config.model import ModelConfig
from trainer.model.headed import BertForMaskedLM
from trainer.splitting.pieces import keep_layers
from trainer.splitting.plan.parts import HeadsPart, Shape
from trainer.splitting.plan.plan import WORDS

SHAPE = ModelConfig(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    tie_word_embeddings=False,
)


def test_the_last_stage_has_the_decoder_and_no_embeddings():
    model = BertForMaskedLM(SHAPE)
    keep_layers(model, range(1, 2))
    names = {name for name, _ in model.named_parameters()}
    assert "cls.predictions.decoder.weight" in names
    assert not any("embeddings" in name for name in names)


def test_a_plan_counts_the_decoder_and_no_shared_embeddings():
    with torch.device("meta"):
        part = HeadsPart(SHAPE, Shape(rows=1, length=8, masked=2, attention="fused"), WORDS)
    assert part.words is None
    assert part.predictions.decoder.weight.shape == (104, 32)


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", ["pipelined", "sharded"])
def test_two_workers_train_an_untied_model_as_one_does(tmp_path, strategy):
    given = ["pretrain", *MODEL, "--generated-data", "--vocab-size=100", "--max-seq-length=32"]
    given += ["--batch-size=4", "--global-batch-size=8", "--steps=3", "--warmup=0", "--no-progress-bar"]
    given += ["--tie-word-embeddings=false", "--device=cpu"]
    split = [f"--strategy={strategy}", *(["--stages=2"] if strategy == "pipelined" else [])]
    outcome = launch("torchrun", 2, WORKER, *given, *split, f"--output-dir={tmp_path / 'two'}", seconds=240)
    assert outcome.status == 0, outcome.err
    outcome = launch("alone", 1, WORKER, *given, f"--output-dir={tmp_path / 'one'}", seconds=240)
    assert outcome.status == 0, outcome.err
    found = []
    for run in ("one", "two"):
        path = find_checkpoints(str(tmp_path / run))[3]
        found.append(read_tensors(path, read_state(path)))
    one, two = found
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        assert torch.allclose(tensor, two[name], atol=1e-5), name
