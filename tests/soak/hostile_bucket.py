"""A bucket that fails, answers late and loses ends, and the commands that write there.

The bucket is fsspec's file system in memory behind ``s3://``. Each of its operations may fail before or
after it was done, a listing may lack the newest names, and what is read may lack its end. A command must end
with its result, or with one line of error. When the bucket has become sound, the same command must end with
the bytes of an undisturbed run.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from fsspec.implementations.memory import MemoryFileSystem

from bertdata.cli.main import main as bertdata
from bertdata.io import remote, storage
from tests.soak.hostile_checkpoints import ran
from tests.soak.writing_commands import WritingCommand

ATTEMPTS = 6
"""Runs against the hostile bucket before it becomes sound."""

_READING = ("cat_file", "find", "info", "exists", "size")
_WRITING = ("put_file", "rm_file", "pipe_file", "mv")
_MESSAGES = ("Connection reset by peer", "Please reduce your request rate.", "Read timeout on endpoint URL")


class HostileBucket:
    """A file system in memory whose operations go wrong at random.

    wrong: share of the operations that go wrong. 0 is a sound bucket.
    """

    def __init__(self, stream: random.Random) -> None:
        self.wrong = 0.0
        self._sound = MemoryFileSystem()
        self._stream = stream
        self._newest: list[str] = []

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._sound, name)
        if name in _READING or name in _WRITING:
            return self._make_hostile(name, operation)
        return operation

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        """Open a file. Its end may be lacking."""
        if self._goes_wrong():
            self._fail()
        file = self._sound.open(path, mode, **options)
        if mode == "rb" and self._goes_wrong():
            size = self._sound.size(path)
            read = file.read
            end = self._stream.randrange(size + 1)
            file.read = lambda count=-1: read(max(0, min(end - file.tell(), size if count < 0 else count)))
        return file

    def _make_hostile(self, name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        """Return the operation, which may fail before or after it is done, or give a part of its result."""

        def call(*arguments: Any, **options: Any) -> Any:
            if not self._goes_wrong():
                result = operation(*arguments, **options)
                if name == "put_file":
                    self._newest.append(str(arguments[1]))
                return result
            way = self._stream.choice(("before", "after", "part"))
            if way == "before":
                self._fail()
            result = operation(*arguments, **options)
            if way == "part" and name == "cat_file":
                return result[: self._stream.randrange(len(result) + 1)]
            if way == "part" and name == "find":
                return [path for path in result if not path.endswith(tuple(self._newest[-2:]) or "\0")]
            return self._fail() if way == "after" else result

        return call

    def _goes_wrong(self) -> bool:
        return self._stream.random() < self.wrong

    def _fail(self) -> None:
        raise OSError(self._stream.choice(_MESSAGES))

    def get_files(self, directory: str) -> dict[str, bytes]:
        """Return the bytes of all files below a directory, by relative name."""
        paths = self._sound.find(directory)
        return {path.removeprefix(f"{directory}/"): self._sound.cat_file(path) for path in paths}

    def clear(self) -> None:
        """Remove all files."""
        MemoryFileSystem.store.clear()
        MemoryFileSystem.pseudo_dirs[:] = [""]


@contextmanager
def use_bucket(bucket: HostileBucket) -> Iterator[None]:
    """Let ``s3://`` be the bucket during the block."""
    sound = remote.open_file_system

    def open_file_system(path: str) -> tuple[Any, str]:
        return (bucket, f"/{path[5:]}") if path.startswith("s3://") else sound(path)

    with (
        mock.patch.object(remote, "open_file_system", open_file_system),
        mock.patch.object(storage, "open_file_system", open_file_system),
    ):
        yield


def try_bucket(
    command: WritingCommand, expected: dict[str, bytes], url: str, stream: random.Random
) -> list[str]:
    """Run a command into a hostile bucket some times, then into a sound one. Return what was wrong.

    expected: the bytes of the files of an undisturbed run, by name below the output.
    url: directory in the bucket.
    """
    bucket, faults = HostileBucket(stream), []
    words: Sequence[str] = [word.replace("OUTPUT", f"{url}/out") for word in command.words[1:]]
    with use_bucket(bucket):
        bucket.clear()
        for _ in range(ATTEMPTS):
            bucket.wrong = stream.choice((0.01, 0.05, 0.2))
            ending = ran(bertdata, *words)
            errors = [line for line in ending.said.splitlines() if "error: " in line]
            if ending.fault or (ending.status and len(errors) != 1):
                faults.append(f"status {ending.status}: {ending.fault or ending.said[-300:]}")
            if ending.status == 0:
                break
        bucket.wrong = 0.0
        ending = ran(bertdata, *words)
        if ending.status or ending.fault:
            faults.append(f"when the bucket is sound: {ending.fault or ending.said[-300:]}")
        else:
            found = bucket.get_files(f"/{url[5:]}/out")
            names = found.keys() | expected.keys()
            faults += [f"{name} differs" for name in sorted(names) if found.get(name) != expected.get(name)]
        bucket.clear()
    return faults


def read_expected(place: Path) -> dict[str, bytes]:
    """Return the files of an undisturbed run's output."""
    root = place / "out"
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
