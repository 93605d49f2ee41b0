"""Contents of a run at a URL in its store: its checkpoints, whole or not, and its other files.

A checkpoint's ``state.json`` is uploaded last and names every other file with its md5. So a checkpoint counts
only if ``state.json`` and all files that it names are there. What a killed upload left is never taken for a
checkpoint.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bertdata.errors import MissingInputError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.io.json_text import parse_json_text
from bertdata.io.whole_directory import open_directory
from trainer.errors import CheckpointError
from trainer.remote.retries import repeat

CHECKPOINTS, STATE = "checkpoints", "state.json"
"""Names in a run's directory, as in ``trainer.checkpoints.checkpoint``."""
_NAME = re.compile(rf"{CHECKPOINTS}/step-(\d+)/(.+)")
_DOWNLOADS = 2
"""Number of times that a file is downloaded before a wrong md5 counts as damage in the store."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredCheckpoint:
    """A checkpoint in a store.

    number: the number in its name.
    url: its directory.
    names: names of the files that are there, relative to ``url``.
    """

    number: int
    url: str
    names: frozenset[str]

    def read_state(self) -> Mapping[str, Any]:
        """Return the checkpoint's state as JSON. CheckpointError if it is not there or is no JSON object."""
        where = storage.join(self.url, STATE)
        if STATE not in self.names:
            raise CheckpointError(f"{self.url}: is half there: found no {STATE}, which is uploaded last")
        try:
            state = parse_json_text(repeat(lambda: storage.read_bytes(where)))
        except ValueError:
            raise CheckpointError(f"{where}: is damaged: expected JSON") from None
        if not isinstance(state, dict) or not isinstance(state.get("files"), dict):
            raise CheckpointError(f"{where}: is damaged: expected the state of a checkpoint")
        return state

    def check_is_whole(self) -> None:
        """Raise CheckpointError unless all files are there. Their contents are checked when they are read."""
        if lacking := sorted(set(self.read_state()["files"]) - self.names):
            raise CheckpointError(f"{self.url}: is half there: found no {', '.join(lacking)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRun:
    """The files of a run at a URL, as they were listed once.

    url: directory of the run.
    checkpoints: its checkpoints by number, in ascending order, whole or not.
    others: names of all other files, relative to ``url``.
    """

    url: str
    checkpoints: Mapping[int, StoredCheckpoint] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    @classmethod
    def read(cls, url: str) -> "StoredRun":
        """List the files of a run. The result is empty if there are none."""
        url = url.rstrip("/")
        files: dict[int, set[str]] = {}
        others = list[str]()
        for name in repeat(lambda: storage.list_files(url)):
            if found := _NAME.fullmatch(name):
                files.setdefault(int(found[1]), set()).add(found[2])
            else:
                others.append(name)
        checkpoints = {
            number: StoredCheckpoint(
                number=number,
                url=storage.join(url, f"{CHECKPOINTS}/{name_checkpoint(number)}"),
                names=frozenset(files[number]),
            )
            for number in sorted(files)
        }
        return cls(url=url, checkpoints=checkpoints, others=tuple(others))

    def choose_newest_whole(self, passed_over: list[str]) -> StoredCheckpoint | None:
        """Return the newest checkpoint that is whole, or None if none is.

        passed_over: gets a text for each newer checkpoint that is not whole.
        """
        for checkpoint in reversed([*self.checkpoints.values()]):
            try:
                checkpoint.check_is_whole()
                return checkpoint
            except (CheckpointError, MissingInputError) as error:
                passed_over.append(str(error))
        return None

    def get_checkpoint(self, number: int) -> StoredCheckpoint:
        """Return the checkpoint with this number. MissingInputError lists the others if there is none."""
        if number not in self.checkpoints:
            there = f"; there are {', '.join(map(str, self.checkpoints))}" if self.checkpoints else ""
            where = storage.join(self.url, CHECKPOINTS)
            raise MissingInputError(f"{where}: holds no checkpoint {number}{there}")
        return self.checkpoints[number]


def name_checkpoint(number: int) -> str:
    """Return the name of the directory of the checkpoint with this number."""
    return f"step-{number:08d}"


def find_best_number(state: Mapping[str, Any]) -> int | None:
    """Return the number of the checkpoint with a run's best evaluation, or None if it has no such evaluation.

    state: the state of a checkpoint, as JSON.
    """
    number = (state.get("best") or {}).get("number")
    return None if number is None else int(number)


def download_checkpoint(checkpoint: StoredCheckpoint, run_folder: Path) -> Path:
    """Download a checkpoint into a run's local directory, and return its local path.

    It appears there whole or not at all. A copy that is there already is kept if it has the same state.json.
    CheckpointError if the checkpoint is not whole, or a file's md5 is not the one in state.json.
    """
    target = run_folder / CHECKPOINTS / name_checkpoint(checkpoint.number)
    checkpoint.check_is_whole()
    state = repeat(lambda: storage.read_bytes(storage.join(checkpoint.url, STATE)))
    if holds_copy(target, state, checkpoint.names):
        return target
    md5s = parse_json_text(state)["files"]
    with open_directory(target, lambda one, other: False) as growing:
        for name in sorted(checkpoint.names - {STATE}):
            path = growing / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _download_checked(storage.join(checkpoint.url, name), path, md5s.get(name))
        (growing / STATE).write_bytes(state)
    return target


def holds_copy(folder: Path, state: bytes, names: Collection[str]) -> bool:
    """Return True if the local directory has a copy of a checkpoint: all of its files, and this state.json.

    names: names of the checkpoint's files.
    """
    own = folder / STATE
    return own.is_file() and own.read_bytes() == state and all((folder / name).is_file() for name in names)


def download_file(url: str, path: Path) -> None:
    """Download a file to a local path, again after each failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    repeat(lambda: storage.download_copy(url, str(path)))


def _download_checked(url: str, path: Path, md5: str | None) -> None:
    """Download a file and compare its md5.

    md5: the expected md5. None: the file has none, and is not checked.
    """
    found = ""
    for _ in range(_DOWNLOADS):
        download_file(url, path)
        if md5 is None or (found := compute_file_md5(str(path))) == md5:
            return
    raise CheckpointError(f"{url}: is damaged: found md5 {found}, expected md5 {md5}")


def remove_checkpoint(checkpoint: StoredCheckpoint) -> None:
    """Remove a checkpoint from its store, beginning with state.json, so that no part of it counts."""
    repeat(partial(storage.remove, storage.join(checkpoint.url, STATE), missing_ok=True))
    repeat(partial(storage.remove_directory, checkpoint.url))
