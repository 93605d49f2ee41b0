"""CPU time of writing and reading Arrow datasets, by this project and by Hugging Face's ``datasets``.

This project's time for fairseq's binary format is measured too.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np

from benchmarks.measure import measure_best_cpu
from bertdata.dataset.reader import open_dataset
from bertdata.examples.columns import Array, slice_batch
from bertdata.examples.mlm.batch import MlmBatch
from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout
from bertdata.shards.arrow import ArrowWriter
from bertdata.shards.arrow_fields import dump_dataset_info, dump_dataset_state, list_arrow_fields
from bertdata.shards.fairseq.lines import LinesWriter, open_lines
from bertdata.sources.saved_datasets import INFO, STATE

BLOCKS, LONGEST, BATCH, REPEATS = 20_000, 512, 1_000, 3
LAYOUT = ShardLayout(objective="mlm", max_seq_length=LONGEST, max_predictions_per_seq=77)


def make_blocks() -> MlmBatch:
    """Return blocks (examples without padding) of 128 to 512 random token ids."""
    draw = np.random.Generator(np.random.PCG64(1))
    ends = np.cumsum(draw.integers(LONGEST // 4, LONGEST + 1, BLOCKS)).astype(np.uint32)
    ids = draw.integers(5, 30_000, int(ends[-1])).astype(np.uint16)
    nothing = np.zeros(0, np.uint16)
    return MlmBatch(
        ids=ids, ends=ends, positions=nothing, labels=nothing, mask_ends=np.zeros(BLOCKS, np.uint32)
    )


def write_ours(blocks: MlmBatch, folder: Path) -> None:
    """Write the blocks as an Arrow dataset with this project's writer."""
    folder.mkdir(exist_ok=True)
    with (folder / "data-00000-of-00001.arrow").open("wb") as file:
        writer = ArrowWriter(file, LAYOUT, has_masks=False)
        for start in range(0, BLOCKS, BATCH):
            writer.write(slice_batch(blocks, start, start + BATCH))
        writer.close()
    (folder / INFO).write_bytes(dump_dataset_info(list_arrow_fields(find_objective("mlm"), has_masks=False)))
    (folder / STATE).write_bytes(dump_dataset_state({"data-00000-of-00001.arrow": ""}))


def write_theirs(blocks: MlmBatch, folder: Path) -> None:
    """Write the blocks in the way that users of ``datasets`` write their rows.

    The rows are arrays from a generator, with named features.
    """
    features = datasets.Features(
        {
            "input_ids": datasets.List(datasets.Value("int32")),
            "attention_mask": datasets.List(datasets.Value("bool")),
        }
    )
    with tempfile.TemporaryDirectory() as cache:
        made = datasets.Dataset.from_generator(
            rows, features=features, cache_dir=cache, gen_kwargs={"ids": blocks.ids, "ends": blocks.ends}
        )
        made.save_to_disk(str(folder))


def rows(ids: Array, ends: Array) -> Iterator[dict[str, Array]]:
    """Yield each block as a dictionary that contains the array of its ids.

    ids: the ids of all blocks, one after another.
    ends: position in ``ids`` at which each block ends.
    """
    for row in np.split(ids, ends[:-1]):
        yield {"input_ids": row, "attention_mask": np.ones(len(row), bool)}


def read_ours(folder: Path) -> int:
    """Read the dataset with this project's reader and return its number of ids."""
    data = open_dataset(str(folder), unverified=True, objective="mlm")
    return sum(len(batch.ids) for shard in data.shards for batch in data.batches(shard))


def read_theirs(folder: Path, form: str | None) -> int:
    """Read the dataset with Hugging Face's ``datasets`` and return its number of ids.

    form: format in which rows are returned, such as "numpy". None: Python lists.
    """
    data: Any = datasets.load_from_disk(str(folder))
    if form is None:
        return sum(len(row["input_ids"]) for row in data)
    batches = data.with_format(form).iter(BATCH)
    if form == "arrow":
        return sum(len(batch["input_ids"].combine_chunks().flatten()) for batch in batches)
    return sum(len(row) for batch in batches for row in batch["input_ids"])


def time_fairseq(blocks: MlmBatch, folder: Path) -> None:
    """Print the speed of writing and reading fairseq's ``.bin`` and ``.idx`` files, in MB per CPU second."""
    path, megabytes = folder / "train.bin", 2 * len(blocks.ids) / 1e6

    def write() -> None:
        """Write the blocks as a pair of fairseq's files."""
        with path.open("wb") as file:
            writer = LinesWriter(sink=file, kind="u2")
            writer.write(blocks.ids, blocks.ends)
        (folder / "train.idx").write_bytes(writer.index())

    def read() -> int:
        """Read the pair of files and return the number of ids."""
        with path.open("rb") as file:
            lines = open_lines(file, str(path))
            return sum(int(piece.ids.sum(dtype=np.int64)) for piece in lines.read_pieces(4096))

    wrote, found = measure_best_cpu(write, REPEATS), measure_best_cpu(read, REPEATS)
    blocks_read = measure_best_cpu(lambda: read_ours(folder), REPEATS)
    print(
        f"fairseq's lines: written {megabytes / wrote:.0f} MB/s, read {megabytes / found:.0f} MB/s, "
        f"as blocks {megabytes / blocks_read:.0f} MB/s"
    )


def main() -> None:
    """Print the CPU seconds of this project and of ``datasets``."""
    datasets.disable_progress_bars()
    blocks = make_blocks()
    tokens = len(blocks.ids)
    with tempfile.TemporaryDirectory() as place:
        ours, theirs = Path(place, "ours"), Path(place, "theirs")
        cost = measure_best_cpu(lambda: write_ours(blocks, ours), REPEATS)
        peer = measure_best_cpu(lambda: write_theirs(blocks, theirs), REPEATS)
        print(f"written: {tokens / cost / 1e6:.0f} million ids a second, {peer / cost:.1f} times datasets")
        reading: dict[str, Callable[[], int]] = {
            f"datasets, {form or 'rows'}": lambda form=form: read_theirs(ours, form)
            for form in (None, "numpy", "torch", "arrow")
        }
        cost = measure_best_cpu(lambda: read_ours(ours), REPEATS)
        print(f"read: {tokens / cost / 1e6:.0f} million ids a second")
        for name, read in reading.items():
            assert read() == tokens
            print(f"  {measure_best_cpu(read, REPEATS) / cost:.1f} times {name}")
        time_fairseq(blocks, Path(place))


if __name__ == "__main__":
    main()
