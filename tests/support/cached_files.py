"""Files of a store for tests of the cache of remote files, and processes that read them through a cache."""

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bertdata.dataset.reader import Shard
from tests.support.paths import ROOT

_WORKER = """
import json, os, sys, time
from benchmarks.slow_store import SlowStore, register_slow_store
from bertdata.dataset.reader import Shard
from trainer.data.cache.shard_cache import ShardCache

given = json.loads(sys.argv[1])
register_slow_store()
SlowStore.seconds, SlowStore.bytes_per_second = given["seconds"], given["bytes_per_second"]
from pathlib import Path
SlowStore.log = Path(given["log"])
shards = [Shard(**values) for values in given["shards"]]
cache = ShardCache(given["root"], given["limit"], shards)
print("ready", flush=True)
sys.stdin.readline()
held = []
for number in given["order"]:
    descriptor = cache.hold(shards[number].file)
    data = None if descriptor is None else os.pread(descriptor, 1 << 24, 0)
    print(number, None if data is None else len(data), flush=True)
    if descriptor is not None and given["keeps"]:
        held.append(descriptor)
    elif descriptor is not None:
        os.close(descriptor)
print("done", flush=True)
sys.stdin.readline()
"""


def make_shards(place: Path, sizes: Sequence[int], scheme: str = "slow") -> list[Shard]:
    """Write files of these sizes, and return them as shards of a store."""
    place.mkdir(parents=True, exist_ok=True)
    found = []
    for number, size in enumerate(sizes):
        data = bytes((number * 31 + at * at) % 251 for at in range(size))
        path = place / f"part-{number:05}"
        path.write_bytes(data)
        found.append(
            Shard(
                name=path.name, path=f"{scheme}://{path}", examples=1, bytes=size,
                md5=hashlib.md5(data, usedforsecurity=False).hexdigest(),
            )
        )  # fmt: skip
    return found


class CacheProcess:
    """A process that reads files through a cache, one after the other, when it is told to begin."""

    def __init__(self, given: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WORKER, given],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.read() == "ready"

    def begin(self) -> None:
        """Let the process read the files."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def read(self) -> str:
        """Return the next line that the process prints. A file is a line with its number and its bytes."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def read_files(self) -> list[tuple[int, int | None]]:
        """Return the number and the bytes of each file, when the process has read them all."""
        found = []
        while (line := self.read()) != "done":
            number, _, size = line.partition(" ")
            found.append((int(number), None if size == "None" else int(size)))
        return found

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self.process.kill()
        self.process.wait()
