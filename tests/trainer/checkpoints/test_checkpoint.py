"""Checkpoints: they are read as written, and damaged or foreign ones are refused."""

import hashlib
import json
import os
import pickle
import shutil
import stat
from dataclasses import MISSING, astuple, fields, replace
from pathlib import Path

import pytest
import torch

from bertdata.errors import MissingInputError, StorageError
from bertdata.io.file_check import compute_file_md5
from bertdata.lineages.run_state import compute_state_md5
from schemas import load_schema
from tests.soak.retyped_states import retyped
from trainer.checkpoints import checkpoint as checkpoints
from trainer.checkpoints.checkpoint import (
    MOMENTS,
    STATE,
    WEIGHTS,
    State,
    clean_up_checkpoints,
    find_checkpoints,
    save_checkpoint,
)
from trainer.checkpoints.reading import choose_checkpoint, read_state, read_tensors
from trainer.checkpoints.resume_check import check_fits
from trainer.config.model import ModelConfig
from trainer.errors import CheckpointError

SOUND = State(
    step=3,
    applied=2,
    position=(1, 5),
    data="d1",
    seed=7,
    open_files=4,
    optimiser="lamb-nvidia",
    loss_scale={"value": 2.0, "good": 1},
    model={"hidden_size": 4, "num_attention_heads": 2, "vocab_size": 8},
    config={"steps": 10},
)
TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3).t(), "a.bias": torch.tensor([0.1, -0.0])}
FIRST = {f"exp_avg/{name}": tensor * 2 for name, tensor in TENSORS.items()}


def save(place: Path, step: int = 3, keep: int = 5, **changes: object) -> Path:
    return save_checkpoint(str(place), replace(SOUND, step=step, **changes), TENSORS, FIRST, keep)


def test_what_is_saved_comes_back(tmp_path):
    path = save(tmp_path)
    assert path == tmp_path / "checkpoints" / "step-00000003"
    state = read_state(path)
    assert replace(state, files={}, versions=SOUND.versions) == SOUND
    assert list(state.versions) == list(SOUND.versions)
    for name, saved in ((WEIGHTS, TENSORS), (MOMENTS, FIRST)):
        found = read_tensors(path, state, name)
        assert found.keys() == saved.keys()
        assert all(torch.equal(found[name], saved[name]) for name in saved)


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_all_files_of_a_checkpoint_have_the_rights_of_new_files(tmp_path, umask):
    before = os.umask(umask)
    try:
        path = save(tmp_path)
    finally:
        assert os.umask(before) == umask
    assert {stat.S_IMODE((path / name).stat().st_mode) for name in (WEIGHTS, MOMENTS, STATE)} == {
        0o666 & ~umask
    }


def test_a_checkpoint_with_the_older_name_of_open_files_is_read(tmp_path):
    path = save(tmp_path)
    values = json.loads((path / STATE).read_text())
    values["lanes"] = values.pop("open_files")
    del values["md5"]
    digest = hashlib.md5(json.dumps(values, sort_keys=True).encode()).hexdigest()
    (path / STATE).write_text(json.dumps({**values, "md5": digest}))
    assert read_state(path).open_files == SOUND.open_files


def test_a_state_from_before_a_key_of_the_model_fits_its_default(tmp_path):
    """A run of an older version can be resumed: its model is compared key by key with the run's."""
    whole = replace(SOUND, model=ModelConfig(hidden_size=16, num_attention_heads=2).as_json())
    older = {name: value for name, value in whole.model.items() if name != "tie_word_embeddings"}
    check_fits(tmp_path, replace(whole, model=older), whole)
    untied = replace(whole, model=older | {"tie_word_embeddings": False})
    with pytest.raises(CheckpointError, match="its model's tie_word_embeddings is True, this one's False"):
        check_fits(tmp_path, replace(whole, model=older), untied)


def test_only_the_last_few_of_a_phase_are_kept(tmp_path):
    for step in (1, 2, 3, 4):
        save(tmp_path, step, keep=2)
    assert list(find_checkpoints(str(tmp_path))) == [3, 4]
    for step in (1, 2, 3):
        save(tmp_path, step, keep=2, phase=2, phase_start=4)
    assert list(find_checkpoints(str(tmp_path))) == [3, 4, 6, 7]


def test_only_directories_with_a_number_are_checkpoints(tmp_path):
    folder = tmp_path / "checkpoints"
    for name in (
        "step-00000003",
        "step-123456789",
        "step-x0000001",
        "step-00000004.part",
        "step-",
        "epoch-1",
    ):
        (folder / name).mkdir(parents=True)
    found = find_checkpoints(str(tmp_path))
    assert found == {3: folder / "step-00000003", 123456789: folder / "step-123456789"}


def test_saving_again_replaces(tmp_path):
    save(tmp_path)
    assert read_state(save(tmp_path, seed=8)).seed == 8
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000003"]


def test_the_same_checkpoint_of_another_machine_never_disappears(tmp_path, monkeypatch):
    path = save(tmp_path)
    files = {name: (path / name).stat().st_ino for name in (WEIGHTS, MOMENTS, STATE)}
    looks = []

    def watched(function):
        def look(*arguments, **options):
            looks.append({name: (path / name).stat().st_ino for name in files} == files)
            try:
                return function(*arguments, **options)
            finally:
                looks.append({name: (path / name).stat().st_ino for name in files} == files)

        return look

    for owner, name in ((os, "rename"), (os, "rmdir"), (shutil, "rmtree"), (Path, "rename"), (Path, "rmdir")):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    save(tmp_path)
    assert looks
    assert all(looks)


@pytest.mark.parametrize("name", [WEIGHTS, STATE])
def test_an_incomplete_checkpoint_of_the_same_number_is_replaced(tmp_path, name):
    path = save(tmp_path)
    (path / name).write_bytes(b"half of")
    save(tmp_path)
    read(path)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000003"]


def test_an_interrupted_save_leaves_no_checkpoint(tmp_path, monkeypatch):
    save(tmp_path, 1)

    def interrupted(file, tensors):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints, "write_safetensors", interrupted)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # as after kill -9
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path, 2)
    monkeypatch.undo()
    assert list(find_checkpoints(str(tmp_path))) == [1]
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2
    clean_up_checkpoints(str(tmp_path))
    assert len(list((tmp_path / "checkpoints").iterdir())) == 1


def test_a_full_disk_is_one_error_and_no_checkpoint(tmp_path, monkeypatch):
    def full(file, tensors):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "write_safetensors", full)
    with pytest.raises(StorageError, match="step-00000003: cannot be written: .*No space left"):
        save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_going_back_forgets_what_came_later(tmp_path):
    for step in (1, 2, 3):
        save(tmp_path, step)
    clean_up_checkpoints(str(tmp_path), after=2)
    assert list(find_checkpoints(str(tmp_path))) == [1, 2]
    assert choose_checkpoint(str(tmp_path)).name == "step-00000002"
    assert choose_checkpoint(str(tmp_path), 1).name == "step-00000001"
    with pytest.raises(MissingInputError, match="holds no checkpoint 3; there are 1, 2"):
        choose_checkpoint(str(tmp_path), 3)


def test_a_pruned_checkpoint_that_is_a_link_goes_and_what_it_leads_to_stays(tmp_path):
    """A checkpoint moved to another disk, with a link in its place, was an error about a directory."""
    run, moved = tmp_path / "run", tmp_path / "moved"
    path = save(run, 1)
    path.rename(moved)
    path.symlink_to(moved)
    save(run, 2, keep=1)
    assert [entry.name for entry in path.parent.iterdir()] == ["step-00000002"]
    assert not path.is_symlink()
    assert read_state(moved).step == 1


@pytest.mark.parametrize("name", [WEIGHTS, MOMENTS, STATE])
@pytest.mark.parametrize("damage", ["cut", "flipped", "missing"])
def test_damage_is_refused_with_the_files_name(tmp_path, name, damage):
    path = save(tmp_path)
    data = bytearray((path / name).read_bytes())
    if damage == "missing":
        (path / name).unlink()
    elif damage == "cut":
        (path / name).write_bytes(data[:-9])
    else:
        data[len(data) // 2] ^= 1
        (path / name).write_bytes(data)
    with pytest.raises(CheckpointError, match=rf"step-00000003.*{name}.*expected|found no {name}"):
        read(path)


def read(path: Path) -> None:
    state = read_state(path)
    read_tensors(path, state)
    read_tensors(path, state, MOMENTS)


def test_a_changed_value_in_the_state_is_refused(tmp_path):
    path = save(tmp_path)
    text = (path / STATE).read_text(encoding="utf-8")
    (path / STATE).write_text(text.replace('"seed": 7', '"seed": 8'), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"state\.json: is damaged: found .* md5 .*, expected "):
        read_state(path)


def test_the_schema_declares_every_field_of_the_state():
    declared = load_schema("checkpoint")
    assert list(declared["properties"]) == [field.name for field in fields(State)]
    without_default = [one.name for one in fields(State) if one.default is one.default_factory is MISSING]
    assert set(without_default) <= set(declared["required"])


FIELDS = ("phase", "step", "position", "seed", "loss_scale", "model", "config", "files")


@pytest.mark.parametrize("name", FIELDS)
def test_a_sealed_state_of_other_types_is_one_line(tmp_path, name):
    path = save(tmp_path)
    text = (path / STATE).read_text(encoding="utf-8")
    for what, variant in retyped(text):
        if not what.startswith((f"('{name}',)", f"('{name}', ")):
            continue
        (path / STATE).write_text(variant, encoding="utf-8")
        refusal, found = "", None
        try:
            found = read_state(path)
        except CheckpointError as error:
            refusal = str(error)
        if found is None:
            assert refusal.startswith(str(path)), what
            assert "\n" not in refusal, what
        else:
            pairs = zip(astuple(SOUND), astuple(found), strict=True)
            assert all(type(one) is type(other) for one, other in pairs), what
            assert {type(value) for value in (*found.position, found.number)} == {int}, what
            assert {type(value) for value in found.files.values()} <= {str}, what


def test_a_renamed_checkpoint_is_refused_and_a_copy_elsewhere_is_read(tmp_path):
    path = save(tmp_path)
    copy = shutil.copytree(path, tmp_path / "step-00000030")
    assert read_state(copy).number == 3
    renamed = path.rename(path.with_name("step-00000030"))
    with pytest.raises(CheckpointError, match="step-00000030: is the checkpoint of update 3, renamed"):
        read_state(renamed)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"step": 3}', b"\xff\xfe", b'{"format": "other", "files": {}}']
)
def test_a_strangers_state_is_refused(tmp_path, content):
    (tmp_path / STATE).write_bytes(content)
    with pytest.raises(CheckpointError, match=r"state\.json: .*bertdata checkpoint 1"):
        read_state(tmp_path)


def test_nothing_is_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "exploded",))

    path = save(tmp_path)
    content = pickle.dumps(Bomb())
    (path / MOMENTS).write_bytes(content)
    values = json.loads((path / STATE).read_text(encoding="utf-8"))
    values["files"][MOMENTS] = compute_file_md5(str(path / MOMENTS))
    del values["md5"]
    text = json.dumps({**values, "md5": compute_state_md5(values)})
    (path / STATE).write_text(text, encoding="utf-8")
    state = read_state(path)
    with pytest.raises(CheckpointError, match=r"optimizer\.safetensors: not a safetensors file"):
        read_tensors(path, state, MOMENTS)
    assert not (tmp_path / "exploded").exists()


def test_weights_alone_are_no_run_to_resume(tmp_path):
    path = save_checkpoint(str(tmp_path), SOUND, TENSORS, {}, 5)
    state = read_state(path)
    assert read_tensors(path, state).keys() == TENSORS.keys()
    with pytest.raises(CheckpointError, match=r"holds weights only, expected optimizer\.safetensors"):
        read_tensors(path, state, MOMENTS)
