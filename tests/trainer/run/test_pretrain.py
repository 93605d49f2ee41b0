"""Whole runs: resumed by other workers, stopped and failing; alone, under torchrun and horovodrun."""

import json
import os
import re
import shutil
import signal
import threading
import time
from collections import Counter
from hashlib import md5
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from bertdata.dataset.reader import open_dataset
from bertdata.errors import SettingsError
from tests.support.commands import contents, finish
from tests.support.commands import start as start_program
from tests.support.flat import examples_of, flatten
from tests.support.launching import HOROVODRUN, ROOT
from tests.support.lock_holder import holder
from tests.support.padded_examples import PaddedForm
from tests.support.training_runs import MODEL, errors, losses, refuse, start_workers, tensors, words
from trainer.checkpoints.checkpoint import State, find_checkpoints
from trainer.checkpoints.reading import read_state
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import FlatBatch
from trainer.data.examples import Rows
from trainer.data.loader import Loader, Update
from trainer.data.order import Position
from trainer.devices.cpu import Cpu
from trainer.devices.opening import find_device
from trainer.model.headed import BertForPreTraining
from trainer.run import compiling, training_loop
from trainer.run.epochs import count_updates
from trainer.run.runtime import make_model
from trainer.run.training_state import Training
from trainer.tasks.pretraining import Pretraining, compute_pretraining_loss
from trainer.update.adaptive_scale import AdaptiveScale
from trainer.update.worker import ModelShare, Runtime
from trainer.workers.collective import Collective, Stopping
from trainer.workers.launchers import find_rank

LAUNCHERS = ("torchrun", HOROVODRUN)
GENERATED = ("--generated-data", "--vocab-size=100", "--max-seq-length=16", "--max-predictions-per-seq=2")
STANDSTILL = ("--lr-schedule=custom", '--lr-schedule-by-step={"0": 0.0}')


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def whole(training_set, tmp_path_factory) -> Path:
    """Ten updates in one run, to compare others with."""
    from trainer.__main__ import main

    place = tmp_path_factory.mktemp("whole") / "run"
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    assert main(words(training_set, place, "--accumulation=2", "--checkpoint-every=5")) == 0
    torch.set_num_threads(before)
    return place


def accident(monkeypatch, what: str, *, rank: int = 0, update: int, **more: int) -> None:
    values = {"what": what, "rank": rank, "update": update, **more}
    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps(values))


# Resuming


def test_resumed_is_the_same_as_never_stopped(trainer, whole, training_set, tmp_path):
    run = words(training_set, tmp_path, "--accumulation=2", "--checkpoint-every=5")
    assert trainer(*run, "--steps-this-run=7").status == 0
    assert list(find_checkpoints(str(tmp_path))) == [5, 7]
    assert trainer(*run, "--resume").status == 0
    assert losses(tmp_path) == losses(whole)
    assert tensors(tmp_path, 10) == tensors(whole, 10)


@pytest.mark.thorough
def test_resumed_after_kill_9_is_the_same_as_never_stopped(
    trainer, whole, training_set, tmp_path, monkeypatch
):
    run = words(training_set, tmp_path, "--accumulation=2", "--checkpoint-every=5")
    accident(monkeypatch, "kill", update=8)
    assert start_workers("alone", 1, *run).status == -signal.SIGKILL
    assert list(find_checkpoints(str(tmp_path))) == [5]
    assert len(losses(tmp_path)) == 7
    assert trainer(*run, "--resume").status == 0
    assert losses(tmp_path) == losses(whole)
    assert tensors(tmp_path, 10) == tensors(whole, 10)


@pytest.mark.thorough
def test_two_workers_resume_bit_for_bit_and_one_goes_on_at_the_same_example(
    trainer, training_set, tmp_path, monkeypatch
):
    straight, cut = tmp_path / "straight", tmp_path / "cut"
    seen = tmp_path / "seen"
    seen.mkdir()
    assert start_workers("torchrun", 2, *words(training_set, straight)).status == 0
    accident(monkeypatch, "kill", rank=1, update=8)
    monkeypatch.setenv("TRAINER_SEEN", str(seen))
    run = words(training_set, cut, "--checkpoint-every=5")
    assert start_workers("torchrun", 2, *run).status == 1
    monkeypatch.delenv("TRAINER_ACCIDENT")
    early = _seen(seen, until=5)
    assert start_workers("torchrun", 2, *run, "--resume").status == 0
    assert losses(cut) == losses(straight)
    assert tensors(cut, 10) == tensors(straight, 10)

    # One worker continues from the same checkpoint to the end of the epoch.
    for path in seen.iterdir():
        path.unlink()
    examples = open_dataset(str(training_set)).examples
    rest = (examples - 5 * 8) // 4
    one = words(training_set, cut, "--resume-step=5", f"--steps={5 + rest}")
    assert start_workers("alone", 1, *one).status == 0
    end = divmod(5 * 8 + rest * 4, examples)
    assert tuple(read_state(find_checkpoints(str(cut))[5 + rest]).position[:2]) == end
    counts = Counter(early) + Counter(_seen(seen))
    assert sum(counts.values()) == 5 * 8 + rest * 4
    assert not counts - Counter(_examples(training_set))


def _seen(place: Path, until: int = 10**9) -> list[str]:
    """The digests of the examples that all workers received."""
    lines = [line.split() for path in place.iterdir() for line in path.read_text().splitlines()]
    return [digest for number, digest in lines if int(number) <= until]


def _examples(dataset: Path) -> list[str]:
    """The digest of every example of the dataset, computed as the worker does."""
    data = open_dataset(str(dataset))
    loader = Loader(Rows(data), form=PaddedForm(), batch_size=data.examples)
    try:
        (batch,) = next(loader).batches
    finally:
        loader.close()
    return [md5(repr(example).encode()).hexdigest() for example in examples_of(batch)]


def test_an_update_to_resume_at_drops_what_came_later(trainer, whole, training_set, tmp_path):
    run = words(training_set, tmp_path, "--accumulation=2", "--checkpoint-every=5")
    assert trainer(*run).status == 0
    assert trainer(*run, "--resume-step=5", "--steps-this-run=1").status == 0
    assert list(find_checkpoints(str(tmp_path))) == [5, 6]
    assert losses(tmp_path) == losses(whole)[:6]
    refuse(trainer(*run, "--resume-step=4"), 2, "holds no checkpoint 4; there are 5, 6")


def test_resuming_what_never_began_begins(trainer, training_set, tmp_path):
    outcome = trainer(*words(training_set, tmp_path, "--resume", "--steps=3", "--warmup=0"))
    assert outcome.status == 0
    assert "trainer: new: updates 0 to 3 of 3" in outcome.err
    assert list(find_checkpoints(str(tmp_path))) == [3]


@pytest.mark.parametrize("optimiser", ["adamw", "momentum", "adamw-bert", "lamb-graphcore"])
@pytest.mark.thorough_after_first
def test_every_optimisers_moments_are_kept(trainer, training_set, tmp_path, optimiser):
    run = ("--optimiser", optimiser, "--steps=4", "--checkpoint-every=2", "--base-learning-rate=0.01")
    assert trainer(*words(training_set, tmp_path / "a", *run)).status == 0
    assert trainer(*words(training_set, tmp_path / "b", *run, "--steps-this-run=2")).status == 0
    assert trainer(*words(training_set, tmp_path / "b", *run, "--resume")).status == 0
    assert losses(tmp_path / "a") == losses(tmp_path / "b")
    assert tensors(tmp_path / "a", 4) == tensors(tmp_path / "b", 4)


def test_resuming_with_other_hyperparameters_says_each_difference(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path, "--steps-this-run=2")
    assert trainer(*run).status == 0
    assert "warning: " not in trainer(*run, "--resume").err
    more = ("--base-learning-rate=0.5", "--weight-decay=0.1", "--batch-size=8", "--hidden-dropout-prob=0.2")
    outcome = trainer(*run, "--resume", *more, "--lr-schedule=polynomial_decay", "--steps=12")
    assert outcome.status == 0, outcome.err
    prefix = "trainer: warning: "
    assert sorted(line for line in outcome.err.splitlines() if line.startswith(prefix)) == sorted(
        f"{prefix}{name}: {before}, {now} in this run"
        for name, before, now in (
            ("base_learning_rate", "0.001 in the checkpoint", 0.5),
            ("batch_size", "4 in the checkpoint", 8),
            ("examples of an update", "4 on average so far", 8),
            ("hidden_dropout_prob", "not given in the checkpoint", 0.2),
            ("lr_schedule", "not given in the checkpoint", "polynomial_decay"),
            ("steps", "10 in the checkpoint", 12),
            ("weight_decay", "not given in the checkpoint", 0.1),
        )
    )


def test_the_same_update_by_other_workers_is_no_difference(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path, "--global-batch-size=8", "--batch-size=2", "--steps-this-run=2")
    assert trainer(*run).status == 0
    outcome = trainer(*run, "--resume", "--batch-size=4")
    assert outcome.status == 0, outcome.err
    assert outcome.err.count("warning: ") == 1
    assert "warning: batch_size: 2 in the checkpoint, 4 in this run" in outcome.err


def test_a_checkpoint_beyond_the_last_update_is_refused(trainer, whole, training_set):
    run = words(training_set, whole, "--accumulation=2", "--resume", "--steps=7")
    refuse(trainer(*run), 2, "step-00000010: holds update 10 of its phase, but this run ends after 7 (steps)")


# The same global batch


@pytest.mark.thorough
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_workers_are_one_that_accumulates(launcher, trainer, training_set, tmp_path):
    run = ("--steps=20", "--base-learning-rate=0.01")
    assert trainer(*words(training_set, tmp_path / "one", *run, "--accumulation=2")).status == 0
    outcome = start_workers(launcher, 2, *words(training_set, tmp_path / "two", *run))
    assert outcome.status == 0, outcome.err
    assert sum("step 20/20" in line for line in outcome.err.splitlines()) == 1  # rank 0 alone prints
    for said in ("connecting 2 workers", "opening the data", "building the model", "making the first update"):
        assert outcome.err.count(said) == 1
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert len(one) == len(two) == 20
    for ours, others in zip(one, two, strict=True):
        assert ours == pytest.approx(others, abs=1e-5)
    assert one[0]["mlm_loss"] - one[-1]["mlm_loss"] > 0.1  # something was learnt, in spite of dropout


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_16_bits_train_and_resume_bit_for_bit(trainer, training_set, tmp_path, precision):
    run = ("--precision", precision, "--steps=6", "--base-learning-rate=0.02", "--init-loss-scale=1024")
    done = trainer(*words(training_set, tmp_path / "a", *run))
    assert done.status == 0
    assert ("warning: precision is fp16 on a processor" in done.err) == (precision == "fp16")
    assert trainer(*words(training_set, tmp_path / "b", *run, "--steps-this-run=3")).status == 0
    assert trainer(*words(training_set, tmp_path / "b", *run, "--resume")).status == 0
    assert losses(tmp_path / "a") == losses(tmp_path / "b")
    assert tensors(tmp_path / "a", 6) == tensors(tmp_path / "b", 6)
    assert losses(tmp_path / "a")[-1]["mlm_loss"] < losses(tmp_path / "a")[0]["mlm_loss"]
    kept = read_state(find_checkpoints(str(tmp_path / "a"))[6]).loss_scale
    assert kept == ({"value": 1024.0, "good": 6} if precision == "fp16" else {"value": 1.0, "good": 0})


# Gradients: an update compared with plain PyTorch


class Pair(Collective):
    """One of two workers that are threads of this process."""

    size = 2

    def __init__(self, rank: int, meeting: threading.Barrier, table: dict[int, list[torch.Tensor]]) -> None:
        self.rank = self.local_rank = rank
        self.stopping = Stopping()
        self.reductions: list[torch.dtype | None] = []
        self._meeting, self._table = meeting, table

    def start_average(self, flat, name, dtype=None):
        if name == "bucket.0":  # the last of an update
            self.reductions.append(dtype)
        return lambda: self._average([flat], dtype)

    def average(self, tensors, dtype=None):
        self.reductions.append(dtype)
        self._average(list(tensors), dtype)

    def _average(self, tensors, dtype):
        self._table[self.rank] = [(tensor.detach() / 2).to(dtype or tensor.dtype) for tensor in tensors]
        self._meeting.wait()
        means = [one + other for one, other in zip(self._table[0], self._table[1], strict=True)]
        self._meeting.wait()
        with torch.no_grad():
            for tensor, mean in zip(tensors, means, strict=True):
                tensor.copy_(mean)


SHAPE = ModelConfig(
    vocab_size=2000,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


def batches(dataset: Path, count: int, updates: int = 1) -> list[list[FlatBatch]]:
    loader = Loader(
        Rows(open_dataset(str(dataset))), form=PaddedForm(), batch_size=4, accumulation=count, seed=1
    )
    try:
        return [[flatten(batch) for batch in next(loader).batches] for _ in range(updates)]
    finally:
        loader.close()


def make_training(workers: Collective, **settings: object) -> Training:
    defaults = {"optimiser": "sgd", "base_learning_rate": 0.5, "steps": 10, "lr_schedule": "custom"}
    config = Config.of(**{**defaults, "lr_schedule_by_step": {"0": 0.5}, **settings})
    runtime = Runtime(
        config=config,
        device=find_device(config),
        collective=workers,
        model_share=ModelShare(copy=workers.rank, copies=workers.size),
        task=Pretraining(),
    )
    fresh = State(
        step=0, seed=1, open_files=1, optimiser=config.update.optimiser, model=SHAPE.as_json(), config={}
    )
    return Training(runtime, make_model(runtime, SHAPE), fresh)


def trained_weights(training: Training, updates: list[list[FlatBatch]]) -> dict[str, torch.Tensor]:
    for update in updates:
        training.update([Update(update, Position(0, 0))])
        training.advance(Position(0, 0), 1)
    return {name: weight.clone() for name, weight in training.model.state_dict().items()}


def trained_by_two(
    updates: list[list[FlatBatch]], **settings: object
) -> tuple[dict[str, torch.Tensor], Pair]:
    """The weights after two workers shared the micro-batches; checks that both have the same."""
    meeting, table = threading.Barrier(2, timeout=30), {}
    pair = [Pair(rank, meeting, table) for rank in range(2)]
    found: dict[int, dict[str, torch.Tensor]] = {}
    trainings = [make_training(workers, **settings) for workers in pair]

    def work(rank: int) -> None:
        found[rank] = trained_weights(trainings[rank], [update[rank::2] for update in updates])

    threads = [threading.Thread(target=work, args=[rank]) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])
    return found[1], pair[1]


def plain_weights(updates: list[list[FlatBatch]], clipping: str) -> dict[str, torch.Tensor]:
    """Plain gradient descent: mean over micro-batches, clipped at the given point."""
    training = make_training(Collective(find_device(Config.of())))
    model = training.model
    weights = list(model.parameters())
    for update in updates:
        sums = [torch.zeros_like(weight) for weight in weights]
        for batch in update:
            gradients = torch.autograd.grad(compute_pretraining_loss(model(batch), batch).loss, weights)
            norm = torch.sqrt(sum((gradient**2).sum() for gradient in gradients))
            factor = 1 / max(1.0, float(norm)) if clipping == "per_micro_batch" else 1
            sums = [
                total + gradient * factor / len(update)
                for total, gradient in zip(sums, gradients, strict=True)
            ]
        norm = torch.sqrt(sum((gradient**2).sum() for gradient in sums))
        factor = 1 / max(1.0, float(norm)) if clipping == "per_update" else 1
        with torch.no_grad():
            for weight, gradient in zip(weights, sums, strict=True):
                weight -= 0.5 * gradient * factor
    return model.state_dict()


def assert_close(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], by: float) -> None:
    for name, tensor in expected.items():
        assert torch.allclose(found[name], tensor, rtol=by, atol=by / 10), name


@pytest.mark.parametrize("clipping", ["none", "per_micro_batch", "per_update"])
def test_updates_are_those_of_plain_pytorch(training_set, clipping):
    updates = batches(training_set, 4, updates=3)
    expected = plain_weights(updates, clipping)
    alone = trained_weights(make_training(Collective(find_device(Config.of())), clipping=clipping), updates)
    assert_close(alone, expected, 1e-5)
    for after in (True, False):
        found, worker = trained_by_two(updates, clipping=clipping, allreduce_post_accumulation=after)
        assert_close(found, expected, 1e-5)
        assert worker.reductions == [None] * (3 if after else 6)


def plain_clipped_gradients(update: list[FlatBatch], optimiser: str) -> list[torch.Tensor]:
    """The gradients that the optimiser's program gets, with PyTorch's clipping.

    MLPerf's clips each gradient to 1, then divides by the number of micro-batches; Habana's divides first.
    """
    model = make_training(Collective(find_device(Config.of()))).model
    weights = list(model.parameters())
    sums = [torch.zeros_like(weight) for weight in weights]
    for batch in update:
        model.zero_grad()
        loss = compute_pretraining_loss(model(batch), batch).loss
        (loss / len(update) if optimiser == "lamb-habana-tf" else loss).backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        share = len(update) if optimiser == "lamb-mlperf" else 1
        sums = [total + weight.grad / share for total, weight in zip(sums, weights, strict=True)]
    return sums


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("optimiser", ["lamb-mlperf", "lamb-habana-tf"])
def test_micro_batches_are_clipped_as_in_the_optimisers_program(training_set, monkeypatch, optimiser, count):
    (update,) = batches(training_set, count, updates=1)
    training = make_training(Collective(find_device(Config.of())), optimiser=optimiser)
    seen = list[torch.Tensor]()
    step = training.strategy.optimiser_step
    monkeypatch.setattr(
        step, "take", lambda gradients, *_: seen.extend(gradient.clone() for gradient in gradients)
    )
    trained_weights(training, [update])
    expected = plain_clipped_gradients(update, optimiser)
    torch.testing.assert_close(seen, expected, rtol=1e-4, atol=1e-6)
    other = plain_clipped_gradients(update, {"lamb-mlperf": "lamb-habana-tf"}.get(optimiser, "lamb-mlperf"))
    equal = all(torch.allclose(a, b, rtol=1e-4) for a, b in zip(expected, other, strict=True))
    assert equal == (count == 1)


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float16), ("bf16", torch.bfloat16)])
def test_16_bit_reduction_is_close_and_is_in_16_bits(training_set, precision, dtype):
    updates = batches(training_set, 4, updates=2)
    wanted, _ = trained_by_two(updates, precision=precision)
    found, worker = trained_by_two(updates, precision=precision, allreduce_post_accumulation_fp16=True)
    assert worker.reductions == [dtype] * 2
    assert_close(found, wanted, 0.02)
    assert any(not torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize("by", ["environment", "key"])
def test_weights_are_averaged_before_each_step_where_that_is_forced(training_set, monkeypatch, by):
    if by == "environment":
        monkeypatch.setenv("FORCE_WEIGHT_SYNC", "1")
    updates = batches(training_set, 2, updates=2)
    _, worker = trained_by_two(updates, force_weight_sync=by == "key")
    assert len(worker.reductions) == 2 * 2
    monkeypatch.delenv("FORCE_WEIGHT_SYNC", raising=False)
    assert len(trained_by_two(updates)[1].reductions) == 2


def test_an_overflow_leaves_the_update_out_and_halves_the_scale(training_set):
    training = make_training(Collective(find_device(Config.of())), optimiser="lamb-nvidia", precision="fp16")
    before = {name: weight.clone() for name, weight in training.model.state_dict().items()}
    training.strategy.optimiser_step.scale.scale = lambda loss: loss * float("inf")
    after = trained_weights(training, batches(training_set, 1))
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert (training.state.step, training.strategy.optimiser_step.applied) == (1, 0)
    assert training.strategy.optimiser_step.scale.value == 32768
    assert training.strategy.optimiser_step.read_skipped() == 1


def overflow_in(monkeypatch, *updates: int) -> None:
    """Infinite gradients in the updates of those numbers, or in all; the losses stay finite."""
    scale_it, calls = AdaptiveScale.scale, []

    def scale(self: AdaptiveScale, loss: torch.Tensor) -> torch.Tensor:
        calls.append(loss)
        bad = not updates or len(calls) in updates
        return scale_it(self, loss) * (float("inf") if bad else 1)

    monkeypatch.setattr(AdaptiveScale, "scale", scale)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_skipped_updates_are_logged_and_do_not_count_as_applied(
    trainer, training_set, tmp_path, monkeypatch, precision
):
    overflow_in(monkeypatch, 2, 3)
    run = (f"--precision={precision}", "--steps=5", "--init-loss-scale=1024", "--log-every=5")
    outcome = trainer(*words(training_set, tmp_path, *run))
    assert outcome.status == 0, outcome.err
    lines = [line for line in outcome.err.splitlines() if "skipped: a gradient was not finite" in line]
    assert sum(int(line.split()[3]) for line in lines) == 2
    assert ("; the loss scale is now 256" in lines[-1]) == (precision == "fp16")
    state = read_state(find_checkpoints(str(tmp_path))[5])
    assert (state.step, state.applied) == (5, 3)
    assert state.loss_scale == (
        {"value": 256.0, "good": 2} if precision == "fp16" else {"value": 1.0, "good": 0}
    )


def test_a_run_that_diverges_at_the_least_loss_scale_names_the_update(
    trainer, training_set, tmp_path, monkeypatch
):
    overflow_in(monkeypatch)
    run = ("--precision=fp16", "--steps=8", "--init-loss-scale=4")
    message = "update 3: the gradients' norm is nan at loss scale 1, the least allowed; the training has"
    outcome = trainer(*words(training_set, tmp_path, *run))
    assert outcome.status != 0
    assert message in outcome.err
    assert not find_checkpoints(str(tmp_path))


def test_a_bf16_run_ends_after_many_skipped_updates_in_a_row(trainer, training_set, tmp_path, monkeypatch):
    overflow_in(monkeypatch)
    outcome = trainer(*words(training_set, tmp_path, "--precision=bf16", "--steps=25"))
    assert outcome.status != 0
    assert "update 20: the gradients' norm is nan, as in the 19 updates before" in outcome.err


def test_schedules_take_their_settings_from_the_configuration():
    def rate(step: int, workers: int = 1, **settings: object) -> float:
        config = Config.of(**{"steps": 100, "base_learning_rate": 1.0, **settings})
        return config.make_schedule(workers)(step)

    assert rate(5, optimiser="lamb-mlperf", warmup=10, start_warmup_step=-5) == pytest.approx(0.95)
    assert rate(50, optimiser="lamb-mlperf", power=2.0) == pytest.approx(0.25)
    assert rate(9, warmup=0.2) == pytest.approx(0.5)
    assert rate(5, 4, optimiser="lamb-habana-tf", warmup=10) == pytest.approx(2.0)
    assert rate(50, 1, optimiser="adamw-bert", lr_schedule="habana-tf", warmup=10) == pytest.approx(0.5 / 0.9)
    assert rate(60, lr_schedule="natural_exponential", decay_rate=0.5, decay_steps=50) == pytest.approx(
        2.718281828**-0.5
    )
    assert rate(7, lr_schedule="custom", lr_schedule_by_step={"0": 0.1, "7": 0.2}) == 0.2


# Phases


def test_phase_2_keeps_weights_and_moments_and_begins_anew_otherwise(
    trainer, training_set, longer_set, tmp_path
):
    assert trainer(*words(training_set, tmp_path, "--steps=4")).status == 0
    last = find_checkpoints(str(tmp_path))[4]
    phase2 = ("--phase2", "--phase1-end-step=4", "--checkpoint-every=1", "--keep-checkpoints=9")
    outcome = trainer(*words(longer_set, tmp_path, *phase2, *STANDSTILL, "--steps=6"))
    assert outcome.status == 0, outcome.err
    assert list(find_checkpoints(str(tmp_path))) == [4, *range(5, 11)]
    first = read_state(find_checkpoints(str(tmp_path))[5])
    assert (first.phase, first.phase_start, first.step, first.applied) == (2, 4, 1, 1)
    assert (first.position, first.trained) == ((0, 4, 0), 4)
    # With rate 0 the weights stay; the moments are phase 1's with one more gradient.
    after = find_checkpoints(str(tmp_path))[5]
    for name, weight in load_file(last / "model.safetensors").items():
        assert torch.equal(weight, load_file(after / "model.safetensors")[name])
    moments = [load_file(path / "optimizer.safetensors") for path in (last, after)]
    squares = {name: moment for name, moment in moments[0].items() if name.startswith("exp_avg_sq")}
    assert all((moments[1][name] >= 0.999 * moment * (1 - 1e-6)).all() for name, moment in squares.items())
    assert all(moment.max() > 0 for moment in squares.values())
    rows = losses(tmp_path)
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert (tmp_path / "training.1.csv").exists()  # phase 1's


def test_phase_2_is_resumed_as_phase_2(trainer, training_set, longer_set, tmp_path):
    assert trainer(*words(training_set, tmp_path, "--steps=3", "--warmup=0")).status == 0
    run = words(longer_set, tmp_path, "--phase2", "--steps=4", "--checkpoint-every=2")
    assert trainer(*run, "--steps-this-run=2", "--resume").status == 0
    refuse(trainer(*run), 2, "step-00000005: is in use", "--resume")
    refuse(
        trainer(*words(training_set, tmp_path, "--resume")), 2, "step-00000005: is a checkpoint of phase 2"
    )
    assert trainer(*run, "--resume").status == 0
    assert read_state(find_checkpoints(str(tmp_path))[7]).step == 4
    assert len(losses(tmp_path)) == 4


def test_phase_2_without_phase_1_is_refused(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path, "--phase2")
    refuse(trainer(*run), 2, "--phase2 continues from phase 1", "holds no checkpoint")
    assert trainer(*words(training_set, tmp_path, "--steps=3", "--warmup=0")).status == 0
    refuse(trainer(*run, "--phase1-end-step=7"), 2, "holds no checkpoint 7; there are 3")


def test_phase_2_from_another_run_is_numbered_on_where_phase_1_has_ended(
    trainer, whole, training_set, longer_set, tmp_path
):
    assert trainer(*words(training_set, tmp_path, "--steps=4")).status == 0
    source = f"--start-from-ckpt={whole}/ckpt_10.pt"
    run = words(longer_set, tmp_path, "--phase2", source, "--start-moments", "--steps=2", "--warmup=0")
    outcome = trainer(*run, "--steps-this-run=1", *STANDSTILL)
    assert outcome.status == 0, outcome.err
    path = find_checkpoints(str(tmp_path))[5]
    state = read_state(path)
    assert (state.phase, state.phase_start, state.step) == (2, 4, 1)
    weights, wanted = (
        load_file(one / "model.safetensors") for one in (path, find_checkpoints(str(whole))[10])
    )
    assert all(torch.equal(weights[name], wanted[name]) for name in wanted)
    refuse(trainer(*run, *STANDSTILL), 2, "is in use", "--resume")
    assert trainer(*run, *STANDSTILL, "--resume").status == 0
    assert list(find_checkpoints(str(tmp_path)))[-1] == 6


def test_start_from_ckpt_takes_weights_only(trainer, whole, training_set, tmp_path):
    source = find_checkpoints(str(whole))[10]
    run = words(training_set, tmp_path, f"--start-from-ckpt={source}", "--steps=1", "--warmup=0")
    assert trainer(*run, *STANDSTILL, "--optimiser=lamb-mlperf").status == 0
    made = find_checkpoints(str(tmp_path))[1]
    weights, wanted = (load_file(path / "model.safetensors") for path in (made, source))
    assert all(torch.equal(weights[name], wanted[name]) for name in wanted)
    state = read_state(made)
    assert (state.phase, state.step, state.applied, state.trained) == (1, 1, 1, 4)
    moments, earlier = (load_file(path / "optimizer.safetensors") for path in (made, source))
    assert not any(torch.equal(moments[name], earlier[name]) for name in earlier)


# Stopped


@pytest.mark.parametrize("accumulation", ["after", "each"])
def test_sigterm_discards_the_unfinished_update_saves_and_exits_0(
    trainer, whole, training_set, tmp_path, monkeypatch, accumulation
):
    forward, passes = BertForPreTraining.forward, []

    def interrupted(self, *arguments, **options):
        passes.append(1)
        if len(passes) == 6 * 2 + 1:  # the first of update 7's two micro-batches
            os.kill(os.getpid(), signal.SIGTERM)
        return forward(self, *arguments, **options)

    monkeypatch.setattr(BertForPreTraining, "forward", interrupted)
    run = words(training_set, tmp_path, "--accumulation=2", "--checkpoint-every=100")
    run.append(f"--allreduce-post-accumulation={json.dumps(accumulation == 'after')}")
    outcome = trainer(*run)
    assert outcome.status == 0
    assert len(passes) == 6 * 2 + 1
    assert "stopped after update 6 as requested" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("stopped after ")
    assert "success" not in outcome.err
    assert list(find_checkpoints(str(tmp_path))) == [6]
    assert len(losses(tmp_path)) == 6
    monkeypatch.undo()
    assert trainer(*run, "--resume").status == 0
    assert losses(tmp_path) == losses(whole)
    assert tensors(tmp_path, 10) == tensors(whole, 10)


def test_a_second_ctrl_c_interrupts_at_once(trainer, training_set, tmp_path, monkeypatch):
    forward, passes = BertForPreTraining.forward, []

    def interrupted(self, *arguments, **options):
        passes.append(1)
        if len(passes) == 3:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return forward(self, *arguments, **options)

    monkeypatch.setattr(BertForPreTraining, "forward", interrupted)
    run = words(training_set, tmp_path, "--checkpoint-every=6")
    outcome = trainer(*run)
    assert outcome.status == 130
    begins_again = "nothing is saved yet; run the same command with --resume, which begins again"
    assert outcome.err.splitlines()[-1] == f"trainer: interrupted; {begins_again}"
    assert len(passes) == 3
    assert not find_checkpoints(str(tmp_path))
    monkeypatch.undo()
    refuse(trainer(*run), 2, "is in use: holds training.csv; give --resume to continue there")
    assert trainer(*run, "--resume").status == 0
    assert losses(tmp_path)[0]["step"] == 1


def test_an_interrupted_run_with_a_checkpoint_names_it(trainer, training_set, tmp_path, monkeypatch):
    forward, passes = BertForPreTraining.forward, []

    def interrupted(self, *arguments, **options):
        passes.append(1)
        while len(passes) == 6 and not find_checkpoints(str(tmp_path)):
            time.sleep(0.01)  # a thread writes checkpoint 4
        if len(passes) == 6:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return forward(self, *arguments, **options)

    monkeypatch.setattr(BertForPreTraining, "forward", interrupted)
    outcome = trainer(*words(training_set, tmp_path, "--checkpoint-every=4"))
    assert outcome.status == 130
    assert outcome.err.splitlines()[-1] == "trainer: interrupted; --resume continues from checkpoint 4"


def test_a_run_stopped_before_its_first_update_says_that_nothing_is_saved(
    trainer, training_set, tmp_path, monkeypatch
):
    announce = training_loop.announce_start

    def stop_first(*arguments):
        announce(*arguments)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)

    monkeypatch.setattr(training_loop, "announce_start", stop_first)
    run = words(training_set, tmp_path)
    outcome = trainer(*run)
    assert outcome.status == 0
    assert "stopped before the first update as requested; nothing is saved yet" in outcome.err
    assert not find_checkpoints(str(tmp_path))
    monkeypatch.undo()
    assert trainer(*run, "--resume").status == 0


def test_sigterm_during_an_evaluation_abandons_it(trainer, training_set, tmp_path, monkeypatch):
    evaluated, move = [], Cpu.move

    def interrupted(self, batch):
        if not torch.is_grad_enabled():
            evaluated.append(len(batch))
            os.kill(os.getpid(), signal.SIGTERM)
        return move(self, batch)

    monkeypatch.setattr(Cpu, "move", interrupted)
    run = words(
        training_set, tmp_path, f"--eval-data={training_set}", "--eval-every=3", "--eval-batch-size=4"
    )
    outcome = trainer(*run)
    assert outcome.status == 0
    assert evaluated == [4]
    assert "evaluated" not in outcome.err
    assert list(find_checkpoints(str(tmp_path))) == [3]


@pytest.mark.thorough
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_sigterm_to_one_worker_stops_all_in_the_same_micro_batch(
    launcher, training_set, tmp_path, monkeypatch
):
    accident(monkeypatch, "term", rank=1, update=4, micro_batch=2)
    outcome = start_workers(launcher, 2, *words(training_set, tmp_path, "--accumulation=3"))
    assert outcome.status == 0, outcome.err
    assert "stopped after update 3 as requested" in outcome.err
    assert list(find_checkpoints(str(tmp_path))) == [3]


@pytest.mark.thorough
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_sigterm_to_one_worker_at_any_time_leaves_whole_updates(
    launcher, training_set, tmp_path, monkeypatch
):
    accident(monkeypatch, "term", rank=1, update=4)
    outcome = start_workers(launcher, 2, *words(training_set, tmp_path))
    assert outcome.status == 0, outcome.err
    (made,) = find_checkpoints(str(tmp_path))
    assert made in (3, 4)  # 4 if the other worker had entered its reduction
    assert f"stopped after update {made} as requested" in outcome.err
    assert len(losses(tmp_path)) == made


@pytest.mark.thorough
def test_a_full_disk_on_one_machine_is_told_once_and_ends_all_workers(training_set, tmp_path, monkeypatch):
    accident(monkeypatch, "full", rank=0, update=2)
    outcome = start_workers("torchrun", 2, *words(training_set, tmp_path, "--checkpoint-every=2"))
    refuse(outcome, 1, "step-00000002: cannot be written: ", "No space left on device")
    assert not find_checkpoints(str(tmp_path))


@pytest.mark.thorough
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_when_a_worker_dies_the_other_names_it_and_stops(launcher, training_set, tmp_path, monkeypatch):
    accident(monkeypatch, "kill", rank=1, update=4)
    since = time.monotonic()
    outcome = start_workers(launcher, 2, *words(training_set, tmp_path, "--checkpoint-every=3"))
    assert time.monotonic() - since < 60
    assert outcome.status != 0
    assert any("worker 1 of 2 was lost: its process ended" in line for line in errors(outcome)), outcome.err
    assert list(find_checkpoints(str(tmp_path))) == [3]


def test_a_loss_that_is_no_number_stops_with_update_and_rank(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path, "--optimiser=sgd", "--base-learning-rate=1e30", "--warmup=0")
    refuse(trainer(*run), 1, "update 2: the loss of rank 0 is nan")


def test_weights_that_are_no_numbers_are_not_saved(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path, "--optimiser=sgd", "--base-learning-rate=1e38", "--warmup=0")
    refuse(trainer(*run, "--steps-this-run=1"), 1, "update 1: a weight is not a number, so nothing is saved")
    assert not find_checkpoints(str(tmp_path))


@pytest.mark.thorough
def test_a_loss_of_another_worker_that_is_no_number_stops_all(training_set, tmp_path, monkeypatch):
    accident(monkeypatch, "nan", rank=1, update=3)
    outcome = start_workers("torchrun", 2, *words(training_set, tmp_path))
    assert outcome.status == 1
    (line,) = errors(outcome)
    assert "trainer: error: update 3: the loss of rank 1 is nan" in line
    assert not find_checkpoints(str(tmp_path))


@pytest.mark.thorough
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_what_rank_0_refuses_is_said_once_and_ends_all(launcher, whole, training_set):
    outcome = start_workers(launcher, 2, *words(training_set, whole))
    assert outcome.status != 0
    (line,) = errors(outcome)
    assert f"{whole}: is in use: holds checkpoints" in line


# Refused


def test_a_second_run_into_the_output_directory_is_refused_and_removes_nothing(
    trainer, whole, training_set, tmp_path
):
    shutil.copytree(whole, tmp_path / "run")
    growing = tmp_path / "run" / "checkpoints" / "unfinished" / "step-00000015.0123456789abcdef.tmp"
    growing.mkdir(parents=True)
    (growing / "model.safetensors").write_bytes(b"half of")
    before = contents(tmp_path / "run")
    run = words(training_set, tmp_path / "run", "--accumulation=2", "--resume")
    with holder(tmp_path / "run" / "unfinished") as first:
        refuse(trainer(*run), 2, f"{tmp_path}/run: another run (process {first.pid} on ")
        (tmp_path / "run" / "unfinished" / "run.lock").rename(tmp_path / "run.lock")
        assert contents(tmp_path / "run") == before
        (tmp_path / "run.lock").rename(tmp_path / "run" / "unfinished" / "run.lock")
    assert trainer(*run).status == 0
    assert not growing.exists()
    assert not (tmp_path / "run" / "unfinished").exists()


def test_a_used_output_directory_is_refused(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path, "--steps=3", "--warmup=0")
    assert trainer(*run).status == 0
    refuse(trainer(*run), 2, str(tmp_path), "is in use: holds checkpoints", "--resume")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--hidden-size=48"], "model's hidden_size is 32, this one's 48; its weights do not fit"),
        (["--seed=7"], "its seed is 42, this one's 7; its position belongs to another order of the examples"),
        (["--open_files=2"], "its open_files is 8, this one's 2; its position belongs to another order"),
        (["--optimiser=sgd"], "its optimiser is lamb-nvidia, this one's sgd; its moments do not fit"),
    ],
)
def test_a_foreign_checkpoint_is_refused(trainer, whole, training_set, more, said):
    run = words(training_set, whole, "--accumulation=2", "--resume", *more)
    refuse(trainer(*run), 1, "step-00000010: belongs to another run", said)


def test_a_position_in_another_dataset_is_refused_with_both_paths(trainer, whole, training_set, longer_set):
    run = words(longer_set, whole, "--accumulation=2", "--resume")
    told = (f"its data is {training_set} (digest ", f"), this one's {longer_set} (digest ")
    refuse(trainer(*run), 1, "step-00000010: belongs to another run: ", *told)


def test_a_damaged_checkpoint_is_refused(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path, "--steps=3", "--warmup=0")
    assert trainer(*run, "--steps-this-run=2").status == 0
    path = find_checkpoints(str(tmp_path))[2] / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    refuse(trainer(*run, "--resume"), 1, f"{path}: is damaged: found ", "expected")
    refuse(
        trainer(*words(training_set, tmp_path / "b", f"--start-from-ckpt={path.parent}")),
        1,
        f"{path}: is damaged",
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--global-batch-size=10", "--batch-size=4"], "does not divide"),
        (["--vocab-size=30522"], "the model has vocab_size 30522"),
        (["--max-seq-length=128"], "made with max_seq_length 64"),
        (["--max-position-embeddings=32"], "max_position_embeddings 32"),
        (["--lerning-rate=1"], "lerning"),
        (["--device=tpu"], "device is 'tpu'"),
        (["--precision=fp8"], "precision"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(trainer, training_set, tmp_path, more, said):
    refuse(trainer(*words(training_set, tmp_path / "run", *more)), 2, said)
    assert not (tmp_path / "run").exists()


def test_a_missing_key_and_a_missing_command_are_named(trainer, training_set):
    refuse(trainer("pretrain", "--train-data=x"), 2, "output_dir is missing: give --output-dir")
    refuse(trainer("pretrain", "--output-dir=x"), 2, "train_data is missing: give --train-data")
    refuse(trainer("pretrian"), 2, "'pretrian' is no command; did you mean pretrain?")
    assert trainer().status == 2
    helped = trainer("--help")
    assert helped.status == 0
    assert helped.out.startswith("Example:\n  python -m trainer pretrain --config tiny")
    assert "finetune  fine-tune a checkpoint on a task" in helped.out


def test_a_shard_damaged_since_it_was_made_stops_the_run(trainer, training_set, tmp_path):
    import shutil

    shutil.copytree(training_set, tmp_path / "set")
    shard = sorted((tmp_path / "set").glob("*.tfrecord"))[0]
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    refuse(trainer(*words(tmp_path / "set", tmp_path / "run")), 1, f"{shard}: found md5")


def test_the_rank_is_said_where_there_are_several(monkeypatch, trainer, training_set, tmp_path):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert find_rank() == (1, 2)
    refuse(trainer("pretrain", "--train-data=x"), 2, "trainer: error: rank 1 of 2: output_dir is missing")


# Other behaviour of a run


@pytest.mark.thorough
def test_the_start_says_what_is_being_done(training_set, tmp_path):
    process = start_program(*words(training_set, tmp_path, "--steps=1", "--warmup=0"), module="trainer")
    outcome = finish(process)
    assert outcome.status == 0, outcome.err
    lines = [line.removeprefix("trainer: ") for line in outcome.err.splitlines()]
    wanted = [
        "importing torch",
        "opening the data",
        "building the model",
        "reading the first examples, making the first update",
    ]
    assert [line for line in lines if line in wanted] == wanted


def test_a_first_update_that_compiles_and_a_checkpoint_that_is_read_are_said(
    trainer, training_set, tmp_path, monkeypatch
):
    compile_it = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function, **_: compile_it(function, backend="eager"))
    run = words(training_set, tmp_path, "--num-hidden-layers=1", "--steps=2", "--warmup=0", "--compile")
    outcome = trainer(*run, "--steps-this-run=1")
    assert outcome.status == 0, outcome.err
    assert "making the first update, which compiles the model" in outcome.err
    assert re.search(r"^trainer: compiled for [\d,]+ tokens in \d+ s$", outcome.err, re.MULTILINE)
    path = find_checkpoints(str(tmp_path))[1]
    assert f"trainer: reading {path}\n" in trainer(*run, "--resume").err


@pytest.mark.parametrize("config", ["tiny", "trainer/config/shipped/tiny.json"])
def test_tiny_trains_on_the_sample_corpus(trainer, training_set, tmp_path, monkeypatch, config):
    monkeypatch.chdir(ROOT)
    run = ["pretrain", "--config", config, f"--train-data={training_set}", f"--output-dir={tmp_path}"]
    assert trainer(*run, "--steps-this-run=2", "--log-every=1").status == 0
    assert losses(tmp_path)[0]["mlm_loss"] == pytest.approx(7.6, abs=0.3)  # log(2000)
    assert read_state(find_checkpoints(str(tmp_path))[2]).config["steps"] == 800


def test_generated_examples_are_trained_on_too(trainer, tmp_path):
    run = ["pretrain", f"--output-dir={tmp_path}", "--config=tiny", *GENERATED]
    outcome = trainer(*run, "--batch-size=2", "--steps=2", "--warmup=0")
    assert outcome.status == 0, outcome.err
    assert "of 2, each of 1 worker x 1 micro-batch x 2 = 2 examples out of 32768" in outcome.err


@pytest.mark.parametrize(("steps", "recorded"), [(9, {4, 5, 6, 7}), (3, {1, 2, 3})])
def test_a_profile_is_recorded_where_it_is_wanted(trainer, tmp_path, steps, recorded):
    outcome = trainer(*words(None, tmp_path, "--profile", *GENERATED, f"--steps={steps}", "--warmup=0"))
    assert outcome.status == 0, outcome.err
    place = tmp_path / "profile.json"
    assert f"trainer: profile: {place}; https://ui.perfetto.dev" in outcome.err
    names = {str(event.get("name")) for event in json.loads(place.read_text("utf-8"))["traceEvents"]}
    assert any("attention" in name for name in names)
    found = {name for name in names if name.startswith("ProfilerStep")}
    assert found == {f"ProfilerStep#{number}" for number in recorded}  # from 0; the end too


def test_a_run_of_phase_2_leaves_phase_1s_profile_alone(trainer, tmp_path):
    run = words(None, tmp_path, *GENERATED, "--profile", "--steps", 2, 2, "--warmup=0")
    assert trainer(*run).status == 0
    assert (tmp_path / "profile.json").is_file()
    assert (tmp_path / "profile_phase2.json").is_file()


def test_compile_only_compiles_for_each_phase_and_writes_nothing(trainer, tmp_path, monkeypatch):
    compiled = []
    compile_it = compiling.compile_by_updates

    def note(strategy, updates, first):
        compiled.append((first.phase, *updates[0][0].input_ids.shape))
        compile_it(strategy, updates, first)

    monkeypatch.setattr(torch, "compile", lambda function, **_: function)  # that takes half a minute
    monkeypatch.setattr(compiling, "compile_by_updates", note)
    sizes = ["--max-seq-length", 16, 32, "--batch-size", 4, 2, "--max-predictions-per-seq=2"]
    outcome = trainer(*words(None, tmp_path / "run", *GENERATED, *sizes, "--compile-only"))
    assert outcome.status == 0, outcome.err
    assert compiled == [(1, 64), (2, 64)]  # not the budgets for padding that never comes
    assert outcome.err.count("trainer: compiled for cpu: ") == 2
    shapes = "micro-batches of 2 examples, flat, padded to 64 tokens; nothing was trained"
    assert shapes in outcome.err
    assert not (tmp_path / "run").exists()


def test_compile_only_compiles_once_for_every_budget_that_the_data_need(
    trainer, training_set, tmp_path, monkeypatch
):
    compiled = []
    compile_it = compiling.compile_by_updates

    def note(strategy, updates, first):
        compiled.append(len(updates[0][0].input_ids))
        compile_it(strategy, updates, first)

    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    monkeypatch.setattr(compiling, "compile_by_updates", note)
    outcome = trainer(*words(training_set, tmp_path / "run", "--token-budget=40", "--compile-only"))
    assert outcome.status == 0, outcome.err
    assert compiled == [4 * 64, *range(240, 0, -40)]  # four full examples may meet


def test_compile_only_needs_no_place_and_the_model_is_compiled(trainer, monkeypatch):
    compile_it = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function, **_: compile_it(function, backend="eager"))
    model = (*MODEL, "--num-hidden-layers=1")
    outcome = trainer("pretrain", *model, *GENERATED, "--batch-size=2", "--compile-only")
    assert outcome.status == 0, outcome.err
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0


def test_keys_without_effect_are_named_once(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path, "--cuda-graphs", "--steps=1", "--warmup=0")
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    assert outcome.err.count("cuda_graphs") == 1


def test_do_train_false_evaluates(trainer, whole, training_set):
    outcome = trainer(*words(training_set, whole, "--do-train=false", f"--eval-data={training_set}"))
    assert outcome.status == 0, outcome.err
    assert "step 10: evaluated" in outcome.err


def test_every_command_explains_itself(trainer):
    for command in ("pretrain", "evaluate", "doctor"):
        outcome = trainer(command, "--help")
        assert outcome.status == 0
        assert outcome.out.startswith(f"Example:\n  python -m trainer {command} ")


@pytest.mark.parametrize(
    ("flags", "steps"),
    [
        (("--num-train-epochs=1.5",), 6),
        (("--num-train-epochs=1.5", "--config={file}"), 6),
        (("--num-train-epochs=1.5", "--warmup=5"), 6),
        (("--num-train-epochs=1.5", "--steps=2"), 2),
    ],
    ids=["alone", "before the file's steps", "with warm-up", "behind a flag"],
)
@pytest.mark.thorough_after_first
def test_epochs_give_the_number_of_updates(trainer, training_set, tmp_path, flags, steps):
    examples = sum(shard.examples for shard in open_dataset(str(training_set)).shards)
    file = tmp_path / "config.json"
    file.write_text('{"steps": 3, "num_hidden_layers": 1}')
    batch = -(-examples // 4)
    given = [flag.format(file=file) for flag in flags]
    words = ["pretrain", *MODEL, f"--train-data={training_set}", f"--output-dir={tmp_path / 'run'}"]
    outcome = trainer(*words, f"--batch-size={batch}", "--no-logs", "--no-progress-bar", *given)
    assert outcome.status == 0, outcome.err
    assert list(find_checkpoints(str(tmp_path / "run"))) == [steps]
    told = f"1.5 epochs of {examples} examples: {steps} updates, each of {batch} examples\n"
    assert (told in outcome.err) == (steps == 6)


def test_a_warm_up_that_the_updates_of_the_epochs_do_not_end_is_refused(trainer, training_set, tmp_path):
    examples = sum(shard.examples for shard in open_dataset(str(training_set)).shards)
    words = ["pretrain", *MODEL, f"--train-data={training_set}", f"--output-dir={tmp_path / 'run'}"]
    outcome = trainer(*words, f"--batch-size={examples}", "--num-train-epochs=3", "--warmup=3", "--no-logs")
    refuse(outcome, 2, "warmup is 3 updates, expected fewer than steps (3)")
    assert "building the model" not in outcome.err


def test_epochs_need_the_size_of_an_update_where_a_plan_chooses_it(training_set):
    runtime = SimpleNamespace(collective=SimpleNamespace(size=2), copies=2)
    config = Config.of(num_train_epochs=1.0)
    with pytest.raises(SettingsError, match="num_train_epochs needs batch_size or global_batch_size"):
        count_updates(runtime, config, open_dataset(str(training_set)))


def test_a_start_that_fails_ends_the_threads_of_its_loader(trainer, training_set, tmp_path, monkeypatch):
    """From Python they would go on reading, and downloading, for as long as the interpreter runs."""
    closed = []
    close = Loader.close
    monkeypatch.setattr(Loader, "close", lambda self: (closed.append(self), close(self))[1])

    def refuse_logs(*_: object, **__: object) -> None:
        raise SettingsError("no logs today")

    monkeypatch.setattr(training_loop, "make_loggers", refuse_logs)
    refuse(trainer(*words(training_set, tmp_path / "run")), 2, "no logs today")
    assert len(closed) == 1
    assert not (tmp_path / "run" / "checkpoints").exists()
