"""Runs on streams end, and save, only when the files that they used are compared with their md5s."""

import os
import shutil
import signal
import time
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from bertdata.dataset.reader import open_dataset
from bertdata.shards.framing import find_record_starts
from tests.support.held_checks import count_updates, hold_checks
from tests.support.training_runs import errors, losses, refuse, start_workers, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state
from trainer.config.sections.data import DataSection
from trainer.data import file_checks
from trainer.data.loader import make_order
from trainer.data.order import Position
from trainer.data.reading import choose_reading
from trainer.model.headed import BertForPreTraining

FILES = 12
ROWS = 4  # of one file, because a stream gives 1/512 of a chunk of 2,048 rows in its turn
STEPS = 10

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def sets(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The sample corpus in 12 shards, by their format."""
    from bertdata.cli.main import main

    made = {}
    documents = [one for path in corpus for one in path.read_text().split("\n\n") if one.strip()]
    for container in ("tfrecord", "hdf5"):
        place = tmp_path_factory.mktemp(container)
        parts = [place / f"part-{number:05}" for number in range(FILES)]
        for number, part in enumerate(parts):
            part.write_text("\n\n".join(documents[number::FILES]) + "\n\n")
        sizes = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=40")
        made_of = (f"--vocab={small_vocabulary_file}", f"--format={container}", "--workers=1")
        assert main(["create", *map(str, parts), f"--output={place / 'set'}", *made_of, *sizes]) == 0
        made[container] = place / "set"
    return made


@pytest.fixture(params=["tfrecord", "hdf5"])
def many(request: pytest.FixtureRequest, sets: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the shards that a test may damage."""
    return Path(shutil.copytree(sets[request.param], tmp_path / "set"))


def run_of(dataset: Path, place: Path, *more: object) -> list[str]:
    return words(dataset, place, f"--batch-size={ROWS}", f"--steps={STEPS}", *more)


def list_used(dataset: Path, updates: int = STEPS) -> list[Path]:
    """The files whose rows are used in the first updates, in the order of their first uses.

    The first 4,096 examples are decoded before the first update, to measure them. Their files, which are
    compared then, are left out.
    """
    data = open_dataset(str(dataset))
    reading = choose_reading("auto", len(data.shards), data.layout.max_seq_length, is_shareable=True)
    order = make_order(data, DataSection().seed, reading)
    _, files, _ = order.locate(Position(0, 0), np.arange(updates * ROWS))
    is_measured = [before < 4096 for before in data.examples_before]
    return [Path(data.shards[file].path) for file in dict.fromkeys(files.tolist()) if not is_measured[file]]


def damage(path: Path) -> None:
    """Change what a file says, in a way that only its md5 shows."""
    if path.suffix == ".hdf5":
        with h5py.File(path, "r+") as file:
            labels = file["next_sentence_labels"].id
            mask, stored = labels.read_direct_chunk((0,))
            values = bytearray(zlib.decompress(stored))
            values[0] ^= 1
            changed = zlib.compress(bytes(values), 4)
            assert len(changed) == len(stored)  # or the file would have another size
            labels.write_direct_chunk((0,), changed, mask)
        return
    data = path.read_bytes()
    with path.open("rb") as records:
        starts = list(find_record_starts(records, path.name))
    path.write_bytes(b"".join(reversed([data[start:end] for start, end in pairwise(starts)])))


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """A function after whose call files can be read for their md5s only when a condition is met."""

    def hold(condition: Callable[[], object]) -> None:
        monkeypatch.setattr(file_checks, "compute_file_md5s", hold_checks(condition))

    return hold


def send_in_update(monkeypatch: pytest.MonkeyPatch, update: int, number: signal.Signals) -> None:
    """Let the process send itself a signal in an update, which is completed."""
    forward, passes = BertForPreTraining.forward, list[int]()

    def interrupted(self: BertForPreTraining, *arguments: Any, **options: Any) -> Any:
        passes.append(1)
        if len(passes) == update:
            os.kill(os.getpid(), number)
        return forward(self, *arguments, **options)

    monkeypatch.setattr(BertForPreTraining, "forward", interrupted)


def test_a_run_that_ends_before_its_files_are_compared_waits_and_finds_the_damage(
    trainer, many, tmp_path, slow
):
    last, run = list_used(many)[-1], tmp_path / "run"
    damage(last)
    slow(lambda: count_updates(run) == STEPS)
    refuse(trainer(*run_of(many, run)), 1, f"{last}: found md5")
    assert not find_checkpoints(str(run))


@pytest.mark.parametrize("many", ["tfrecord"], indirect=True)
def test_a_checkpoint_waits_for_the_files_that_were_used(trainer, many, tmp_path, slow):
    """The damaged file is used before the first checkpoint."""
    damage(list_used(many, updates=4)[0])
    run = tmp_path / "run"
    slow(lambda: count_updates(run) == 4)
    refuse(trainer(*run_of(many, run, "--checkpoint-every=4", "--keep-checkpoints=9")), 1, "found md5")
    assert not find_checkpoints(str(run))
    assert count_updates(run) == 4


@pytest.mark.parametrize("many", ["tfrecord"], indirect=True)
def test_an_intact_run_ends_when_the_files_have_come(trainer, many, tmp_path, slow):
    prompt, late = tmp_path / "prompt", tmp_path / "late"
    assert trainer(*run_of(many, prompt)).status == 0
    ended = list[float]()

    def is_later() -> bool:
        if count_updates(late) == STEPS:
            ended.append(time.monotonic())
        return bool(ended) and ended[-1] - ended[0] > 6

    slow(is_later)
    outcome = trainer(*run_of(many, late))
    assert outcome.status == 0, outcome.err
    assert "waiting until " in outcome.err
    assert read_state(find_checkpoints(str(late))[STEPS]).unchecked_files == []
    assert tensors(late, STEPS) == tensors(prompt, STEPS)


@pytest.mark.parametrize("is_damaged", [False, True], ids=["intact", "damaged"])
def test_a_stopped_run_does_not_wait_and_the_resumed_one_compares(
    trainer, many, tmp_path, monkeypatch, slow, is_damaged
):
    run, whole = tmp_path / "run", tmp_path / "whole"
    used = list_used(many, updates=5)
    if is_damaged:
        damage(used[0])
    else:
        assert trainer(*run_of(many, whole)).status == 0
    slow(lambda: False)
    send_in_update(monkeypatch, 5, signal.SIGTERM)
    outcome = trainer(*run_of(many, run))
    monkeypatch.undo()
    assert outcome.status == 0, outcome.err
    assert "stopped after update 5 as requested; --resume continues" in outcome.err
    names = read_state(find_checkpoints(str(run))[5]).unchecked_files
    assert names == sorted(names)
    assert {path.name for path in used} <= set(names)  # with those that were measured
    assert len(names) == 5
    assert f"{len(names)} data files ({names[0]}, " in outcome.err
    assert "are not compared with the md5s in the manifest yet; --resume compares them" in outcome.err
    again = trainer(*run_of(many, run), "--resume")
    assert "not compared with the md5s in the manifest by the run before; comparing them first" in again.err
    if is_damaged:
        refuse(again, 1, f"{used[0]}: found md5")
        assert list(find_checkpoints(str(run))) == [5]
        return
    assert again.status == 0, again.err
    assert read_state(find_checkpoints(str(run))[STEPS]).unchecked_files == []
    assert losses(run) == losses(whole)
    assert tensors(run, STEPS) == tensors(whole, STEPS)


@pytest.mark.parametrize("many", ["tfrecord"], indirect=True)
def test_a_run_that_was_stopped_in_its_last_update_is_compared_by_the_next(
    trainer, many, tmp_path, monkeypatch, slow
):
    run = tmp_path / "run"
    slow(lambda: False)
    send_in_update(monkeypatch, STEPS, signal.SIGTERM)
    outcome = trainer(*run_of(many, run))
    monkeypatch.undo()
    assert outcome.status == 0, outcome.err
    assert f"stopped after update {STEPS} as requested" in outcome.err
    assert read_state(find_checkpoints(str(run))[STEPS]).unchecked_files
    again = trainer(*run_of(many, run), "--resume")
    assert again.status == 0, again.err
    assert f"nothing is left to do after update {STEPS}" in again.err
    assert read_state(find_checkpoints(str(run))[STEPS]).unchecked_files == []


@pytest.mark.parametrize("many", ["tfrecord"], indirect=True)
def test_a_checkpoint_that_a_signal_asks_for_does_not_wait_and_the_last_one_does(
    trainer, many, tmp_path, monkeypatch, slow
):
    run = tmp_path / "run"
    slow(lambda: bool(find_checkpoints(str(run))))
    send_in_update(monkeypatch, 3, signal.SIGUSR1)
    outcome = trainer(*run_of(many, run))
    assert outcome.status == 0, outcome.err
    made = find_checkpoints(str(run))
    assert list(made) == [3, STEPS]
    assert {path.name for path in list_used(many, updates=3)} <= set(read_state(made[3]).unchecked_files)
    assert read_state(made[STEPS]).unchecked_files == []


@pytest.mark.parametrize("many", ["tfrecord"], indirect=True)
def test_a_phase_2_warns_of_files_that_phase_1_left(trainer, many, tmp_path, monkeypatch, slow):
    run = tmp_path / "run"
    slow(lambda: False)
    send_in_update(monkeypatch, 5, signal.SIGTERM)
    assert trainer(*run_of(many, run)).status == 0
    monkeypatch.undo()
    outcome = trainer(*run_of(many, run, "--phase2", "--phase1-end-step=5", "--steps=1", "--warmup=0"))
    assert outcome.status == 0, outcome.err
    assert "warning: " in outcome.err
    assert (
        f"not compared with the md5s in the manifest; bertdata verify-md5 {many} compares them" in outcome.err
    )


@pytest.mark.parametrize("many", ["tfrecord"], indirect=True)
def test_convert_predict_and_evaluate_warn_of_files_that_the_run_left(
    trainer, many, tmp_path, monkeypatch, slow
):
    run, whole = tmp_path / "run", tmp_path / "whole"
    assert trainer(*run_of(many, whole, "--steps=1", "--warmup=0")).status == 0
    slow(lambda: False)
    send_in_update(monkeypatch, 5, signal.SIGTERM)
    assert trainer(*run_of(many, run)).status == 0
    monkeypatch.undo()
    checkpoint = find_checkpoints(str(run))[5]
    names = read_state(checkpoint).unchecked_files
    warning = (
        f"trainer: warning: {checkpoint}: was saved before all data were compared: {len(names)} "
        f"data files ({', '.join(names)}) are not compared with the md5s in the manifest; bertdata "
        f"verify-md5 {many} compares them\n"
    )
    commands = {
        "convert": lambda run: ("convert", run, tmp_path / f"exported-{run.name}"),
        "predict": lambda run: ("predict", run, "a [MASK] b"),
        "evaluate": lambda run: ("evaluate", f"--output-dir={run}", f"--eval-data={many}"),
        "a new start": lambda run: run_of(
            many, tmp_path / f"after-{run.name}", "--steps=1", "--warmup=0", f"--start-from-ckpt={run}"
        ),
    }
    for name, command in commands.items():
        for trained, count in ((run, 1), (whole, 0)):
            outcome = trainer(*command(trained))
            assert outcome.status == 0, (name, outcome.err)
            assert outcome.err.count(warning) == count, (name, outcome.err)
            assert outcome.err.count("not compared") == count, (name, outcome.err)


@pytest.mark.parametrize("many", ["hdf5"], indirect=True)
def test_two_workers_wait_for_the_files_of_each(many, tmp_path, monkeypatch):
    last = list_used(many, updates=2 * STEPS)[-1]
    damage(last)
    monkeypatch.setenv("TRAINER_CHECKS_AFTER", f"{STEPS} {tmp_path / 'run'}")
    outcome = start_workers("torchrun", 2, *run_of(many, tmp_path / "run"))
    assert outcome.status == 1, outcome.err
    assert any(f"{last}: found md5" in line for line in errors(outcome)), outcome.err
    assert not find_checkpoints(str(tmp_path / "run"))
