"""Whole runs of a pipeline of two workers: they learn what one does; refused, and with a worker lost."""

import json
import time
from dataclasses import replace

import pytest

from tests.support.fine_tuning import evaluations, finetune_words, squad_file
from tests.support.plans import make_request
from tests.support.split_training import even_plan
from tests.support.training_runs import errors, losses, refuse, start_workers, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.config.model import ModelConfig
from trainer.splitting.plan.plan import read_plan
from trainer.splitting.plan.planner import Planner
from trainer.splitting.plan.rates import DeviceRate

pytestmark = pytest.mark.usefixtures("one_thread")

NO_DROPOUT = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")


def results(run):
    """The values of eval_results.txt."""
    lines = (run / "eval_results.txt").read_text(encoding="utf-8").splitlines()
    return {key: float(value) for key, value in (line.split(" = ") for line in lines)}


@pytest.mark.thorough
def test_two_stages_train_and_measure_what_one_worker_does_and_it_goes_on(trainer, training_set, tmp_path):
    split, alone = tmp_path / "split", tmp_path / "alone"
    more = ("--steps=6", f"--eval-data={training_set}", "--eval-examples=20", *NO_DROPOUT)
    plan = tmp_path / "plan.json"
    planned = ("--strategy=pipelined", "--bandwidth=10", f"--save-plan={plan}")
    run = words(training_set, split, *more, *planned)
    outcome = start_workers("torchrun", 2, *run, "--steps-this-run=4")
    assert outcome.status == 0, outcome.err
    assert "2 devices: pipelined" in outcome.err
    assert "each of 1 copy x 2 micro-batches x 4 = 8 examples" in outcome.err
    assert (
        "sequence lengths vary: micro-batches of an update are padded to the longest of them" in outcome.err
    )
    assert trainer(*words(training_set, alone, *more, "--accumulation=2")).status == 0
    for ours, others in zip(losses(split), losses(alone), strict=False):
        assert ours == pytest.approx(others, abs=2e-5)
    found = read_plan(str(plan))
    assert (len(found.stages), found.copies, found.micro_batches, found.batch_size) == (2, 1, 2, 4)

    resumed = words(training_set, split, *more, "--accumulation=2", "--resume")
    assert trainer(*resumed).status == 0
    assert losses(split)[-1] == pytest.approx(losses(alone)[-1], abs=2e-5)

    measured = ["evaluate", f"--eval-data={training_set}", "--eval-batch-size=9", f"--output-dir={split}"]
    assert trainer(*measured).status == 0
    wanted = results(split)
    (split / "eval_results.txt").unlink()
    outcome = start_workers("torchrun", 2, *measured, f"--plan={plan}")
    assert outcome.status == 0, outcome.err
    assert results(split) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.thorough
def test_sharded_stages_train_where_nothing_else_fits(trainer, training_set, tmp_path):
    """2 stages x 2 copies in a memory that has no room for stages of whole weights."""
    sizes = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 12, "num_attention_heads": 2}
    request = make_request(
        model=ModelConfig(vocab_size=2000, **sizes),
        sequence_length=64,
        precision="fp32",
        optimiser="lamb-mlperf",
        examples=8,
        devices=4,
        memory=10**9,
        bandwidth=1e9,
        rate=DeviceRate(flops=1e9, bytes=1e9),
        batch_size=2,
        strategy="pipelined",
        stages=2,
        attention="flat",
    )
    least, whole = (
        Planner(replace(request, may_shard_stages=may)).find_least_memory()[0] for may in (True, False)
    )
    assert least < 0.9 * whole
    plan, memory = tmp_path / "plan.json", (least + whole) / 2 / 1e9
    flags = [f"--{name.replace('_', '-')}={size}" for name, size in sizes.items()]
    more = ("--steps=4", "--warmup=1", "--batch-size=2", *flags, *NO_DROPOUT)
    made = ("--stages=2", "--strategy=pipelined", f"--save-plan={plan}", "--memory-margin=0")
    run = words(training_set, tmp_path / "split", *more, *made, f"--device-memory={memory}")
    outcome = start_workers("torchrun", 4, *run)
    assert outcome.status == 0, outcome.err
    stages = read_plan(str(plan)).stages
    assert [stage.sharded for stage in stages] == [True, True]
    assert trainer(*words(training_set, tmp_path / "alone", *more, "--accumulation=4")).status == 0
    for ours, others in zip(losses(tmp_path / "split"), losses(tmp_path / "alone"), strict=True):
        assert ours == pytest.approx(others, abs=2e-5)


@pytest.mark.thorough
def test_a_fine_tuned_model_answers_as_one_worker_teaches_it(trainer, pretrained, tmp_path):
    file = squad_file(tmp_path / "squad.json", 23)
    given = (f"--train-file={file}", f"--eval-file={file}", "--steps=6", "--log-every=1", "--batch-size=4")
    more = (*given, "--eval-every=0", "--warmup=3", *NO_DROPOUT)
    split, alone = tmp_path / "split", tmp_path / "alone"
    run = finetune_words("squad", pretrained, split, *more, "--strategy=pipelined")
    outcome = start_workers("torchrun", 2, *run)
    assert outcome.status == 0, outcome.err
    run = finetune_words("squad", pretrained, alone, *more, "--accumulation=2")
    assert trainer(*run).status == 0
    (found,), (wanted,) = evaluations(split), evaluations(alone)
    assert found == pytest.approx(wanted, abs=2e-5)
    predictions = [json.loads((run / "predictions.json").read_text()) for run in (split, alone)]
    assert predictions[0] == predictions[1]


@pytest.mark.thorough
@pytest.mark.parametrize("victim", [0, 1])
def test_when_a_stage_dies_the_other_names_it_and_ends(victim, training_set, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps({"what": "kill", "rank": victim, "update": 4}))
    since = time.monotonic()
    run = words(training_set, tmp_path, "--checkpoint-every=3", "--strategy=pipelined")
    outcome = start_workers("torchrun", 2, *run)
    assert time.monotonic() - since < 60
    assert outcome.status != 0
    named = f"worker {victim} of 2 was lost: its process ended"
    assert any(named in line for line in errors(outcome)), outcome.err
    assert list(find_checkpoints(str(tmp_path))) == [3]


@pytest.mark.thorough
def test_a_pipeline_that_is_asked_to_stop_saves_whole_updates(training_set, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps({"what": "term", "rank": 1, "update": 4}))
    outcome = start_workers("torchrun", 2, *words(training_set, tmp_path, "--strategy=pipelined"))
    assert outcome.status == 0, outcome.err
    (made,) = find_checkpoints(str(tmp_path))
    assert made in (3, 4)
    assert len(losses(tmp_path)) == made


def plan_file(path, *, stages=2, vocab_size=2000):
    shape = ModelConfig(
        vocab_size=vocab_size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    path.write_text(even_plan(shape, stages, 1).text(), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--strategy=pipelined"], "needs torch.distributed: start the workers with torchrun"),
        (["--plan={plan}"], "is a plan for 2 devices = 2 (stages) * 1 (copies), found 1"),
        (["--plan={plan}", "--strategy=sharded"], "is a plan for strategy pipelined, strategy is sharded"),
        (["--plan={other}"], "is a plan for another model: its vocab_size is 300"),
        (["--plan={missing}"], "missing.json"),
    ],
)
def test_what_cannot_be_pipelined_is_refused_in_one_line(flags, said, trainer, training_set, tmp_path):
    names = {
        "plan": plan_file(tmp_path / "plan.json"),
        "other": plan_file(tmp_path / "other.json", vocab_size=300),
        "missing": tmp_path / "missing.json",
    }
    given = [flag.format(**names) for flag in flags]
    outcome = trainer(*words(training_set, tmp_path / "run", *given))
    refuse(outcome, outcome.status, said)
    assert outcome.status in (1, 2)
