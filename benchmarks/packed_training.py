"""Training on packed rows, padded rows and flat batches: padding, time of a step, loading, and resuming.

A packed row contains several sequences. The sequences of a flat batch follow each other without padding.
Packed rows, padded rows and flat batches run alternately on one core, in fp32 with dropout. The least CPU
time of each batch counts, because other work on the machine only adds to it.

The examples are generated. Their lengths come from ``--lengths FILE``, a JSON file with lists by name: item i
of a list is the number of sequences with i + 1 tokens. By default the lengths are the reference kit's.
Without the kit they are generated so that half of the positions contain tokens.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from benchmarks import corpus
from benchmarks.training import make_our_step, measure_cpu_seconds
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.examples.columns import Array
from bertdata.packing.methods import plan_packs
from bertdata.packing.pack_plan import PackPlan
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.packed.packs import PackBatch
from trainer.data.batches import Batch
from trainer.data.bins import RowsFromBins
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import GeneratedData, generate_data
from trainer.data.load_packing import RowsPackedAtLoad
from trainer.data.loader import Loader
from trainer.data.order import draw_numbers
from trainer.data.packs import PackRows

LAYOUT = ShardLayout(max_seq_length=512, max_predictions_per_seq=80)
FILES, EXAMPLES = 8, 2048
SEQUENCES = 8  # mean number of sequences per step
BINS = 64
BATCHES, ROUNDS = 4, 3
COUNTED = 100
LOADED = 1500
LOADED_KINDS = ("flat", "packed rows, flat", "packed at load, flat", "padded rows", f"rows from {BINS} bins")
LARGE_FILES, LATE_UPDATE, LATE_ROWS = 4000, 1_000_000, 128


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownLengths(GeneratedData):
    """Generated examples with prescribed lengths, which may be packed into prescribed rows.

    The examples are made once and kept, so that only the loader's own work is measured.

    known: lengths of the examples, by name of the shard.
    row_ends: for packed rows, number of the example after the last of each row, by name of the shard.
    made: the examples that have been made, by name of the shard.
    """

    known: dict[str, Array]
    row_ends: dict[str, Array]
    made: dict[str, ExampleBatch] = field(default_factory=dict)

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """Yield the examples of a shard, all in one batch."""
        if shard.name not in self.made:
            (self.made[shard.name],) = GeneratedData.batches(self, shard)
        yield self.made[shard.name]

    def _sizes(self, shard: Shard) -> tuple[Array, Array]:
        """Return the lengths and the numbers of masks of a shard's examples."""
        lengths = self.known[shard.name]
        masks = (0.15 * lengths).round().astype(np.int64)
        return lengths, np.clip(masks, 1, self.layout.max_predictions_per_seq)

    def packs(self, shard: Shard) -> Iterator[PackBatch]:
        """Yield the packed rows of a shard, all in one batch."""
        (examples,) = self.batches(shard)
        yield PackBatch(examples=examples, ends=self.row_ends[shard.name])


def draw_lengths(counts: list[int] | None) -> Array:
    """Return the lengths of all examples.

    counts: item i is the relative frequency of length i + 1. None: generated lengths are returned.
    """
    data = generate_data(LAYOUT, vocabulary_size=30522, seed=1, fill=0.5, files=FILES, examples=EXAMPLES)
    if counts is None:
        return np.concatenate([np.asarray(data.lengths(shard)) for shard in data.shards])
    shares = np.cumsum(counts) / sum(counts)
    return 1 + np.searchsorted(shares, draw_numbers(FILES * EXAMPLES, "lengths") / 2.0**64)


def make_single_examples(lengths: Array) -> OpenedDataset:
    """Return a dataset of examples with these lengths, each in a row of its own."""
    data = generate_data(LAYOUT, vocabulary_size=30522, seed=1, fill=0.5, files=FILES, examples=EXAMPLES)
    assert isinstance(data, GeneratedData)
    given = {field.name: getattr(data, field.name) for field in fields(GeneratedData)}
    by_shard = np.split(lengths, FILES)
    known = {shard.name: by_shard[number] for number, shard in enumerate(data.shards)}
    return KnownLengths(**given, known=known, row_ends={})


def make_packed_examples(plan: PackPlan) -> OpenedDataset:
    """Return a dataset with the rows that the plan describes, in random order.

    The rows are distributed evenly over FILES files.
    """
    rows = [lengths for lengths, count in plan.rows_by_lengths for _ in range(count)]
    order = np.argsort(draw_numbers(len(rows), "rows"))
    shards, known, row_ends = list[Shard](), dict[str, Array](), dict[str, Array]()
    for number in range(FILES):
        own = [rows[row] for row in order[number::FILES]]
        name = f"packed-{number}"
        known[name] = np.array([length for row in own for length in row])
        row_ends[name] = np.cumsum([len(row) for row in own])
        shards.append(Shard(name=name, path="", examples=len(known[name]), rows=len(own)))
    return KnownLengths(
        name="packed",
        layout=replace(LAYOUT, packing="flat", sequences_per_row=3),
        shards=tuple(shards),
        vocabulary_size=30522,
        seed=1,
        fill=0.5,
        known=known,
        row_ends=row_ends,
    )


@dataclass(frozen=True)
class BatchForm:
    """A way of making batches of examples: as padded rows, as packed rows or as flat batches.

    rows: the dataset.
    padded: True for rows, False for flat batches.
    """

    rows: Rows
    padded: bool
    batch_size: int

    def load(self) -> Loader:
        """Return a new loader that makes batches in this way."""
        form = make_form(self.rows, batch_size=self.batch_size, padded=self.padded)
        return Loader(self.rows, form=form, batch_size=self.batch_size)

    def batches(self, count: int) -> list[Batch]:
        """Return the first ``count`` batches."""
        loader = self.load()
        found = [update.batches[0] for update in islice(loader, count)]
        loader.close()
        return found


def count_computed_tokens(batch: Batch) -> int:
    """Return the number of positions that the model computes for a batch, including padding."""
    return batch.input_ids.numel()


def count_real_tokens(batch: Batch) -> int:
    """Return the number of tokens of a batch, without padding."""
    return int(batch.lengths().sum())


def count_sequences(batch: Batch) -> int:
    """Return the number of sequences in a batch."""
    return int((batch.next_sentence_labels >= 0).sum())


def choose_typical(batches: list[Batch]) -> list[Batch]:
    """Choose batches that represent all: their numbers of tokens are equally spaced quantiles.

    This is needed because batches differ in width.
    """
    rising = sorted(batches, key=count_computed_tokens)
    return [rising[(2 * number + 1) * len(rising) // (2 * BATCHES)] for number in range(BATCHES)]


def compare_steps(kinds: dict[str, BatchForm]) -> None:
    """Print for each way of making batches its padding, and the CPU time of a step per token without padding.

    The first way is the baseline.
    """
    counted = {name: kind.batches(COUNTED) for name, kind in kinds.items()}
    drawn = {name: choose_typical(batches) for name, batches in counted.items()}
    steps = {name: make_our_step(kinds[name].batch_size, compiled=False) for name in kinds}
    least = {name: [float("inf")] * BATCHES for name in kinds}
    for name, step in steps.items():
        step(drawn[name][0])
    for _ in range(ROUNDS):
        for number in range(BATCHES):
            for name, step in steps.items():
                least[name][number] = min(least[name][number], measure_cpu_seconds(step, drawn[name][number]))
    each = {name: sum(least[name]) / sum(map(count_real_tokens, drawn[name])) for name in kinds}
    peer = next(iter(each.values()))
    for name, batches in counted.items():
        padding = 1 - sum(map(count_real_tokens, batches)) / sum(map(count_computed_tokens, batches))
        print(
            f"  {name}: padding {100 * padding:.2f} %, {1e6 * each[name]:.0f} us of CPU a token, "
            f"{peer / each[name]:.2f} times as fast as {next(iter(each))}",
            flush=True,
        )


def compare_loaders(kinds: dict[str, BatchForm]) -> None:
    """Print the speed of the loader for each way of making batches, in sequences per CPU second.

    Decoding of shards does not count.
    """
    least = dict.fromkeys(kinds, float("inf"))
    for _ in range(ROUNDS):
        for name, kind in kinds.items():
            loader = kind.load()
            next(loader)
            start = time.process_time()
            found = sum(count_sequences(update.batches[0]) for update in islice(loader, LOADED))
            least[name] = min(least[name], (time.process_time() - start) / found)
            loader.close()
    for name, seconds in least.items():
        print(f"  {name}: {1 / seconds:.0f} sequences a CPU second", flush=True)


def time_resume() -> None:
    """Print how long a loader that resumes after a million updates takes until its first update."""
    data = generate_data(LAYOUT, vocabulary_size=30522, seed=1, fill=0.5, files=LARGE_FILES, examples=256)
    rows = RowsPackedAtLoad(data)
    form = make_form(rows, batch_size=LATE_ROWS)
    consumed = LATE_UPDATE * LATE_ROWS * 2  # Rough number of examples that the loader skips when it resumes.
    epoch, examples = divmod(consumed, data.examples)
    position = (epoch, examples // rows.window * rows.window, 77)
    for start_at in ((0, 0, 0), position):
        wall, cpu = time.perf_counter(), time.process_time()
        loader = Loader(rows, form=form, batch_size=LATE_ROWS, position=start_at)
        next(loader)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        loader.close()
        print(f"  from {start_at} of {data.examples} examples: {wall:.2f} s, {cpu:.2f} s of CPU", flush=True)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", help="JSON of lists by name; item i counts sequences of i + 1 tokens")
    parser.add_argument("--name", default="wikipedia_512", help="name of the list")
    given = parser.parse_args()
    kit = corpus.find_kit()
    path = given.lengths or (kit and kit / "packing" / "histograms.json")
    counts = json.loads(Path(path).read_text(encoding="utf-8"))[given.name] if path else None
    torch.set_num_threads(1)
    lengths = draw_lengths(counts)
    plan = plan_packs(np.bincount(lengths, minlength=LAYOUT.max_seq_length + 1).astype(np.int64), most=3)
    single, packed = make_single_examples(lengths), make_packed_examples(plan)
    rows = round(SEQUENCES / plan.examples_per_row)
    kinds = {
        "padded rows": BatchForm(Rows(single), True, SEQUENCES),
        "packed rows (3 a row)": BatchForm(PackRows(packed), True, rows),
        "rows packed at load": BatchForm(RowsPackedAtLoad(single), True, rows),
        f"rows from {BINS} bins": BatchForm(RowsFromBins(single, bins=BINS), True, SEQUENCES),
        "flat": BatchForm(Rows(single), False, SEQUENCES),
        "packed rows, flat": BatchForm(PackRows(packed), False, rows),
        "packed at load, flat": BatchForm(RowsPackedAtLoad(single), False, rows),
    }
    print(f"a step of {SEQUENCES} sequences of up to 512 tokens, mean {lengths.mean():.1f}, or {rows} rows:")
    compare_steps(kinds)
    print("loaders alone, one worker, examples in memory:")
    compare_loaders({name: kinds[name] for name in LOADED_KINDS})
    print(f"a resume after {LATE_UPDATE:,} updates of {LATE_ROWS} rows:")
    time_resume()


if __name__ == "__main__":
    main()
