"""Checkpoints that somebody made to break the reader are one line that names the file, and leave nothing."""

import resource
import shutil
import time

import pytest

from bertdata.errors import StorageError
from bertdata.io import storage
from tests.soak import hostile_checkpoints, odd_checkpoints
from tests.support.training_runs import refuse

MOST_SECONDS = 20
MOST_MIB = 150
"""Memory that reading a file of less than 2 MB may add."""

SAID = {
    "keys that share their beginning": "its keys have more than 64 bytes for each byte of the file",
    "the same, compressed": "its keys have more than 64 bytes for each byte of the file",
    "a block named many times": "its blocks overlap",
    "an empty block named many times": "its blocks overlap",
    "keys out of order": "its keys are not in order",
    "no bytes of a huge shape, bundle": "a shape that no tensor has",
    "1000 dimensions": "a shape that no tensor has",
    "a graph of 300,000 objects": "a graph of more than 262144 objects",
    "cut at 0.5": "is truncated: an archive of torch.save without its end",
}
"""The cause that is told, for files that would be refused for another reason after much memory or time."""


# By torch itself, of a quantised tensor that it loads.
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")
@pytest.mark.parametrize("name", odd_checkpoints.REFUSED)
def test_an_odd_checkpoint_is_one_line_and_leaves_nothing(trainer, tmp_path, name):
    path = odd_checkpoints.made(name, tmp_path / "source")
    began, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for target in ("huggingface", "bertdata"):
        outcome = trainer("convert", path, tmp_path / "out", "--to", target)
        refuse(outcome, 1, str(path), SAID.get(name, ""))
        assert outcome.out == ""
    assert sorted(file.name for file in tmp_path.iterdir()) == ["source"]
    assert time.process_time() - began < MOST_SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 1024 * MOST_MIB


@pytest.mark.parametrize("name", odd_checkpoints.WITHOUT_MOMENTS)
def test_weights_beside_another_programs_optimiser_are_read(trainer, tmp_path, name):
    path = odd_checkpoints.made(name, tmp_path / "source")
    outcome = trainer("convert", path, tmp_path / "out")
    assert outcome.status == 0, outcome.err
    assert outcome.out.strip().endswith("out: weights to start from (--start-from-ckpt)")


@pytest.fixture
def tensorflow(trainer, tmp_path):
    """A sound checkpoint of TensorFlow 1's form."""
    name = next(iter(odd_checkpoints.WITHOUT_MOMENTS))
    assert (
        trainer("convert", odd_checkpoints.made(name, tmp_path / "pt"), tmp_path / "tf", "--to=tf1").status
        == 0
    )
    shutil.rmtree(tmp_path / "pt")
    return tmp_path / "tf"


def test_damage_that_shows_while_weights_are_written_leaves_no_half_of_a_directory(
    trainer, tensorflow, tmp_path
):
    (data,) = tensorflow.glob("*.data-*")
    content = bytearray(data.read_bytes())
    content[-1] ^= 1
    data.write_bytes(content)
    outcome = trainer("convert", tensorflow, tmp_path / "out", "--to=huggingface")
    refuse(outcome, 1, str(data), "the checksum does not fit: damaged")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["tf"]


@pytest.mark.parametrize("form", ["huggingface", "nvidia", "tf2"])
def test_a_full_disk_names_the_file_and_leaves_nothing(trainer, tensorflow, tmp_path, monkeypatch, form):
    room = [3000]

    def write(self, data):
        room[0] -= len(data)
        if room[0] < 0:
            raise StorageError(f"{self._path}: No space left on device")
        return write_as_it_is(self, data)

    write_as_it_is = storage._NamedOutput.write
    monkeypatch.setattr(storage._NamedOutput, "write", write)
    outcome = trainer("convert", tensorflow, tmp_path / "out", "--to", form)
    refuse(outcome, 1, f"{tmp_path / 'out'}/", "No space left on device")
    assert "unfinished" not in outcome.err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["tf"]


@pytest.mark.thorough
def test_commands_on_a_sealed_state_of_other_types_end_in_one_line(tmp_path, one_thread):
    wrong = [one for one in hostile_checkpoints.try_states(tmp_path, 12, seed=4) if one[-1]]
    assert not wrong
