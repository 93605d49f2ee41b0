"""What a power cut does to files: contents and names that were not forced to disk may be lost.

The model is a file system that records names in the order in which they were made (a journal), and contents
at any time. So after a power cut

- a file whose contents were forced to disk (fsync) after its last change is whole;
- of every other file the contents may be there, or empty, or zeros, or cut at a block;
- a name in a directory that was forced to disk is there; of the other names the newest may be gone.
"""

import json
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLOCK = 4096


@dataclass(frozen=True, kw_only=True)
class Flushed:
    """What was forced to disk.

    files: for each inode its size and its time of modification at its last fsync.
    names: for each inode of a directory its names at its last fsync, with their inodes.
    """

    files: dict[int, tuple[int, int]]
    names: dict[int, dict[str, int]]

    @classmethod
    def read(cls, log: Path) -> "Flushed":
        """Read the log that ``tests.soak.disk_events`` has written."""
        files, names = dict[int, tuple[int, int]](), dict[int, dict[str, int]]()
        for text in log.read_text(encoding="utf-8").splitlines() if log.exists() else []:
            line: dict[str, Any] = json.loads(text)
            if "names" in line:
                names[line["inode"]] = line["names"]
            else:
                files[line["inode"]] = (line["size"], line["time"])
        return cls(files=files, names=names)


def lose_power(directory: Path, flushed: Flushed, since: int, stream: random.Random) -> list[str]:
    """Damage the files below a directory as a power cut may. Return what was lost, in words.

    since: time in nanoseconds since 1970. Older files and names have been on the disk for long.
    """
    unsafe_names, unsafe_contents = [], []
    for folder, _, names in os.walk(directory):
        safe = flushed.names.get(os.stat(folder).st_ino, {})
        for name in names:
            path = Path(folder, name)
            found = path.lstat()
            # A name that takes the place of another file's is kept, because the other file is gone here.
            if found.st_ctime_ns >= since and name not in safe:
                unsafe_names.append((found.st_ctime_ns, path))
            if found.st_mtime_ns >= since and flushed.files.get(found.st_ino) != (
                found.st_size,
                found.st_mtime_ns,
            ):
                unsafe_contents.append(path)
    lost = []
    kept = stream.randint(0, len(unsafe_names))
    for _, path in sorted(unsafe_names)[kept:]:
        path.unlink()
        lost.append(f"{path.relative_to(directory)} is gone")
    for path in sorted(unsafe_contents):
        if path.exists() and (what := _lose_contents(path, stream)):
            lost.append(f"{path.relative_to(directory)} {what}")
    return lost


def _lose_contents(path: Path, stream: random.Random) -> str:
    """Damage a file, or leave it. Return what was done, in words."""
    size, way = path.stat().st_size, stream.randrange(6)
    if not size or way < 3:
        return ""
    kept = stream.randrange(0, size, BLOCK)
    with path.open("r+b") as file:
        if way == 3:
            file.truncate(0)
            return "is empty"
        file.truncate(kept)
        if way == 4:
            return f"ends after {kept} bytes"
        file.truncate(size)
        return f"has zeros after {kept} bytes"
