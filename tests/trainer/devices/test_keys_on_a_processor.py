"""The keys of vendors' devices on a processor: accepted, and named as idle."""

import pytest

from tests.support.training_runs import losses, words

pytestmark = pytest.mark.usefixtures("one_thread")


def test_graphcores_tiny_configuration_trains_on_a_processor(trainer, training_set, tmp_path):
    """Its model, optimiser and schedule; data and vocabulary are the sample's, steps and batch few."""
    sizes = ["--vocab-size=2000", "--max-seq-length=64", "--max-predictions-per-seq=10", "--accumulation=2"]
    short = ["--precision=fp32", "--steps=12", "--base-learning-rate=0.03", "--no-progress-bar"]
    data = [f"--train-data={training_set}", f"--output-dir={tmp_path}", "--unverified"]
    outcome = trainer("pretrain", "--config=graphcore_tiny_128_lamb", "--device=cpu", *sizes, *short, *data)
    assert outcome.status == 0, outcome.err
    idle = next(line for line in outcome.err.splitlines() if "without effect on device cpu" in line)
    assert "available_memory_proportion" in idle
    seen = losses(tmp_path)
    assert len(seen) == 12
    assert seen[0]["mlm_loss"] - seen[-1]["mlm_loss"] > 0.2


def test_keys_without_effect_are_named_once(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path, "--available-memory-proportion=0.3", "--steps=1", "--warmup=0")
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    assert outcome.err.count("available_memory_proportion") == 1
