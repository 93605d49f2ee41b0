"""Measurement of the cache of remote data files: ``python -m benchmarks.cache``.

Some workers of a machine read a dataset from a slow store, as in training but without a model: after each
update, all workers wait for each other. The store is simulated (``benchmarks.slow_store``): each request
waits, and each open file has a limited speed. The cache has room for the whole dataset, for a half and for an
eighth of it. Each size begins with an empty cache.

Columns of the table, for each epoch:

files: how many files the machine has read from the store, in files of the dataset. 1.00 is each file once.
MB: bytes that the machine has read from the store.
examples/s: examples that all workers have read in a second.
"""

import argparse
import json
import multiprocessing
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.slow_store import SlowStore, count_reads, register_slow_store
from bertdata.dataset.reader import open_dataset
from bertdata.records import ShardLayout
from bertdata.shards.tfrecord import TFRecordWriter
from trainer.config.sections.data import DataSection
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.data.opening import add_cache

SHARES = {"no cache": 0.0, "1": 1.0, "1/2": 0.5, "1/8": 0.125}
"""Sizes of the cache, as shares of the dataset."""

_EPOCHS = 3
_BATCH_SIZE = 64


def write_dataset(place: Path, files: int, examples: int) -> int:
    """Write TFRecord files of random examples. Return their bytes."""
    layout = ShardLayout(max_seq_length=128, max_predictions_per_seq=20)
    made = generate_data(layout, vocabulary_size=30522, files=files, examples=examples, fill=0.6)
    for shard in made.shards:
        with (place / f"{shard.name}.tfrecord").open("wb") as file:
            writer = TFRecordWriter(file, layout)
            for batch in made.batches(shard):
                writer.write(batch)
            writer.close()
    return sum(path.stat().st_size for path in place.iterdir())


def read_epochs(given: dict[str, Any], rank: int, barrier: Any, results: Any) -> None:
    """Read some epochs as one worker. The first worker puts the seconds and reads of each epoch into a queue.

    given: the settings of the measurement.
    barrier: where the workers wait for each other after each update.
    """
    register_slow_store()
    SlowStore.seconds, SlowStore.bytes_per_second = given["latency"], given["speed"] * 1e6
    SlowStore.log = Path(given["log"])
    data = open_dataset(f"slow://{given['data']}/*.tfrecord", unverified=True)
    form = make_form(Rows(data), batch_size=_BATCH_SIZE)
    if given["gigabytes"]:
        data = add_cache(DataSection(cache_dir=given["cache"], cache_size=given["gigabytes"]), data)
    rows, workers = Rows(data), given["workers"]
    updates = data.examples // (workers * _BATCH_SIZE)
    SlowStore.log = None  # what was read to open the dataset does not count
    barrier.wait()
    SlowStore.log = Path(given["log"])
    if not rank:
        SlowStore.log.write_text("", encoding="utf-8")
    barrier.wait()
    loader = Loader(
        rows,
        form=form,
        batch_size=_BATCH_SIZE,
        workers=workers,
        rank=rank,
        machine=range(workers),
        epochs=_EPOCHS,
    )
    files = bytes_read = 0
    for _ in range(_EPOCHS):
        start = time.perf_counter()
        for _ in range(updates):
            next(loader)
            barrier.wait()
        seconds = time.perf_counter() - start
        if not rank:
            reads, total = count_reads(SlowStore.log)
            now = sum(reads.values())
            results.put((seconds, now - files, total - bytes_read))
            files, bytes_read = now, total
    loader.close()


def measure(given: dict[str, Any]) -> list[tuple[float, int, int]]:
    """Return seconds, files read and bytes read of each epoch."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(given["workers"]), context.Queue()
    workers = [
        context.Process(target=read_epochs, args=(given, rank, barrier, results))
        for rank in range(given["workers"])
    ]
    for worker in workers:
        worker.start()
    # A worker that fails would leave the others waiting for it.
    for worker in workers:
        while worker.is_alive():
            worker.join(0.1)
            if any(one.exitcode for one in workers):
                for one in workers:
                    one.terminate()
                raise SystemExit("a worker has failed")
    return [results.get() for _ in range(_EPOCHS)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    # Three workers do not divide the 8 open files, so each worker needs all files. With lengths in the
    # dataset, this would be so for any number of workers of a machine.
    parser.add_argument("--workers", type=int, default=3, help="workers of the machine")
    parser.add_argument("--files", type=int, default=128, help="files of the dataset")
    parser.add_argument("--examples", type=int, default=1500, help="examples of a file")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that a request waits")
    parser.add_argument("--speed", type=float, default=2.0, help="MB a second of each open file")
    parser.add_argument("--json", action="store_true", help="print one line of JSON for each size")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        data, cache, log = (Path(place, name) for name in ("data", "cache", "log"))
        data.mkdir()
        size = write_dataset(data, arguments.files, arguments.examples)
        print(
            f"{arguments.files} files of {arguments.examples:,} examples, {size / 1e6:.1f} MB; "
            f"{arguments.workers} workers; a request waits {arguments.latency:g} s, and an open file has "
            f"{arguments.speed:g} MB/s"
        )
        examples = arguments.files * arguments.examples
        print(f"{'cache':<10}{'epoch':>6}{'files':>8}{'MB':>9}{'examples/s':>12}")
        for name, share in SHARES.items():
            log.touch()
            found = measure(
                {
                    **{key: getattr(arguments, key) for key in ("workers", "latency", "speed")},
                    "data": str(data), "cache": str(cache), "log": str(log), "gigabytes": share * size / 1e9,
                }
            )  # fmt: skip
            shutil.rmtree(cache, ignore_errors=True)
            for epoch, (seconds, files, read) in enumerate(found, start=1):
                if arguments.json:
                    print(json.dumps({"cache": name, "epoch": epoch, "seconds": seconds, "bytes": read}))
                    continue
                print(
                    f"{name:<10}{epoch:>6}{files / arguments.files:>8.2f}{read / 1e6:>9.1f}"
                    f"{examples / seconds:>12,.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
