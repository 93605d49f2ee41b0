"""Runs on a dataset of many files, of which each worker reads its own."""

import json
from pathlib import Path

import pytest

from tests.support.training_runs import losses, refuse, start_workers, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state

FILES = 12
STREAMS = "--open-files=auto"

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def many(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus in 12 shards."""
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("many")
    documents = [one for path in corpus for one in path.read_text().split("\n\n") if one.strip()]
    parts = []
    for number in range(FILES):
        parts.append(place / f"part-{number:05}")
        parts[-1].write_text("\n\n".join(documents[number::FILES]) + "\n\n")
    sizes = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=2")
    made = (f"--output={place / 'set'}", f"--vocab={small_vocabulary_file}", "--workers=1")
    assert main(["create", *map(str, parts), *made, *sizes]) == 0
    return place / "set"


def state_of(run: Path, number: int):
    return read_state(find_checkpoints(str(run))[number])


def test_many_files_are_streams_which_a_run_records_and_goes_on_with(trainer, many, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    outcome = trainer(*words(many, whole))
    assert outcome.status == 0, outcome.err
    assert "reading 12 of 12 files at the same time, in chunks of 2048 rows\n" in outcome.err + outcome.out
    assert (state_of(whole, 10).open_files, state_of(whole, 10).chunk_rows) == (FILES, 2048)
    assert trainer(*words(many, cut, STREAMS), "--steps-this-run=4").status == 0
    assert trainer(*words(many, cut), "--resume").status == 0
    assert losses(cut) == losses(whole)
    assert tensors(cut, 10) == tensors(whole, 10)
    # a number of open files means whole files, which is another order even for the same number
    for number in (12, 8):
        said = (
            f"its open_files is auto (12 streams), this one's {number}; its position belongs to another order"
        )
        run = trainer(*words(many, cut), "--resume", "--steps=12", f"--open-files={number}")
        refuse(run, 1, said)


def test_a_run_of_whole_files_goes_on_with_them_without_a_flag(trainer, many, tmp_path):
    """So do runs of earlier versions, whose default was 8 whole files."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    outcome = trainer(*words(many, whole, "--open-files=8"))
    assert outcome.status == 0, outcome.err
    assert trainer(*words(many, cut, "--open-files=8"), "--steps-this-run=4").status == 0
    values = json.loads((find_checkpoints(str(cut))[4] / "state.json").read_text())
    assert (values["open_files"], values["chunk_rows"]) == (8, 0)
    outcome = trainer(*words(many, cut), "--resume")
    assert outcome.status == 0, outcome.err
    assert "reading 8 of 12 files at the same time, each whole\n" in outcome.err + outcome.out
    assert (state_of(cut, 10).open_files, state_of(cut, 10).chunk_rows) == (8, 0)
    assert state_of(cut, 10).config == state_of(whole, 10).config | {"output_dir": str(cut), "resume": True}
    assert state_of(cut, 10).history == []
    assert losses(cut) == losses(whole)
    assert tensors(cut, 10) == tensors(whole, 10)


def test_a_phase_2_reads_its_own_data_as_they_need(trainer, many, tmp_path):
    run = tmp_path / "run"
    assert trainer(*words(many, run, "--open-files=8")).status == 0
    assert trainer(*words(many, run, "--phase2")).status == 0
    assert (state_of(run, 20).open_files, state_of(run, 20).chunk_rows) == (FILES, 2048)


def test_few_files_are_read_whole(trainer, training_set, tmp_path):
    outcome = trainer(*words(training_set, tmp_path, "--steps=1", "--warmup=0"))
    assert outcome.status == 0, outcome.err
    assert "at the same time" not in outcome.err + outcome.out
    assert (state_of(tmp_path, 1).open_files, state_of(tmp_path, 1).chunk_rows) == (8, 0)


@pytest.mark.parametrize("given", ["many", "Auto"])
def test_open_files_is_a_number_or_auto(trainer, many, tmp_path, given):
    said = f"open_files is '{given}', expected a number of files, or auto"
    refuse(trainer(*words(many, tmp_path / "run", f"--open-files={given}")), 2, said)


def test_two_workers_train_the_updates_of_one(trainer, many, tmp_path):
    """Equal global batches are equal updates, and the log says which files each worker reads."""
    alone, both = tmp_path / "alone", tmp_path / "both"
    assert trainer(*words(many, alone, STREAMS, "--accumulation=2", "--batch-size=32")).status == 0
    outcome = start_workers("torchrun", 2, *words(many, both, STREAMS, "--batch-size=32"))
    assert outcome.status == 0, outcome.err
    assert "in chunks of 2048 rows; each of the 2 workers reads all of them" in outcome.err + outcome.out
    for one, two in zip(losses(alone), losses(both), strict=True):
        assert one["mlm_loss"] == pytest.approx(two["mlm_loss"], rel=1e-5)


@pytest.mark.parametrize(
    "more", [("--bins=2", "--rows"), ("--pack-on-load",)], ids=["bins", "packed while loading"]
)
def test_rows_that_come_from_all_files_keep_whole_files(trainer, many, tmp_path, more):
    assert trainer(*words(many, tmp_path / "run", "--steps=3", "--warmup=0", STREAMS, *more)).status == 0
    assert (state_of(tmp_path / "run", 3).open_files, state_of(tmp_path / "run", 3).chunk_rows) == (8, 0)
