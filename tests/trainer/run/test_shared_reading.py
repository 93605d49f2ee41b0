"""Runs on a dataset of many files, of which each worker reads its own."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from bertdata.io import storage
from bertdata.lineages.run_state import compute_state_md5
from tests.support.training_runs import losses, refuse, start_workers, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state
from trainer.run import data_cache

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
    refuse(trainer(*words(many, cut), "--resume", "--steps=12", "--bins=2", "--rows"), 1, "its order is ")
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


def test_streams_with_other_turns_are_another_order(trainer, many, tmp_path):
    """In a development version, a stream gave 32 rows in its turn, and its checkpoints do not say so."""
    assert trainer(*words(many, tmp_path, "--steps-this-run=4")).status == 0
    path = find_checkpoints(str(tmp_path))[4] / "state.json"
    state = json.loads(path.read_text())
    order, turns = state["order"].split(", streams of ")
    assert turns == "4 in a turn"
    state = {name: value for name, value in state.items() if name != "md5"} | {"order": order}
    path.write_text(json.dumps({**state, "md5": compute_state_md5(state)}))
    said = (
        f"its order is {order}, this one's {order}, streams of 4 in a turn; its position belongs to another"
    )
    refuse(trainer(*words(many, tmp_path), "--resume"), 1, said)


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


def test_weighted_datasets_have_8_whole_files_each(trainer, many, tmp_path):
    other = shutil.copytree(many, tmp_path / "other")
    data = f"--train-data={many}*0.5+{other}*0.5"
    outcome = trainer(*words(None, tmp_path / "run", "--steps=2", "--warmup=0", data))
    assert outcome.status == 0, outcome.err
    assert "reading 16 of 24 files at the same time, each whole\n" in outcome.err


def test_compiling_needs_no_checkpoint_of_the_run(trainer, many, tmp_path, monkeypatch):
    """A machine that only compiles has not the checkpoint that the training will resume."""
    monkeypatch.setattr("torch.compile", lambda function, **_: function)
    outcome = trainer(*words(many, tmp_path / "run", "--resume-step=4", "--compile-only"))
    assert outcome.status == 0, outcome.err
    assert "nothing was trained" in outcome.err


# Many files in a bucket


@pytest.fixture
def bucket(many: Path) -> Iterator[str]:
    """A bucket that holds the 12 shards."""
    files = fsspec.filesystem("memory")
    for path in many.rglob("*"):
        if path.is_file():
            files.pipe(f"/many/set/{path.relative_to(many)}", path.read_bytes())
    yield "memory://many/set"
    files.rm("/many", recursive=True)


def count_bytes(many: Path) -> int:
    return sum(path.stat().st_size for path in many.rglob("*.tfrecord"))


def test_streams_from_a_bucket_say_how_much_is_there_at_once(trainer, many, bucket, tmp_path, monkeypatch):
    run = words(None, tmp_path / "run", "--steps=3", "--warmup=0", f"--train-data={bucket}")
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    assert f"{bucket}: this machine downloads the files that it reads, up to " in outcome.err
    assert " at the same time; with --cache-dir DIR, the machine downloads each file once\n" in outcome.err
    local = tmp_path / "local"
    assert trainer(*words(many, local, "--steps=3", "--warmup=0")).status == 0
    assert tensors(tmp_path / "run", 3) == tensors(local, 3)


def test_a_small_temporary_directory_is_one_line_before_the_model(
    trainer, many, bucket, tmp_path, monkeypatch
):
    monkeypatch.setattr(data_cache, "find_free_bytes", lambda place: count_bytes(many) - 1)
    run = words(None, tmp_path / "run", "--steps=3", "--warmup=0", f"--train-data={bucket}")
    small = trainer(*run)
    remedies = ("set TMPDIR to a directory on a larger disk", ", or --open-files 8, which reads fewer files")
    refuse(
        small, 1, "but the 12 files that the workers of this machine need at the same time have", *remedies
    )
    assert "building the model" not in small.err
    monkeypatch.setattr(data_cache, "find_free_bytes", lambda place: count_bytes(many))
    assert trainer(*run).status == 0


def test_a_small_cache_advises_what_the_run_can_do(trainer, many, bucket, tmp_path):
    """A run that began with streams goes on with them, so that fewer open files are no remedy for it."""
    run = words(None, tmp_path / "run", "--steps=6", "--warmup=0", f"--train-data={bucket}")
    small = ("--cache-size=0.000001", f"--cache-dir={tmp_path / 'cache'}")
    advice = ", or --open-files 8, which reads fewer files at the same time"
    said = "cache_size is 1.0 kB, but the 12 files that this machine needs at the same time have "
    refuse(trainer(*run, *small), 2, said, advice)
    assert trainer(*run, "--steps-this-run=2").status == 0
    refused = trainer(*run, "--resume", *small)
    refuse(refused, 2, said)
    assert advice not in refused.err


def test_streams_resumed_with_rows_that_have_none_are_another_run(trainer, many, bucket, tmp_path):
    run = tmp_path / "run"
    data = f"--train-data={bucket}*0.5+{many}*0.5"
    assert trainer(*words(None, run, "--steps-this-run=2", f"--train-data={bucket}")).status == 0
    refused = trainer(*words(None, run, "--resume", data, f"--cache-dir={tmp_path / 'cache'}"))
    refuse(refused, 1, "belongs to another run: its data is ")


def test_a_file_in_a_bucket_is_closed_once_it_is_copied(trainer, bucket, tmp_path, monkeypatch):
    """Its buffers would take up to 50 MB, and with streams up to 512 files are open."""
    opened, most = set[int](), [0]
    open_input = storage._RemoteInput.__init__
    close = storage._RemoteInput.close

    def note_opening(self, *rest):
        open_input(self, *rest)
        opened.add(id(self))
        most[0] = max(most[0], len(opened))

    def note_closing(self):
        opened.discard(id(self))
        close(self)

    monkeypatch.setattr(storage._RemoteInput, "__init__", note_opening)
    monkeypatch.setattr(storage._RemoteInput, "close", note_closing)
    run = words(None, tmp_path / "run", "--steps=3", "--warmup=0", f"--train-data={bucket}")
    assert trainer(*run).status == 0
    assert 0 < most[0] < FILES
    assert not opened
