"""Masks drawn at load, 128 ids: our loader beside a DataLoader with Hugging Face's collator for masks.

Theirs: transformers' DataCollatorForLanguageModeling on examples that lie in memory as lists of ids, shuffled
and padded by a DataLoader. Ours reads unmasked shards from their files, opening and decoding included. One
epoch each; examples per CPU second of all threads, so per core. The kernel alone: masks a CPU second.
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


def theirs(examples: list[dict[str, list[int]]], collator: Any) -> int:
    loader: Any = DataLoader(
        examples,  # type: ignore[arg-type] # a list is a dataset
        sampler=RandomSampler(examples),
        batch_size=BATCH,
        collate_fn=collator,
        drop_last=True,
    )
    return sum(len(batch["input_ids"]) for batch in loader)


def ours(directory: str, masking: str, rows: bool) -> int:
    """The examples of one epoch, in padded rows or in flat batches."""
    config = Config.of(train_data=directory, masking=masking)
    data = prepare_for_training(config, open_configured(config, directory))
    form = make_form(Rows(data), batch_size=BATCH, padded=rows)
    loader, count = Loader(Rows(data), form=form, batch_size=BATCH), 0
    while count <= data.examples - BATCH:
        count += len(next(loader).batches[0])
    loader.close()
    return count


def mask_all(masker: Masker, ids: Array, lengths: Array, draws: Draws) -> int:
    """Mask a copy of the examples. Returns the number of masks."""
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    return int(masker.mask(ids.copy(), starts, lengths, draws).counts.sum())


def kernel_rate(directory: str, settings: MaskingSettings) -> float:
    """Masks a CPU second."""
    data = open_dataset(directory)
    batches = list(data.run(range(data.examples)))
    ids = np.concatenate([np.asarray(batch.ids, np.int32) for batch in batches])
    ends = [np.diff(np.asarray(batch.ends, np.int32), prepend=0) for batch in batches]
    lengths = np.concatenate(ends).astype(np.int32)
    count = len(lengths)
    draws = Draws(
        keys=np.full(count, 1, np.uint64),
        numbers=np.arange(count, dtype=np.uint64),
        rates=np.full(count, 0.15),
    )
    masker = make_masker(load_vocabulary(str(corpus.vocabulary()), "mlperf"), settings)
    work = partial(mask_all, masker, ids, lengths, draws)
    return work() / measure.best_cpu(work)


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rates = {}
    with tempfile.TemporaryDirectory() as place:
        part, vocabulary = Path(place, "part"), str(corpus.vocabulary())
        part.write_bytes(corpus.long_text(PART_BYTES))
        words = ["--vocab", vocabulary, "--recipe", "nvidia", "--phase", "1", "--format", "tfrecord"]
        for name, more in (("static", ()), ("dynamic", ("--no-masks",))):
            output = str(Path(place, name))
            measure.command(
                sys.executable, "-m", "bertdata", "create", str(part), "--output", output, *words, *more
            )
            for form, rows in (("rows", True), ("flat", False)):
                work = partial(ours, output, name, rows)
                rates[f"{name} masks, {form}"] = work() / measure.best_cpu(work)
        unmasked = open_dataset(str(Path(place, "dynamic")))
        examples = [
            {
                "input_ids": one.ids,
                "token_type_ids": [int(i >= one.first_length) for i in range(len(one.ids))],
            }
            for batch in unmasked.run(range(unmasked.examples))
            for one in batch.examples()
        ]
        collator = DataCollatorForLanguageModeling(BertTokenizerFast(vocabulary), mlm_probability=0.15)
        work = partial(theirs, examples, collator)
        rates["Hugging Face's collator"] = peer = work() / measure.best_cpu(work, repeats=2)
        kernels = {
            "pieces": kernel_rate(str(Path(place, "dynamic")), MaskingSettings(max_predictions_per_seq=20)),
            "whole words": kernel_rate(
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
