"""Cost of a worker's loader among 1 to 64 workers: ``python -m benchmarks.loader_shares``.

A worker trains on its share of each update, but reads files that other workers read too. This benchmark
writes files of random examples, and lets the loader of rank 0 make micro-batches as one of 1, 8 and
64 workers, from whole files and from streams. The updates are spread over the beginning of an epoch. Each
figure comes from a process of its own. The first updates are not counted, because they open the files.

Columns of the table:

CPU: CPU microseconds of all threads for each example of the worker.
MB: peak memory of the process, without what it has after its imports.
first: seconds until the first update is there.

To compare two versions, write the files once (``--data``) and run both with ``--only-measure`` in turn.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from hashlib import md5
from pathlib import Path

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.records import ShardLayout
from bertdata.shards.containers import make_writer
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.data.reading import choose_reading

WORKERS = (1, 8, 64)
BATCH = 128


def write_dataset(place: Path, container: str, files: int, examples: int, length: int) -> None:
    """Write files of random examples with lengths files, and a list of them.

    container: name of the container, "tfrecord", "hdf5" or "parquet".
    """
    layout = ShardLayout(max_seq_length=length, max_predictions_per_seq=max(1, round(0.15 * length)))
    data = generate_data(layout, vocabulary_size=30522, files=files, examples=examples, fill=0.6)
    listed = list[tuple[object, ...]]()
    for shard in data.shards:
        path, lengths = place / f"{shard.name}.{container}", place / f"{shard.name}.u16"
        with path.open("wb") as file:
            writer = make_writer(container, file, layout)
            for batch in data.batches(shard):
                writer.write(batch)
            writer.close()
        lengths.write_bytes(data.lengths(shard).astype("<u2").tobytes())
        digests = [md5(one.read_bytes()).hexdigest() for one in (path, lengths)]
        listed.append((path.name, lengths.name, examples, *digests))
    (place / "list.json").write_text(json.dumps({"length": length, "files": listed}))


def open_written(place: Path) -> OpenedDataset:
    """Open the files that ``write_dataset`` wrote."""
    found = json.loads((place / "list.json").read_text())
    length = found["length"]
    return OpenedDataset(
        name=str(place),
        layout=ShardLayout(max_seq_length=length, max_predictions_per_seq=max(1, round(0.15 * length))),
        shards=tuple(
            Shard(name=name, path=str(place / name), examples=examples, md5=whole,
                  lengths_path=str(place / lengths_name), lengths_md5=lengths)
            for name, lengths_name, examples, whole, lengths in found["files"]
        ),
        vocabulary_size=30522,
    )  # fmt: skip


def measure_worker(place: Path, workers: int, open_files: str) -> None:
    """Print the cost of an epoch of the loader of rank 0 as JSON."""
    data = open_written(place)
    rows, updates = Rows(data), sum(shard.examples for shard in data.shards) // (workers * BATCH)
    form = make_form(rows, batch_size=BATCH)
    asked: int | str = "auto" if open_files == "auto" else int(open_files)
    reading = choose_reading(asked, len(data.shards), data.layout.max_seq_length, is_shareable=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, cpu = time.perf_counter(), time.process_time()
    loader = Loader(
        rows, form=form, batch_size=BATCH, workers=workers, open_files=reading.open_files,
        chunk_rows=reading.chunk_rows,
    )  # fmt: skip
    next(loader)
    first = time.perf_counter() - start
    for _ in range(updates - 1):
        next(loader)
    cpu = time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps({"cpu": 1e6 * cpu / (updates * BATCH), "megabytes": peak / 1024, "first": first}))
    sys.stdout.flush()
    os._exit(0)  # do not wait for threads that read ahead


def main() -> None:
    """Write the files, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", help="directory of the files, which is kept (default: a temporary one)")
    parser.add_argument("--format", default="tfrecord", choices=["tfrecord", "hdf5", "parquet"])
    parser.add_argument("--files", type=int, default=64, help="number of files")
    parser.add_argument("--examples", type=int, default=4096, help="examples of a file")
    parser.add_argument("--length", type=int, default=128, help="largest number of ids of an example")
    parser.add_argument("--workers", type=int, nargs="*", default=WORKERS, help="numbers of workers")
    parser.add_argument("--open-files", nargs="*", default=["8", "auto"], help="ways of reading")
    parser.add_argument("--only-measure", action="store_true", help="do not write the files")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        measure_worker(Path(given.data), given.workers[0], given.open_files[0])
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(given.data or temporary)
        if not given.only_measure:
            place.mkdir(parents=True, exist_ok=True)
            write_dataset(place, given.format, given.files, given.examples, given.length)
        print(f"{'workers':>7} {'open files':>10} {'CPU':>8} {'MB':>8} {'first':>8}")
        for workers in given.workers:
            for open_files in given.open_files:
                own = ["--workers", str(workers), "--open-files", open_files]
                words = [
                    sys.executable,
                    "-m",
                    "benchmarks.loader_shares",
                    "--worker",
                    "--data",
                    str(place),
                    *own,
                ]
                found = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
                print(
                    f"{workers:>7} {open_files:>10} {found['cpu']:>8.2f} {found['megabytes']:>8.0f} "
                    f"{found['first']:>8.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
