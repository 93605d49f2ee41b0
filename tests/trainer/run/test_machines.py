"""Output directories of several machines: one rule for all, and a resume wherever the checkpoint lies."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.support.meeting import Ended, meet
from trainer.checkpoints.checkpoint import MOMENTS, STATE, WEIGHTS, State, find_checkpoints, save_checkpoint
from trainer.checkpoints.reading import read_state, read_tensors
from trainer.config.settings import Config
from trainer.run.copying import copy_features
from trainer.run.machines import share_checkpoint

STATE_OF_RUN = State(
    data="d1",
    seed=7,
    open_files=4,
    optimiser="lamb-nvidia",
    model={"hidden_size": 4, "num_attention_heads": 2, "vocab_size": 8},
    config={"steps": 10},
)


def make_run(place: Path, *steps: int, scale: float = 1.0, **changes: object) -> Path:
    for step in steps:
        weights = {"a": torch.arange(6.0).reshape(2, 3) * step * scale}
        moments = {f"exp_avg/{name}": tensor * 2 for name, tensor in weights.items()}
        save_checkpoint(str(place), replace(STATE_OF_RUN, step=step, **changes), weights, moments, 9)
    return place


def begin(places: list[Path], *, local_ranks: list[int] | None = None, **keys: object) -> list[Ended]:
    """Begin a run on machines with these output directories. Their results: the step to resume at."""
    configs = [Config.of(output_dir=str(place), generated_data=True, **keys) for place in places]
    return meet(
        configs, lambda runtime: share_checkpoint(runtime, [runtime.config])[0].start.resume_step, local_ranks
    )


def files_of(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def refused(places: list[Path], status: int, capsys: pytest.CaptureFixture[str], **keys: object) -> str:
    """The line that ends all workers. Nothing in the directories has changed."""
    before = [files_of(place) for place in places]
    assert [one.status for one in begin(places, **keys)] == [status] * len(places)
    assert [files_of(place) for place in places] == before
    line = capsys.readouterr().err.splitlines()[-1]
    assert "error: " in line
    return line


def test_a_new_run_is_refused_where_another_machine_holds_a_run(tmp_path, capsys):
    places = [tmp_path / "w0", make_run(tmp_path / "w1", 5, 20)]
    line = refused(places, 2, capsys)
    assert f"worker 1's {places[1]}: is in use: holds checkpoints; give --resume" in line
    (places[1] / "checkpoints").rename(places[1] / "kept")
    (places[1] / "training.csv").touch()
    assert "holds training.csv" in refused(places, 2, capsys)


def test_a_new_run_takes_directories_that_are_free_or_not_there(tmp_path):
    (tmp_path / "w0").mkdir()
    assert begin([tmp_path / "w0", tmp_path / "w1"]) == [Ended()] * 2


def test_other_workers_of_a_machine_do_not_look(tmp_path):
    places = [tmp_path / "w0", make_run(tmp_path / "w1", 5)]
    assert begin(places, local_ranks=[0, 1]) == [Ended()] * 2


@pytest.mark.parametrize("holder", [0, 1, 2])
def test_a_resume_gives_the_newest_checkpoint_to_the_machines_that_lack_it(tmp_path, capsys, holder):
    places = [tmp_path / f"w{number}" for number in range(3)]
    make_run(places[holder], 5, 10, 20)
    make_run(places[(holder + 1) % 3], 5, 10)  # it was lost before the last one
    assert begin(places, resume=True) == [Ended()] * 3
    others = ", ".join(str(number) for number in range(3) if number != holder)
    line = f"checkpoint 20 is worker {holder}'s: giving it to worker {others}"
    assert line in capsys.readouterr().err
    expected = files_of(places[holder] / "checkpoints" / "step-00000020")
    for place in places:
        path = find_checkpoints(str(place))[20]
        assert files_of(path) == expected
        state = read_state(path)
        assert torch.equal(read_tensors(path, state)["a"], torch.arange(6.0).reshape(2, 3) * 20)
        assert list(read_tensors(path, state, MOMENTS)) == ["exp_avg/a"]
        assert sorted(path.name for path in place.iterdir()) == ["checkpoints"]


def test_large_files_come_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("trainer.run.copying._PIECE_BYTES", 10)  # no multiple of four
    places = [tmp_path / "w0", make_run(tmp_path / "w1", 20)]
    begin(places, resume=True)
    assert files_of(places[0]) == files_of(places[1])


def test_features_that_one_machine_has_made_are_given_to_the_others(tmp_path):
    places = [tmp_path / name for name in ("w0", "w1", "w2")]
    made = places[0] / "features" / "squad-1"
    made.mkdir(parents=True)
    (made / "lengths").mkdir()
    for name, text in (("manifest.json", "{}"), ("features.tfrecord", "12345"), ("lengths/features", "")):
        (made / name).write_text(text)
    shutil.copytree(places[0], places[2])  # it has them already
    configs = [Config.of(output_dir=str(place)) for place in places]
    ended = meet(configs, lambda runtime: copy_features(runtime, str(made)))
    assert [one.result for one in ended] == [str(place / "features" / "squad-1") for place in places]
    assert files_of(places[1]) == files_of(places[0])
    assert meet(configs, lambda runtime: copy_features(runtime, None)) == [Ended()] * 3


def test_an_update_to_resume_at_is_taken_from_any_machine(tmp_path):
    places = [make_run(tmp_path / "w0", 15, 20), make_run(tmp_path / "w1", 5, 15, 20)]
    begin(places, resume_step=5)
    assert list(find_checkpoints(str(places[0]))) == [5, 15, 20]


def test_an_update_that_no_machine_holds_is_refused_with_what_each_holds(tmp_path, capsys):
    places = [make_run(tmp_path / "w0", 15, 20), make_run(tmp_path / "w1", 5)]
    line = refused(places, 2, capsys, resume_step=7)
    held = f"worker 0's {places[0]}: 15, 20; worker 1's {places[1]}: 5"
    assert f"no machine holds checkpoint 7; there are {held}" in line


def test_machines_that_hold_different_runs_are_refused(tmp_path, capsys):
    places = [make_run(tmp_path / "w0", 5, 20), make_run(tmp_path / "w1", 5, 20, scale=2)]
    said = f"worker 0's {places[0]} and worker 1's {places[1]} hold a checkpoint 5 of different runs"
    assert said in refused(places, 2, capsys, resume=True)
    shutil.rmtree(places[1])
    make_run(places[1], 30, seed=8)
    assert "hold checkpoints of different runs" in refused(places, 2, capsys, resume=True)


def test_one_directory_of_two_machines_is_left_as_it_is(tmp_path):
    place = make_run(tmp_path / "shared", 5, 20)
    before = files_of(place)
    assert begin([place, place], resume=True) == [Ended()] * 2
    assert files_of(place) == before


def test_a_damaged_copy_is_replaced_by_another_machines(tmp_path):
    places = [make_run(tmp_path / name, 15, 20) for name in ("w0", "w1")]
    (places[0] / "checkpoints/step-00000020" / STATE).write_text("")
    begin(places, resume=True)
    assert files_of(places[0]) == files_of(places[1])


CUTS = {
    "an empty directory": lambda path: [file.unlink() for file in path.iterdir()],
    "an empty state": lambda path: (path / STATE).write_text(""),
    "empty weights": lambda path: (path / WEIGHTS).write_bytes(b""),
    "weights cut short": lambda path: (path / WEIGHTS).write_bytes((path / WEIGHTS).read_bytes()[:-4]),
    "no moments": lambda path: (path / MOMENTS).unlink(),
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_newest_checkpoint_that_is_cut_names_the_one_before(tmp_path, capsys, cut):
    """One machine alone: the error is raised, with no one else to tell."""
    place = make_run(tmp_path / "run", 10, 15, 20)
    path = find_checkpoints(str(place))[20]
    cut(path)
    cut(find_checkpoints(str(place))[15])
    line = refused([place, place], 1, capsys, resume=True)
    assert str(path) in line
    assert "; --resume-step 10 continues from the newest one that is whole, as --resume" in line
    assert line.endswith("--resume --resume-skips-damaged does by itself")
    assert begin([place, place], resume_step=10) == [Ended(result=10)] * 2


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_job_may_ask_for_the_newest_whole_checkpoint(tmp_path, capsys, cut):
    place = make_run(tmp_path / "run", 10, 15, 20)
    cut(find_checkpoints(str(place))[20])
    assert begin([place, place], resume=True, resume_skips_damaged=True) == [Ended(result=15)] * 2
    assert "warning: checkpoint 20 is passed over: " in capsys.readouterr().err


def test_a_changed_byte_is_damage_too_where_the_newest_whole_one_is_asked_for(tmp_path):
    places = [make_run(tmp_path / name, 15, 20) for name in ("w0", "w1")]
    for place in places:
        file = find_checkpoints(str(place))[20] / WEIGHTS
        file.write_bytes(file.read_bytes()[:-1] + b"\x01")
    assert begin(places, resume=True, resume_skips_damaged=True) == [Ended(result=15)] * 2


def test_nothing_whole_is_told(tmp_path, capsys):
    place = make_run(tmp_path / "run", 20)
    CUTS["empty weights"](find_checkpoints(str(place))[20])
    keys = {"resume": True, "resume_skips_damaged": True}
    assert "none of its checkpoints is whole" in refused([place, place], 1, capsys, **keys)
    assert "no earlier checkpoint is whole" in refused([place, place], 1, capsys, resume=True)


def test_a_resume_of_a_directory_that_is_not_there_is_said(tmp_path, capsys):
    make_run(tmp_path / "large", 20)
    assert begin([tmp_path / "small"] * 2, resume=True) == [Ended()] * 2
    said = f"warning: {tmp_path / 'small'}: holds no run to resume: a new one begins at update 0"
    assert said in capsys.readouterr().err


def test_a_resume_of_a_name_that_is_nearly_another_runs_is_refused(tmp_path, capsys):
    run = make_run(tmp_path / "large", 20)
    line = refused([tmp_path / "lagre"] * 2, 2, capsys, resume=True)
    assert f"{tmp_path / 'lagre'}: holds no run to resume, but {run} does; give --output-dir {run}" in line
    assert not (tmp_path / "lagre").exists()
    assert begin([tmp_path / "lagre"] * 2) == [Ended()] * 2
