"""Runs of split models by processes: from the command to the saved checkpoint, killed and gone on with."""

import json
import shutil

import pytest
import torch

from bertdata.dataset.reader import open_dataset
from tests.support.launching import ROOT, launch
from tests.support.training_runs import MODEL, WORKER, refuse, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state, read_tensors
from trainer.config.model_kinds import read_model_config
from trainer.config.settings import Config
from trainer.splitting.plan.parts import count_weights
from trainer.splitting.plan.plan import write_plan
from trainer.splitting.plan.planner import make_plan
from trainer.splitting.plan.rates import DEFAULT_DEVICE, find_sheet_rate
from trainer.splitting.plan.request import PlanRequest

RANNC = (  # RaNNC's model of 4.9 billion parameters, with its 96 layers, made narrow
    *(
        "--config=rannc_4.9b",
        "--device=cpu",
        "--precision=fp32",
        "--hidden-size=64",
        "--intermediate-size=256",
    ),
    *(
        "--vocab-size=100",
        "--num-attention-heads=2",
        "--optimiser=lamb-nvidia",
        "--generated-data",
        "--max-seq-length=128",
    ),
    *("--global-batch-size=8", "--batch-size=2", "--steps=4", "--warmup=0", "--base-learning-rate=1e-3"),
    *("--log-every=1", "--no-progress-bar", "--checkpoint-every=2"),
)
PIPELINED = ("--strategy=pipelined", "--device-memory=2", "--bandwidth=10")


def weights(run):
    path = find_checkpoints(str(run))[4]
    return read_tensors(path, read_state(path))


def distance(one, other):
    """The largest difference of two models' weights, relative to each weight's largest value."""
    assert one.keys() == other.keys()
    return max(
        float((one[name] - other[name]).abs().max() / other[name].abs().max().clamp(min=1e-3)) for name in one
    )


def trained(outcome):
    assert outcome.status == 0, outcome.err
    return outcome


@pytest.mark.thorough
def test_a_stage_is_killed_and_any_other_split_goes_on(tmp_path, monkeypatch):
    """RaNNC's shape from the very command; 4 stages, then 2 stages, shards, one process."""
    given = ("pretrain", *RANNC, f"--output-dir={tmp_path / 'run'}")
    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps({"what": "kill", "rank": 2, "update": 4}))
    killed = launch("torchrun", 4, WORKER, *given, *PIPELINED, "--stages=4", seconds=240)
    assert killed.status != 0
    assert "worker 2 of 4 was lost" in killed.err
    assert "96 layers" in killed.err  # the plan is shown
    monkeypatch.delenv("TRAINER_ACCIDENT")
    assert list(find_checkpoints(str(tmp_path / "run"))) == [2]
    rests = {
        "four": (4, *PIPELINED, "--stages=4"),
        "two": (2, *PIPELINED, "--stages=2"),
        "shards": (2, "--strategy=sharded"),
        "one": (1,),
    }
    found = {}
    for name, (workers, *more) in rests.items():
        shutil.copytree(tmp_path / "run", tmp_path / name)
        launcher = "torchrun" if workers > 1 else "alone"
        more = [*more, f"--output-dir={tmp_path / name}", "--resume"]
        trained(launch(launcher, workers, WORKER, *given, *more, seconds=240))
        found[name] = weights(tmp_path / name)
    whole = (*given[:-1], f"--output-dir={tmp_path / 'whole'}")
    trained(launch("alone", 1, WORKER, *whole, seconds=240))
    wanted = weights(tmp_path / "whole")
    assert {name: distance(one, wanted) < 1e-5 for name, one in found.items()} == dict.fromkeys(rests, True)
    uninterrupted = (*given[:-1], f"--output-dir={tmp_path / 'again'}", *PIPELINED, "--stages=4")
    trained(launch("torchrun", 4, WORKER, *uninterrupted, seconds=240))
    again = weights(tmp_path / "again")
    assert all(torch.equal(tensor, again[name]) for name, tensor in found["four"].items())


NOT_PLANNED = 100e6
"""Bytes that no plan forecasts. Found: some 50 MB, for examples and buffers of libraries and allocator."""


@pytest.mark.thorough
def test_each_stage_takes_its_share_of_memory_until_the_checkpoint_is_saved(tmp_path, monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "65536")  # memory that is freed is given back at once
    sizes = {"vocab_size": 8000, "hidden_size": 512, "num_hidden_layers": 16, "num_attention_heads": 8}
    update = {"batch_size": 2, "global_batch_size": 8}
    config = Config.of(**sizes, **update, strategy="pipelined", stages=4)
    request = PlanRequest(
        config=config,
        model=read_model_config(config.model_settings),
        examples=8,
        devices=4,
        sequence_length=128,
        memory=8 * 10**9,
        bandwidth=1e10,
        rate=find_sheet_rate(DEFAULT_DEVICE, "fp32"),
        attention="flat",  # the workers' own, which keeps more than the kernels of accelerators
    )
    plan, notes = tmp_path / "plan.json", tmp_path / "notes"
    notes.mkdir()
    write_plan(str(plan), made := make_plan(request))
    keys = [f"--{name.replace('_', '-')}={value}" for name, value in (sizes | update).items()]
    run = ("--generated-data", *keys, "--steps=2", "--warmup=0", f"--output-dir={tmp_path / 'run'}")
    worker = ROOT / "tests" / "support" / "measured_worker.py"
    given = ("pretrain", *run, "--strategy=pipelined", f"--plan={plan}", "--no-progress-bar")
    trained(launch("torchrun", 4, worker, notes, *given, seconds=240))
    assert list(find_checkpoints(str(tmp_path / "run"))) == [2]
    for rank, stage in enumerate(made.stages):
        noted = json.loads((notes / f"{rank}.json").read_text())
        share = stage.memory.total
        assert noted["peak"] - noted["before"] <= share + NOT_PLANNED, (rank, noted, share)
        others = 4 * count_weights(made) - stage.memory.weights
        assert others > 1.4 * NOT_PLANNED  # a stage that held the others' weights too would be found


@pytest.mark.thorough
def test_two_workers_time_layers_and_bandwidth_together_and_train_by_the_plan(tmp_path):
    run = ("pretrain", *RANNC, f"--output-dir={tmp_path / 'run'}", "--num-hidden-layers=3")
    more = ("--strategy=pipelined", "--profile-layers", "--precision=bf16")
    outcome = trained(launch("torchrun", 2, WORKER, *run, *more, seconds=240))
    assert outcome.err.count("timing the model's layers on device cpu") == 1
    assert outcome.err.count("layers measured on device cpu") == 1
    assert list(find_checkpoints(str(tmp_path / "run"))) == [2, 4]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--strategy=pipelined", "--stages=2"], "start the workers with torchrun"),
        (["--strategy=sharded"], "start the workers with torchrun"),
        (["--strategy=pipelined", "--plan=no-such.json"], "no-such.json"),
    ],
)
def test_what_cannot_be_split_is_one_line(trainer, tmp_path, more, message):
    outcome = trainer("pretrain", *RANNC, f"--output-dir={tmp_path / 'run'}", *more)
    assert outcome.status != 0
    assert message in outcome.err
    assert len([line for line in outcome.err.splitlines() if "error" in line]) == 1


@pytest.mark.parametrize(("planned", "trained_on"), [("mlm", "bert"), ("bert", "mlm"), ("mlm", "mlm")])
def test_a_plan_for_another_task_is_refused(trainer, training_set, block_set, tmp_path, planned, trained_on):
    sets, plan = {"bert": training_set, "mlm": block_set}, tmp_path / "plan.json"
    run = words(sets[trained_on], tmp_path / "run", "--steps=1", "--warmup=0", f"--plan={plan}")
    size = f"--vocab-size={open_dataset(str(training_set)).vocabulary_size}"
    split = ("split", *MODEL, size, "--devices=1", "--memory=1", "--batch-size=4", f"--output={plan}")
    assert trainer(*split, f"--train-data={sets[planned]}").status == 0
    if planned == trained_on:
        assert trainer(*run).status == 0
        return
    heads = {"bert": "masked words and next sentence", "mlm": "masked words"}
    found = f"its head is {heads[planned]}, this run's {heads[trained_on]}"
    refuse(trainer(*run), 2, f"is a plan for another task: {found}; make a plan for this run with python -m")
    kept = json.loads(plan.read_text(encoding="utf-8"))
    del kept["head"]  # an older plan, which does not say it
    plan.write_text(json.dumps(kept), encoding="utf-8")
    assert trainer(*run).status == 0
