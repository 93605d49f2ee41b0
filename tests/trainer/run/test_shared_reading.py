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


def test_a_run_records_its_streams_and_goes_on_with_them(trainer, many, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    outcome = trainer(*words(many, whole, STREAMS))
    assert outcome.status == 0, outcome.err
    assert "reading 12 of 12 files at the same time, in chunks of 2048 rows\n" in outcome.err + outcome.out
    assert (state_of(whole, 10).open_files, state_of(whole, 10).chunk_rows) == (FILES, 2048)
    assert trainer(*words(many, cut, STREAMS), "--steps-this-run=4").status == 0
    assert trainer(*words(many, cut, STREAMS), "--resume").status == 0
    assert losses(cut) == losses(whole)
    assert tensors(cut, 10) == tensors(whole, 10)
    # a number of open files means whole files, which is another order even for the same number
    for number, more in ((12, ["--open-files=12"]), (8, [])):
        said = (
            f"its open_files is auto (12 streams), this one's {number}; its position belongs to another order"
        )
        refuse(trainer(*words(many, cut), "--resume", "--steps=12", *more), 1, said)


def test_the_default_is_8_whole_files_and_auto_goes_on_with_them(trainer, many, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    outcome = trainer(*words(many, whole))
    assert outcome.status == 0, outcome.err
    assert "at the same time" not in outcome.err + outcome.out
    assert trainer(*words(many, cut, "--open-files=8"), "--steps-this-run=4").status == 0
    values = json.loads((find_checkpoints(str(cut))[4] / "state.json").read_text())
    assert (values["open_files"], values["chunk_rows"]) == (8, 0)
    outcome = trainer(*words(many, cut, STREAMS), "--resume")
    assert outcome.status == 0, outcome.err
    assert "reading 8 files at the same time, each whole\n" in outcome.err + outcome.out
    assert (state_of(cut, 10).open_files, state_of(cut, 10).chunk_rows) == (8, 0)
    assert losses(cut) == losses(whole)
    assert tensors(cut, 10) == tensors(whole, 10)


def test_auto_tells_how_many_files_a_small_set_has(trainer, training_set, tmp_path):
    outcome = trainer(*words(training_set, tmp_path, "--open-files=auto", "--steps=1", "--warmup=0"))
    assert outcome.status == 0, outcome.err
    assert "reading 3 files at the same time, each whole\n" in outcome.err + outcome.out


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
