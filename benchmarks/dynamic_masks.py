"""Speed of drawing masks while loading: this project's loader, and a DataLoader with Hugging Face's collator.

Hugging Face's DataCollatorForLanguageModeling gets examples of 128 ids as lists in memory, which a DataLoader
shuffles and pads. This project's loader reads unmasked shards, and its time includes opening and decoding the
files. Each loader makes one epoch. The figure is examples per CPU second of all threads, which is the speed
of one core.

The masking kernel is also measured alone, in masks per CPU second.
"""

import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, RandomSampler
from transformers import BertTokenizerFast, DataCollatorForLanguageModeling

from benchmarks import corpus, measure
from bertdata.dataset.reader import open_dataset
from bertdata.examples.columns import Array
from bertdata.examples.dynamic_masking.masker import Draws, Masker, make_masker
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.tokens.load import load_vocabulary
from trainer.config.settings import Config
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.loader import Loader
from trainer.data.opening import open_configured, prepare_for_training

PART_BYTES = 4_000_000
BATCH, LENGTH, PREDICTIONS = 64, 128, 20


def load_theirs(examples: list[dict[str, list[int]]], collator: Any) -> int:
    """Load one epoch with Hugging Face's collator and return the number of examples."""
    loader: Any = DataLoader(
        examples,  # type: ignore[arg-type] # a list is a dataset
        sampler=RandomSampler(examples),
        batch_size=BATCH,
        collate_fn=collator,
        drop_last=True,
    )
    return sum(len(batch["input_ids"]) for batch in loader)


def load_ours(directory: str, masking: str, rows: bool) -> int:
    """Load one epoch with this project's loader and return the number of examples.

    directory: directory of the unmasked shards.
    masking: name of the way to draw masks.
    rows: True for padded rows. False for flat batches, whose sequences follow each other without padding.
    """
    config = Config.of(train_data=directory, masking=masking)
    data = prepare_for_training(config, open_configured(config, directory))
    form = make_form(Rows(data), batch_size=BATCH, padded=rows)
    loader, count = Loader(Rows(data), form=form, batch_size=BATCH), 0
    while count <= data.examples - BATCH:
        count += len(next(loader).batches[0])
    loader.close()
    return count


def mask_all(masker: Masker, ids: Array, lengths: Array, draws: Draws) -> int:
    """Draw masks in a copy of the examples, and return the number of masked positions.

    ids: the ids of all examples, one after another.
    lengths: number of ids of each example.
    draws: source of the random numbers.
    """
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    return int(masker.mask(ids.copy(), starts, lengths, draws).counts.sum())


def measure_kernel_rate(directory: str, settings: MaskingSettings) -> float:
    """Return the number of masks that the kernel draws per CPU second."""
    data = open_dataset(directory)
    batches = list(data.read_range(range(data.examples)))
    ids = np.concatenate([np.asarray(batch.ids, np.int32) for batch in batches])
    ends = [np.diff(np.asarray(batch.ends, np.int32), prepend=0) for batch in batches]
    lengths = np.concatenate(ends).astype(np.int32)
    count = len(lengths)
    draws = Draws(
        keys=np.full(count, 1, np.uint64),
        numbers=np.arange(count, dtype=np.uint64),
        rates=np.full(count, 0.15),
    )
    masker = make_masker(load_vocabulary(str(corpus.find_vocabulary()), "mlperf"), settings)
    work = partial(mask_all, masker, ids, lengths, draws)
    return work() / measure.measure_best_cpu(work)


def main() -> None:
    """Print all speeds."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rates = {}
    with tempfile.TemporaryDirectory() as place:
        part, vocabulary = Path(place, "part"), str(corpus.find_vocabulary())
        part.write_bytes(corpus.make_long_text(PART_BYTES))
        words = ["--vocab", vocabulary, "--recipe", "nvidia", "--phase", "1", "--format", "tfrecord"]
        for name, more in (("static", ()), ("dynamic", ("--no-masks",))):
            output = str(Path(place, name))
            measure.measure_command(
                sys.executable, "-m", "bertdata", "create", str(part), "--output", output, *words, *more
            )
            for form, rows in (("rows", True), ("flat", False)):
                work = partial(load_ours, output, name, rows)
                rates[f"{name} masks, {form}"] = work() / measure.measure_best_cpu(work)
        unmasked = open_dataset(str(Path(place, "dynamic")))
        examples = [
            {
                "input_ids": one.ids,
                "token_type_ids": [int(i >= one.first_length) for i in range(len(one.ids))],
            }
            for batch in unmasked.read_range(range(unmasked.examples))
            for one in batch.examples()
        ]
        collator = DataCollatorForLanguageModeling(BertTokenizerFast(vocabulary), mlm_probability=0.15)
        work = partial(load_theirs, examples, collator)
        rates["Hugging Face's collator"] = peer = work() / measure.measure_best_cpu(work, repeats=2)
        kernels = {
            "pieces": measure_kernel_rate(
                str(Path(place, "dynamic")), MaskingSettings(max_predictions_per_seq=20)
            ),
            "whole words": measure_kernel_rate(
                str(Path(place, "dynamic")),
                MaskingSettings(max_predictions_per_seq=20, whole_word_mask=True),
            ),
        }
    print(
        f"loading {len(examples)} examples of {LENGTH} ids, batches of {BATCH}, examples a second and core:"
    )
    for name, rate in rates.items():
        print(f"  {name:<24} {rate:10,.0f}   {rate / peer:5.1f} times Hugging Face's collator (wanted: 5)")
    for name, rate in kernels.items():
        print(f"  the kernel alone, {name:<12} {rate / 1e6:6.1f} million masks a second and core")


if __name__ == "__main__":
    main()
