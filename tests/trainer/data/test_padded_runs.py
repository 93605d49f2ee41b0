"""Runs on padded rows."""

from pathlib import Path

import pytest

from bertdata.dataset.reader import open_dataset
from tests.support.training_runs import words
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.devices.opening import find_device
from trainer.model.headed import BertForPreTraining
from trainer.run.evaluation import Evaluation, EvaluationRecord
from trainer.run.runtime import make_model
from trainer.run.strategies import find_inference
from trainer.tasks.pretraining import Pretraining
from trainer.update.worker import ModelShare, Runtime
from trainer.workers.collective import Collective

SHAPE = ModelConfig(
    vocab_size=2000, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
)


pytestmark = pytest.mark.usefixtures("one_thread")


def measured(dataset: Path, **settings: object) -> tuple[EvaluationRecord, BertForPreTraining]:
    config = Config.of(**settings)
    device = find_device(config)
    runtime = Runtime(
        config=config,
        device=device,
        collective=Collective(device),
        model_share=ModelShare(copy=0, copies=1),
        task=Pretraining(),
    )
    model = make_model(runtime, SHAPE)
    inference = find_inference(runtime.worker(model))
    return Evaluation.of(runtime, open_dataset(str(dataset))).measure(inference, step=3, trained=12), model


def test_padded_rows_change_nothing(training_set):
    record, _ = measured(training_set, eval_batch_size=50)
    padded, _ = measured(training_set, eval_batch_size=50, rows=True)
    assert padded.values() == pytest.approx(record.values(), rel=1e-5)


def test_a_token_budget_for_padded_rows_is_named_as_idle(trainer, training_set, tmp_path):
    run = ("--rows", "--token-budget=40", "--steps=1", "--warmup=0")
    outcome = trainer(*words(training_set, tmp_path, *run))
    assert outcome.status == 0, outcome.err
    assert "accepted, without effect on device cpu: token_budget" in outcome.err
    assert "micro-batches: padded rows" in outcome.err
