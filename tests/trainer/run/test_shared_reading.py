"""Runs on a dataset of many files, of which each worker reads its own."""

import json
from pathlib import Path

import pytest

from tests.support.training_runs import losses, refuse, start_workers, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state

FILES = 12

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


def test_a_run_records_its_streams_and_goes_on_with_them(trainer, many, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    outcome = trainer(*words(many, whole))
    assert outcome.status == 0, outcome.err
    assert "reading 12 of 12 files at the same time, in chunks of 2048 rows\n" in outcome.err + outcome.out
    assert (state_of(whole, 10).open_files, state_of(whole, 10).chunk_rows) == (FILES, 2048)
    assert trainer(*words(many, cut), "--steps-this-run=4").status == 0
    assert trainer(*words(many, cut), "--resume").status == 0
    assert losses(cut) == losses(whole)
    assert tensors(cut, 10) == tensors(whole, 10)
    # a number of open files means whole files, which is another order even for the same number
    said = "its chunk_rows is 2048, this one's 0; its position belongs to another order"
    refuse(trainer(*words(many, cut), "--resume", "--open-files=12", "--steps=12"), 1, said)
    said = "its open_files is 12, this one's 8; its position belongs to another order"
    refuse(trainer(*words(many, cut), "--resume", "--open-files=8", "--steps=12"), 1, said)


def test_a_run_with_8_open_files_goes_on_with_them_unless_a_flag_contradicts(trainer, many, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert trainer(*words(many, whole, "--open-files=8")).status == 0
    assert trainer(*words(many, cut, "--open-files=8"), "--steps-this-run=4").status == 0
    # make the checkpoint one of an earlier version, whose default was 8 and which knew no chunks
    place = find_checkpoints(str(cut))[4] / "state.json"
    values = json.loads(place.read_text())
    assert (values["open_files"], values["chunk_rows"]) == (8, 0)
    assert trainer(*words(many, cut), "--resume").status == 0
    assert (state_of(cut, 10).open_files, state_of(cut, 10).chunk_rows) == (8, 0)
    assert losses(cut) == losses(whole)
    assert tensors(cut, 10) == tensors(whole, 10)


def test_two_workers_train_the_updates_of_one(trainer, many, tmp_path):
    """Equal global batches are equal updates, and the log says which files each worker reads."""
    alone, both = tmp_path / "alone", tmp_path / "both"
    assert trainer(*words(many, alone, "--accumulation=2", "--batch-size=32")).status == 0
    outcome = start_workers("torchrun", 2, *words(many, both, "--batch-size=32"))
    assert outcome.status == 0, outcome.err
    assert "in chunks of 2048 rows; each of the 2 workers reads all of them" in outcome.err + outcome.out
    for one, two in zip(losses(alone), losses(both), strict=True):
        assert one["mlm_loss"] == pytest.approx(two["mlm_loss"], rel=1e-5)


@pytest.mark.parametrize(
    "more", [("--bins=2", "--rows"), ("--pack-on-load",)], ids=["bins", "packed while loading"]
)
def test_rows_that_come_from_all_files_keep_whole_files(trainer, many, tmp_path, more):
    assert trainer(*words(many, tmp_path / "run", "--steps=3", "--warmup=0", *more)).status == 0
    assert (state_of(tmp_path / "run", 3).open_files, state_of(tmp_path / "run", 3).chunk_rows) == (8, 0)
