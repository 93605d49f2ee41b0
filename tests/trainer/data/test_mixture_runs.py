"""Training runs on a mixture: epochs shown, stopped and killed and resumed to the bit, refusals."""

import json
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertdata
from tests.support.sample_sets import create
from tests.support.training_runs import Trainer, errors, losses, refuse, start_workers, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.config.settings import Config
from trainer.data.forms import make_form
from trainer.data.loader import Loader
from trainer.data.mixture import MixedOrder
from trainer.data.opening import open_configured, prepare_for_training
from trainer.data.order import Position
from trainer.data.rows import find_rows


@pytest.fixture(scope="module")
def sets(corpus: Sequence[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> list[Path]:
    """A dataset of two shards and one of one shard."""
    place = tmp_path_factory.mktemp("sets")
    for name, parts in (("a", corpus[:2]), ("b", corpus[2:])):
        create(parts, small_vocabulary_file, place / name)
    return [place / "a", place / "b"]


@pytest.fixture
def trainer(capsys: pytest.CaptureFixture[str]) -> Trainer:
    return Trainer(capsys)


def mixed(sets: Sequence[Path], *weights: object) -> Any:
    return "+".join(f"{path}*{weight}" for path, weight in zip(sets, weights, strict=True))


def epochs_told(log: str) -> list[str]:
    return [line.partition(": ")[2] for line in log.splitlines() if " epochs" in line]


def test_epochs_of_each_source_are_told_at_start_on_the_way_and_at_the_end(trainer, sets, tmp_path):
    examples = [json.loads((path / "manifest.json").read_text())["totals"]["examples"] for path in sets]
    outcome = trainer(*words(mixed(sets, 0.75, 0.25), tmp_path / "run", "--checkpoint-every=5"))
    assert outcome.status == 0, outcome.err
    a, b = sets

    def epochs(update: int) -> str:
        taken = update * 4 * 3 // 4, update * 4 // 4
        each = (number / size for number, size in zip(taken, examples, strict=True))
        return ", ".join(f"{path} {number:.2f} epochs" for path, number in zip(sets, each, strict=True))

    assert f"trainer: mixture of {a} 75.00%, {b} 25.00% of the examples" in outcome.err
    wanted = [f"by update 10: {epochs(10)}", *(f"after update {step}: {epochs(step)}" for step in (5, 10))]
    assert epochs_told(outcome.err) == wanted


def test_a_plain_union_tells_no_epochs(trainer, sets, tmp_path):
    outcome = trainer(*words("+".join(map(str, sets)), tmp_path / "run", "--steps=3"))  # type: ignore[arg-type]
    assert outcome.status == 0, outcome.err
    assert epochs_told(outcome.err) == []


@pytest.mark.parametrize(
    "form",
    [
        (),
        pytest.param(("--bins=2",), marks=pytest.mark.thorough),
        pytest.param(("--pack-on-load", "--pack-window=50"), marks=pytest.mark.thorough),
        pytest.param(("--masking=dynamic", "--rows"), marks=pytest.mark.thorough),
    ],
)
def test_resumed_is_the_same_as_never_stopped(trainer, sets, tmp_path, form):
    assert trainer(*words(mixed(sets, 0.7, 0.3), tmp_path / "whole", "--steps=6", *form)).status == 0
    outcome = trainer(*words(mixed(sets, 7, 3), tmp_path / "cut", "--steps=6", "--steps-this-run=4", *form))
    assert outcome.status == 0, outcome.err
    outcome = trainer(*words(mixed(sets, 70, 30), tmp_path / "cut", "--steps=6", "--resume", *form))
    assert outcome.status == 0, outcome.err
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    assert tensors(tmp_path / "cut", 6) == tensors(tmp_path / "whole", 6)


@pytest.mark.thorough
def test_two_killed_workers_go_on_to_the_bit(sets, tmp_path, monkeypatch):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    more = (mixed(sets, 0.7, 0.3), "--masking=dynamic", "--steps=60", "--checkpoint-every=25")
    run = [words(more[0], place, *more[1:]) for place in (whole, cut)]
    outcome = start_workers("torchrun", 2, *run[0])
    assert outcome.status == 0, outcome.err
    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps({"what": "kill", "rank": 0, "update": 57}))
    assert start_workers("torchrun", 2, *run[1]).status != 0
    assert list(find_checkpoints(str(cut))) == [25, 50]
    monkeypatch.delenv("TRAINER_ACCIDENT")
    assert start_workers("torchrun", 2, *run[1], "--resume").status == 0
    assert losses(cut) == losses(whole)
    assert tensors(cut, 60) == tensors(whole, 60)


@pytest.mark.thorough
def test_a_killed_run_goes_on_to_the_bit(trainer, sets, tmp_path, monkeypatch):
    run = ("--checkpoint-every=5", "--bins=2")
    assert start_workers("alone", 1, *words(mixed(sets, 2, 1), tmp_path / "whole", *run)).status == 0
    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps({"what": "kill", "rank": 0, "update": 8}))
    cut = words(mixed(sets, 2, 1), tmp_path / "cut", *run)
    assert start_workers("alone", 1, *cut).status == -signal.SIGKILL
    monkeypatch.delenv("TRAINER_ACCIDENT")
    assert start_workers("alone", 1, *cut, "--resume").status == 0
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    assert tensors(tmp_path / "cut", 10) == tensors(tmp_path / "whole", 10)


def test_a_resume_with_other_weights_is_refused(trainer, sets, tmp_path):
    assert trainer(*words(mixed(sets, 7, 3), tmp_path / "run", "--steps=3")).status == 0
    outcome = trainer(*words(mixed(sets, 6, 4), tmp_path / "run", "--steps=4", "--resume"))
    refuse(outcome, 1, "belongs to another run: its data is", "*7+", "*6+", "another order of the examples")


@pytest.mark.parametrize(
    ("weights", "more", "said"),
    [
        (("*0.7", ""), (), "has no weight; give each dataset one, as A*0.7+B*0.3"),
        (("*0", "*1"), (), "its weight is 0, expected a positive number"),
        (("*-1", "*1"), (), "its weight is -1, expected a positive number"),
        (("*1", "*2"), ("--masking=modernbert",), "masking modernbert has its own order; unite them as A+B"),
    ],
)
def test_a_mixture_that_cannot_be_is_refused_in_one_line(trainer, sets, tmp_path, weights, more, said):
    paths = "+".join(f"{path}{weight}" for path, weight in zip(sets, weights, strict=True))
    outcome = trainer(*words(paths, tmp_path / "run", *more))  # type: ignore[arg-type]
    assert outcome.status == 2
    assert len(errors(outcome)) == 1
    assert said in errors(outcome)[0]


def test_data_to_evaluate_on_have_no_weights(trainer, sets, tmp_path):
    run = words(sets[0], tmp_path / "run", f"--eval-data={mixed(sets, 1, 2)}")
    refuse(trainer(*run), 2, "data to evaluate on have no weights; give them as A+B")


@pytest.mark.thorough
def test_masks_at_load_are_those_of_each_source_alone_in_its_own_epoch(sets):
    config = Config.of(train_data=mixed(sets, 1, 3), masking="dynamic", seed=42)
    data = prepare_for_training(config, open_configured(config, config.data.train_data))
    rows = find_rows(config, data)
    loader = Loader(
        rows, form=make_form(rows, batch_size=8, padded=True), batch_size=8, seed=42, open_files=2
    )
    order = MixedOrder(data.file_rows, sources=data.sources, seed=42, open_files=2)
    masked = {
        (path, epoch): list(bertdata.open_dataset(path).masked(seed=42, epoch=epoch))
        for path in sets
        for epoch in range(3)
    }
    first_of_b, before, position, seen = data.sources[0].shards, data.examples_before, Position(), set()
    for _ in range(70):
        wanted = Counter[str]()
        for part in order.find(position, np.arange(8)):
            path = sets[part.file >= first_of_b]
            for row in part.rows.tolist():
                wanted[str(masked[path, part.epoch][before[part.file] + row].ids)] += 1
                seen.add((path, part.epoch))
        update = next(loader)
        (batch,) = update.batches
        own = zip(batch.input_ids, batch.attention_mask, strict=True)
        assert Counter(str(ids[used > 0].tolist()) for ids, used in own) == wanted
        position = update.position
    loader.close()
    assert {(sets[1], 2), (sets[0], 0)} <= seen
