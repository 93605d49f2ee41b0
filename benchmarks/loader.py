"""Speed from shards to batches of tensors: this project's loader, and a DataLoader as in NVIDIA's trainer.

NVIDIA's way is rewritten here. h5py reads a whole HDF5 file, Python takes one example after another and makes
a tensor of each field, and a DataLoader stacks the tensors. Examples have 128 ids and 20 masks. Each loader
makes one epoch, and opening and reading the files counts. The figure is examples per CPU second of all
threads, which is the speed of one core.
"""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

from benchmarks import corpus, measure
from bertdata.dataset.reader import open_dataset
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.loader import Loader

PART_BYTES = 4_000_000
BATCH = 64
STEP_SECONDS = 0.005
STEPS = 200
FIELDS = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions", "masked_lm_ids",
          "next_sentence_labels")  # fmt: skip


class SingleExamples(Dataset[list[torch.Tensor]]):
    """Dataset of the examples of a file, which makes the tensors of one example at a time."""

    def __init__(self, path: str, predictions: int) -> None:
        with h5py.File(path) as file:
            self.arrays = [np.asarray(file[name][:]) for name in FIELDS]
        self.predictions = predictions

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: int) -> list[torch.Tensor]:
        ids, mask, segments, positions, labels, following = (
            torch.from_numpy(np.asarray(array[index].astype(np.int64))) for array in self.arrays
        )
        labelled = torch.ones(ids.shape, dtype=torch.long) * -1
        ends = (positions == 0).nonzero()
        count = int(ends[0].item()) if len(ends) else self.predictions
        labelled[positions[:count]] = labels[:count]
        return [ids, segments, mask, labelled, following]


def load_theirs(path: str) -> int:
    """Load one epoch in NVIDIA's way and return the number of examples."""
    data = SingleExamples(path, 20)
    loader: Any = DataLoader(data, sampler=RandomSampler(data), batch_size=BATCH, drop_last=True)
    return sum(len(batch[0]) for batch in loader)


def load_ours(directory: str, rows: bool) -> int:
    """Load one epoch with this project's loader and return the number of examples.

    rows: True for padded rows. False for flat batches, whose sequences follow each other without padding.
    """
    data = open_dataset(directory)
    form = make_form(Rows(data), batch_size=BATCH, padded=rows)
    loader, count = Loader(Rows(data), form=form, batch_size=BATCH), 0
    while count <= data.examples - BATCH:
        count += len(next(loader).batches[0])
    loader.close()
    return count


def measure_waiting(directory: str) -> float:
    """Return how many seconds a training loop waits for its flat batches in total.

    The loop spends 5 ms on each batch, which corresponds to a speed of 12,800 examples per second.
    """
    data = open_dataset(directory)
    loader = Loader(Rows(data), form=make_form(Rows(data), batch_size=BATCH), batch_size=BATCH)
    for _ in range(STEPS):
        next(loader)
        time.sleep(STEP_SECONDS)
    loader.close()
    return loader.waited


def main() -> None:
    """Print all speeds."""
    torch.set_num_threads(1)
    rates = {}
    with tempfile.TemporaryDirectory() as place:
        part = Path(place, "part")
        part.write_bytes(corpus.make_long_text(PART_BYTES))
        for container in ("hdf5", "tfrecord", "parquet"):
            output = str(Path(place, container))
            words = ["--vocab", str(corpus.find_vocabulary()), "--recipe", "nvidia", "--phase", "1"]
            measure.measure_command(sys.executable, "-m", "bertdata", "create", str(part), "--output", output,
                            *words, "--format", container)  # fmt: skip
            for form, rows in (("rows", True), ("flat", False)):
                work = partial(load_ours, output, rows)
                examples = work()
                rates[f"{container}, {form}"] = examples / measure.measure_best_cpu(work)
        shard = str(Path(place, "hdf5", "part.hdf5"))
        rates["NVIDIA's pattern, hdf5"] = load_theirs(shard) / measure.measure_best_cpu(
            lambda: load_theirs(shard), repeats=2
        )
        waited = measure_waiting(str(Path(place, "tfrecord")))
    slowest = rates["NVIDIA's pattern, hdf5"]
    print(f"loading {examples} examples of 128 ids in batches of {BATCH}, examples a second and core:")
    for name, rate in rates.items():
        print(f"  {name:<22} {rate:10,.0f}   {rate / slowest:5.1f} times NVIDIA's pattern (wanted: 5)")
    print(f"  {STEPS} steps of {STEP_SECONDS * 1e3:.0f} ms waited {waited * 1e3:.1f} ms for their batches")


if __name__ == "__main__":
    main()
