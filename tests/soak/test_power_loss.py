"""The model of a power cut: what was forced to disk stays, and anything else may be lost."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.soak.disk_events import VARIABLE
from tests.soak.power_loss import Flushed, lose_power
from tests.support.paths import ROOT

PROGRAM = """
import os
for name in ("safe", "renamed", "unsafe"):
    with open(f"{place}/{name}.tmp", "wb") as file:
        file.write(b"x" * 10_000)
        if name != "unsafe":
            file.flush()
            os.fsync(file.fileno())
    os.replace(f"{place}/{name}.tmp", f"{place}/{name}")
    if name == "safe":
        folder = os.open(place, os.O_RDONLY)
        os.fsync(folder)
"""


def run_program(tmp_path: Path, kill_at: int) -> tuple[int, int]:
    """Run the program under the counter of events. Return its exit status and the number of events."""
    (tmp_path / "program.py").write_text(f"place = {str(tmp_path / 'out')!r}\n{PROGRAM}")
    (tmp_path / "out").mkdir()
    asked = f'{{"below": "{tmp_path / "out"}", "log": "{tmp_path / "log"}", "kill_at": {kill_at}}}'
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.disk_events", "program"],
        env={**os.environ, VARIABLE: asked, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
        start_new_session=True,
        check=False,
    )
    return done.returncode, (tmp_path / "log").stat().st_size


def make_files(place: Path) -> Flushed:
    """Write three files as the program does, and return what it has forced to disk."""
    place.mkdir(exist_ok=True)
    inodes, files = dict[str, int](), dict[int, tuple[int, int]]()
    for name in ("safe", "renamed", "unsafe"):
        (place / name).write_bytes(b"x" * 10_000)
        found = (place / name).stat()
        inodes[name] = found.st_ino
        files[found.st_ino] = (found.st_size, found.st_mtime_ns)
    del files[inodes["unsafe"]]
    return Flushed(files=files, names={place.stat().st_ino: {"safe": inodes["safe"]}})


def test_only_what_was_forced_to_disk_is_sure_to_stay(tmp_path: Path) -> None:
    lost = set[str]()
    for seed in range(100):
        flushed = make_files(tmp_path / "out")
        lost |= set(lose_power(tmp_path / "out", flushed, 0, random.Random(seed)))
        assert (tmp_path / "out" / "safe").read_bytes() == b"x" * 10_000
    assert {text for text in lost if not text.startswith("unsafe")} == {"renamed is gone"}
    assert {"unsafe is gone", "unsafe is empty"} < lost
    assert any(text.startswith("unsafe ends after") for text in lost)
    assert any(text.startswith("unsafe has zeros after") for text in lost)


def test_files_from_before_the_run_stay(tmp_path: Path) -> None:
    make_files(tmp_path / "out")
    nothing = Flushed(files={}, names={})
    later = time.time_ns() + 1_000_000_000
    assert [lose_power(tmp_path / "out", nothing, later, random.Random(seed)) for seed in range(20)] == [
        []
    ] * 20


def test_events_and_what_was_forced_to_disk_are_logged(tmp_path: Path) -> None:
    assert run_program(tmp_path, 0) == (0, 9)  # three files opened and renamed, three times fsync
    flushed, place = Flushed.read(tmp_path / "log.flushed"), tmp_path / "out"
    inodes = {path.name: path.stat().st_ino for path in place.iterdir()}
    assert flushed.names == {place.stat().st_ino: {"safe": inodes["safe"]}}
    assert {inode: size for inode, (size, _) in flushed.files.items()} == {
        inodes["safe"]: 10_000,
        inodes["renamed"]: 10_000,
    }


@pytest.mark.parametrize(("kill_at", "finished"), [(1, 0), (4, 1), (7, 1), (8, 2)])
def test_the_program_is_killed_before_the_event(tmp_path: Path, kill_at: int, finished: int) -> None:
    assert run_program(tmp_path, kill_at) == (-9, kill_at)
    assert len([path for path in (tmp_path / "out").iterdir() if path.suffix != ".tmp"]) == finished
