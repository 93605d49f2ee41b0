"""CPU time of writing and reading MDS shards in one thread, by this project and by mosaicml-streaming.

mosaicml-streaming is optional. With ``--peer-python PYTHON``, the Python of an environment that has it, both
libraries run in that environment on the same samples. Without it, only this project is measured.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bertdata.examples.mlm.batch import MlmBatch
from bertdata.io import storage
from bertdata.records import ShardLayout
from bertdata.shards.mds.container import MdsDirectoryReader, MdsWriter
from bertdata.shards.mds.directory import write_directory
from bertdata.shards.mds.ids import make_id_form

LENGTHS = (128, 1024)
IDS = 4_000_000
BATCH = 512
REPEATS = 5


def make_rows(length: int) -> list[np.ndarray[Any, Any]]:
    """Return arrays of ``length`` random ids each."""
    generator = np.random.Generator(np.random.PCG64(1))
    return [generator.integers(0, 50_000, length, dtype=np.uint16) for _ in range(IDS // length)]


def make_batches(rows: list[Any]) -> list[MlmBatch]:
    """Convert the arrays to batches of this project's examples."""
    found, none = [], np.zeros(0, np.uint16)
    for start in range(0, len(rows), BATCH):
        some = rows[start : start + BATCH]
        ends = np.cumsum([len(row) for row in some]).astype(np.uint32)
        masks = {"positions": none, "labels": none, "mask_ends": np.zeros(len(some), np.uint32)}
        found.append(MlmBatch(ids=np.concatenate(some), ends=ends, **masks))
    return found


def write_ours(batches: list[MlmBatch], length: int, path: str) -> None:
    """Write one shard with this project's writer, including the writer's checks."""
    with open(path, "wb") as sink:
        writer = MdsWriter(sink, ShardLayout(objective="mlm", max_seq_length=length), "shard.00000.mds")
        for batch in batches:
            writer.write(batch)
        writer.close()


def read_ours(directory: str, length: int) -> int:
    """Read the shard with this project's reader and return its number of ids."""
    index = storage.join(directory, "index.json")
    layout = ShardLayout(objective="mlm", max_seq_length=length, max_predictions_per_seq=1)
    reader = MdsDirectoryReader(index, storage.read_bytes(index), None, layout)
    return sum(len(batch.ids) for batch in reader.batches(BATCH))


def write_theirs(rows: list[Any], directory: str) -> None:
    """Write the shard with mosaicml-streaming."""
    from streaming import MDSWriter

    with MDSWriter(
        out=directory, columns={"input_ids": "ndarray:uint16", "id": "str"}, exist_ok=True
    ) as writer:
        for number, row in enumerate(rows):
            writer.write({"input_ids": row, "id": f"shard.00000-{number}"})


def read_theirs(directory: str) -> int:
    """Read the shard with mosaicml-streaming and return its number of ids."""
    from streaming import LocalDataset

    return sum(len(row["input_ids"]) for row in LocalDataset(local=directory))


def measure_seconds(function: Callable[[], object]) -> float:
    """Call a function several times and return the least CPU seconds of a call."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return min(found)


def print_figures() -> None:
    """Measure and print all times, in the environment that runs this."""
    try:
        import streaming  # noqa: F401
    except ImportError:
        print("mosaicml-streaming is not installed: ours alone")
        has_peer = False
    else:
        has_peer = True
    for length in LENGTHS:
        rows = make_rows(length)
        batches = make_batches(rows)
        with tempfile.TemporaryDirectory() as place:
            directory = str(Path(place) / "data")
            ours = {
                "write": measure_seconds(
                    lambda given=batches, n=length, d=place: write_ours(given, n, f"{d}/shard.mds")
                )
            }
            Path(directory).mkdir()
            samples = ({"input_ids": row, "id": f"shard.00000-{n}"} for n, row in enumerate(rows))
            write_directory(directory, make_id_form(wide=False, with_len=False, size_limit=1 << 26), samples)
            theirs = {}
            if has_peer:
                theirs["write"] = measure_seconds(lambda rows=rows, d=directory: write_theirs(rows, d))
                theirs["read"] = measure_seconds(lambda d=directory: read_theirs(d))
            ours["read"] = measure_seconds(lambda d=directory, n=length: read_ours(d, n))
        for what, cost in ours.items():
            beside = (
                f", theirs {theirs[what] / IDS * 1e9:.1f}: {theirs[what] / cost:.1f} times" if theirs else ""
            )
            print(
                f"{what}, {length} ids an example: ours {cost / IDS * 1e9:.2f} ns an id{beside}", flush=True
            )


def main() -> None:
    """Run the benchmark with this Python, or with the Python that --peer-python names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--peer-python", metavar="PATH", help="Python of an environment with mosaicml-streaming"
    )
    args = parser.parse_args()
    if args.peer_python is None:
        print_figures()
    else:
        subprocess.run([args.peer_python, "-m", "benchmarks.mds"], check=True)


if __name__ == "__main__":
    sys.exit(main())
