"""Simulation of the reading of 1 to 4,096 workers: ``python -m benchmarks.fleet``.

For each number of workers and machines, it asks the loader's own code (``trainer.data.order`` and
``trainer.data.streams``) which files each worker needs in an epoch. It does so for 8 whole files at a time
(``--open-files 8``), and for streams, which are the default. No file is read in this simulation, and no
formula stands for the loader. Not every worker and update is asked: _SAMPLED_MACHINES machines and
_SAMPLED_PLACES places of the epoch are.

Two datasets are simulated: English Wikipedia in 500 files, and 1 TB of text in 37,000 files. Their lengths
are those of 16,279,552 sequences of Wikipedia that were published with Graphcore's article on packing. The
reference kit has them. The bytes of an example, its memory and the time to decode it are measured with a
TFRecord file of examples that have the same mean length.

Columns of the table:

reads: how many machines read a file, on average over all files.
GB a machine: bytes that a machine reads in an epoch if it reads each of its files once.
files a worker: number of files that a worker decodes in an epoch.
cores, all: seconds in which one core decodes all rows of these files, for a second of training in which the
worker trains on 2,000 sequences.
cores, own: the same if the worker finds the offsets of all rows of these files, and decodes only its own
rows. MB, all and own: memory of the decoded examples, and of the offsets.
"""

import argparse
import json
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.corpus import find_kit
from bertdata.dataset.reader import open_dataset
from bertdata.records import ShardLayout
from bertdata.shards.file_view import read_ranges
from bertdata.shards.tfrecord import TFRecordWriter
from trainer.config.model import ModelConfig
from trainer.data.examples import CompactExamples, Rows
from trainer.data.generated import generate_data
from trainer.data.order import Dealer, DecodedPiece, Order, Position
from trainer.data.reading import Reading, choose_reading
from trainer.data.streams import StreamDealer, StreamOrder

SEQUENCES_A_SECOND = 2000  # of a GPU
WORKERS_OF_A_MACHINE = 8
MACHINES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
DATASETS = {"English Wikipedia": 500, "1 TB": 37_000}
"""Number of files of each dataset. A file has as much text as one of English Wikipedia's 500."""

MODELS = {"BERT base": {}, "BERT large": {"hidden_size": 1024, "num_hidden_layers": 24,
                                          "num_attention_heads": 16, "intermediate_size": 4096}}  # fmt: skip
WINDOW = 20_000_000
"""Number of examples over which files are counted. A smaller dataset is counted over a whole epoch."""

_SAMPLED_MACHINES = 5
_SAMPLED_PLACES = 160  # of the window. 8 whole files are read while two or more of these places are passed.
_SAMPLE_EXAMPLES = 4096
_SINGLE_ROWS = 128
_OFFSET_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class ExampleCost:
    """What an example costs.

    stored: bytes in the file.
    decoded: bytes in memory.
    seconds: time in which one core decodes it together with all other examples of its file.
    found: time in which one core finds its offset in the file.
    single: time in which one core reads and decodes it as one of some examples from anywhere in the file.
    """

    stored: float
    decoded: float
    seconds: float
    found: float
    single: float


@dataclass(frozen=True, kw_only=True)
class Reads:
    """What is read in an epoch.

    of_file: number of machines that read a file, on average.
    of_machine: number of files that a machine reads.
    of_worker: number of files that a worker reads.
    held: number of examples that a worker has decoded in memory if it decodes all rows, or whose offsets it
    has.
    """

    of_file: float
    of_machine: float
    of_worker: float
    held: int


def read_lengths() -> list[int]:
    """Return the published histogram of lengths. Item i is the number of sequences with i + 1 tokens."""
    kit = find_kit()
    if kit is None:
        raise SystemExit("no reference kit (BERTDATA_REFERENCE_KIT): the published lengths are in it")
    found: list[int] = json.loads((kit / "packing" / "histograms.json").read_text())["wikipedia_512"]
    return found


def measure_example(histogram: Sequence[int]) -> ExampleCost:
    """Measure the costs of an example with a TFRecord file of random examples of the same mean length."""
    mean = float(np.average(np.arange(1, len(histogram) + 1), weights=histogram))
    layout = ShardLayout(max_seq_length=len(histogram), max_predictions_per_seq=76)
    made = generate_data(
        layout, vocabulary_size=30522, files=1, examples=_SAMPLE_EXAMPLES, fill=mean / len(histogram)
    )
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "part.tfrecord")
        with path.open("wb") as file:
            writer = TFRecordWriter(file, layout)
            for batch in made.batches(made.shards[0]):
                writer.write(batch)
            writer.close()
        data = open_dataset(str(path), unverified=True)
        rows, (shard,) = Rows(data), data.shards
        rows.decode(shard)  # reads the file into the system's memory, and loads modules
        start = time.process_time()
        rows.decode(shard)
        seconds = time.process_time() - start
        with data.open_shard(shard) as reader:
            start = time.process_time()
            offsets = reader.find_row_offsets(0, _SAMPLE_EXAMPLES)
            found = time.process_time() - start
            assert offsets is not None
            wanted = np.random.default_rng(1).permutation(_SAMPLE_EXAMPLES).reshape(-1, _SINGLE_ROWS).tolist()
            start = time.process_time()
            for numbers in wanted:
                starts = [offsets[number] for number in numbers]
                sizes = [offsets[number + 1] - offsets[number] for number in numbers]
                raw, _ = read_ranges([reader.row_file] * len(numbers), starts, sizes)
                batches = reader.decode_rows(raw, sizes)
                CompactExamples([data.convert_batch(batch, shard, 0) for batch in batches], layout)
            single = time.process_time() - start
        tracemalloc.start()
        held = rows.decode(shard)
        decoded, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(held.lengths) == _SAMPLE_EXAMPLES
        stored = path.stat().st_size
    count = _SAMPLE_EXAMPLES
    return ExampleCost(
        stored=stored / count,
        decoded=decoded / count,
        seconds=seconds / count,
        found=found / count,
        single=single / count,
    )


def make_dealer(
    files: Sequence[tuple[str, int]], reading: Reading, workers: int, rank: int, batch_size: int
) -> Dealer:
    """Return the loader's dealer of a worker, for a dataset that records the lengths of its examples."""
    kind: type[Dealer] = Dealer
    order = Order(files, seed=42, open_files=reading.open_files)
    if reading.chunk_rows:
        kind, order = StreamDealer, StreamOrder(files, seed=42, reading=reading)
    return kind(
        order=order,
        lengths=lambda file: np.zeros(0),  # the lengths decide only which member of a group gets an example
        by_lengths=True,
        world_size=workers,
        rank=rank,
        micro_batches=workers,
        batch_size=batch_size,
        seed=42,
        most_rows=min(4096, order.examples // workers),
        ahead=0,
    )


def list_worker_pieces(dealer: Dealer, window: int) -> list[set[DecodedPiece]]:
    """Return what a worker must decode, for each of some updates that are spread evenly over a window.

    window: number of examples from the beginning of the epoch.
    """
    order = dealer.order
    turn = (order.run if isinstance(order, StreamOrder) else 32) * order.queues
    updates = window // dealer.update_rows
    found = []
    for nth in np.unique(np.linspace(0, updates - 1, _SAMPLED_PLACES).astype(int)).tolist():
        position = order.advance(Position(), nth * dealer.update_rows)
        # These updates together have rows of each of the worker's streams. They end with the epoch, because
        # in the next epoch the streams have other files.
        pieces, rows = set[DecodedPiece](), 0
        last = order.examples - dealer.updates * dealer.update_rows
        while rows < turn and position.epoch == 0 and position.examples <= last:
            pieces.update(order.list_pieces(position, dealer.find_offsets(position).ravel()))
            position = order.advance(position, dealer.updates * dealer.update_rows)
            rows += dealer.updates * dealer.update_rows
        found.append(pieces)
    return found


def simulate(
    files: Sequence[tuple[str, int]], reading: Reading, machines: int, workers: int, batch_size: int
) -> Reads:
    """Ask the loader's dealers which files the workers of some machines need."""
    total = sum(rows for _, rows in files)
    window = min(total, WINDOW)
    each = workers // machines
    of_machine, of_worker, held = list[int](), list[int](), 0
    for machine in sorted(
        {machines * (2 * nth + 1) // (2 * _SAMPLED_MACHINES) for nth in range(_SAMPLED_MACHINES)}
    ):
        seen = set[int]()
        # Workers of the same group of micro-batches need the same files, so ask one of each group.
        first = make_dealer(files, reading, workers, machine * each, batch_size)
        for rank in range(machine * each, (machine + 1) * each, min(each, first.group)):
            pieces = list_worker_pieces(make_dealer(files, reading, workers, rank, batch_size), window)
            own = {file for some in pieces for file, _ in some}
            of_worker.append(len(own))
            seen |= own
            open_files = max((len({file for file, _ in some}) for some in pieces), default=0)
            held = max(held, open_files * (2 * reading.chunk_rows or files[0][1] * 5 // 4))
        of_machine.append(len(seen))
    # The files that all machines together read in the window.
    alone = make_dealer(files, reading, 1, 0, 4096)
    united = {file for some in list_worker_pieces(alone, window) for file, _ in some}
    scale = len(files) / len(united)
    return Reads(
        of_file=float(np.mean(of_machine)) * machines / len(united),
        of_machine=float(np.mean(of_machine)) * scale,
        of_worker=float(np.mean(of_worker)) * scale,
        held=held,
    )


def count_checkpoint_bytes(settings: dict[str, int]) -> int:
    """Return the bytes of a checkpoint's weights and of its two moments, which are stored in fp32."""
    import torch

    from trainer.model.headed import BertForPreTraining

    with torch.device("meta"):
        model = BertForPreTraining(ModelConfig(**settings))
    return 3 * sum(weight.numel() * weight.element_size() for weight in model.parameters())


def main() -> None:
    """Print the table of each dataset, for both ways of reading, and the sizes of checkpoints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batch-size", type=int, default=128, help="examples of a worker in an update")
    parser.add_argument("--machines", type=int, nargs="*", default=MACHINES, help="numbers of machines")
    parser.add_argument("--upload", type=float, default=200.0, help="MB a second to the object store")
    given = parser.parse_args()
    histogram = read_lengths()
    cost = measure_example(histogram)
    print(
        f"an example: {cost.stored:.0f} bytes in a TFRecord file, {cost.decoded:.0f} decoded; one core "
        f"decodes {1 / cost.seconds:,.0f} in a second, finds {1 / cost.found:,.0f} offsets, and decodes "
        f"{1 / cost.single:,.0f} single ones; {given.batch_size} examples of a worker in an update"
    )
    for name, count in DATASETS.items():
        rows, rest = divmod(sum(histogram), DATASETS["English Wikipedia"])
        files = [(f"part-{number:05}.tfrecord", rows + (number < rest)) for number in range(count)]
        streams = choose_reading("auto", count, len(histogram), is_shareable=True)
        gigabytes = rows * cost.stored / 1e9
        print(f"\n{name}: {count:,} files of {rows:,} examples, {count * gigabytes:,.0f} GB")
        print(f"{streams.open_files} streams, chunks of {streams.chunk_rows} examples")
        print(f"{'':>17}{'order':<9}{'reads':>8}{'GB a machine':>14}{'files a worker':>16}"
              f"{'cores, all':>12}{'own':>8}{'MB, all':>10}{'own':>8}")  # fmt: skip
        for machines, workers in [(1, 1), *((one, one * WORKERS_OF_A_MACHINE) for one in given.machines)]:
            for title, reading in (("8 whole", Reading(8)), ("streams", streams)):
                found = simulate(files, reading, machines, workers, given.batch_size)
                seconds = count * rows / (workers * SEQUENCES_A_SECOND)
                read = found.of_worker * rows / seconds  # rows of the worker's files for a second of training
                own = read * cost.found + SEQUENCES_A_SECOND * cost.single
                print(
                    f"{workers:>6,} on {machines:>4,}    {title:<9}{found.of_file:>8.2f}"
                    f"{found.of_machine * gigabytes:>14,.1f}{found.of_worker:>16,.1f}"
                    f"{read * cost.seconds:>12.2f}{own:>8.2f}"
                    f"{found.held * cost.decoded / 1e6:>10,.0f}{found.held * _OFFSET_BYTES / 1e6:>8,.1f}",
                    flush=True,
                )
    print()
    for name, settings in MODELS.items():
        size = count_checkpoint_bytes(settings)
        print(f"checkpoint of {name}: {size / 1e9:.2f} GB, {size / 1e6 / given.upload:.0f} s to upload at "
              f"{given.upload:.0f} MB/s, for any number of workers")  # fmt: skip


if __name__ == "__main__":
    main()
