"""Graphcore's sum over micro-batches, on every device, averaged over replicas."""

import pytest
import torch
from safetensors.torch import load_file

from tests.support.training_runs import MODEL
from trainer.config.settings import Config
from trainer.update.loss_shares import compute_equal_divisor

DROPOUT = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")


@pytest.mark.parametrize(
    ("keys", "count", "workers", "divisor"),
    [
        ({"reduction_type": "mean"}, 4, 2, 4),
        ({"reduction_type": "mean", "replicas": 2}, 8, 1, 8),
        ({"reduction_type": "sum"}, 4, 1, 1),
        ({"reduction_type": "sum"}, 4, 2, 1),
        ({"reduction_type": "sum", "replicas": 2}, 4, 2, 1),
        ({"reduction_type": "sum", "replicas": 2}, 8, 1, 2),
        ({"reduction_type": "sum", "replicas": 1}, 2, 2, 0.5),
    ],
)
def test_a_sum_over_micro_batches_is_a_mean_over_replicas(keys, count, workers, divisor):
    assert compute_equal_divisor(Config.of(**keys), count, workers) == divisor


def weights(trainer, place, data, *more):
    flags = [*MODEL, *DROPOUT, "--batch-size=2", "--accumulation=3", "--optimiser=sgd", "--clipping=none"]
    run = ["--steps=2", "--lr-schedule=custom", "--no-progress-bar", f"--train-data={data}"]
    outcome = trainer("pretrain", *flags, *run, f"--output-dir={place}", *more)
    assert outcome.status == 0, outcome.err
    assert "without effect" not in outcome.err
    return load_file(place / "checkpoints" / "step-00000002" / "model.safetensors")


@pytest.mark.parametrize("more", [[], ["--replicas=2"]])
def test_a_sum_of_three_micro_batches_is_three_times_their_mean(
    trainer, tmp_path, training_set, one_thread, more
):
    once, thrice = ('--lr-schedule-by-step={"0": 0.01}', '--lr-schedule-by-step={"0": 0.03}')
    found = weights(trainer, tmp_path / "sum", training_set, once, "--reduction-type=sum", *more)
    wanted = weights(trainer, tmp_path / "mean", training_set, thrice, "--reduction-type=mean", *more)
    unlike = weights(trainer, tmp_path / "unlike", training_set, once, *more)
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-6)
    assert any(not torch.allclose(unlike[name], value) for name, value in found.items())
