"""Random padded rows for tests, and flat batches made from them by a plain loop.

A flat batch holds the tokens of all its sequences one after another, without padding between them. Nothing
here shares code with the trainer's loader.
"""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from tests.support.padded_examples import PaddedExamples
from trainer.data.batches import Batch, FlatBatch


def flatten(batch: PaddedExamples, *, budget: int | None = None, slots: int | None = None) -> FlatBatch:
    """Return the examples as a flat batch, padded at its end to ``budget`` tokens and ``slots`` masked slots.

    The padding is divided into a fixed number of sequences, none longer than a row.

    budget: None adds no padding.
    slots: None uses the number of masked tokens.
    """
    ids, types, places = list[int](), list[int](), list[int]()
    rows, labels = list[int](), list[int]()
    firsts, ends = list[int](), [0]
    for example in range(len(batch)):
        start, length = len(ids), int(batch.attention_mask[example].sum())
        firsts.append(start if length else 0)
        ids += batch.input_ids[example, :length].tolist()
        types += batch.token_type_ids[example, :length].tolist()
        places += range(length)
        ends.append(start + length)
        for slot in range(batch.masked_lm_ids.shape[1]):
            if batch.masked_lm_weights[example, slot] > 0:
                rows.append(start + int(batch.masked_lm_positions[example, slot]))
                labels.append(int(batch.masked_lm_ids[example, slot]))
    longest, tokens = batch.input_ids.shape[1], len(ids)
    budget, slots = budget or tokens, slots or len(rows)
    for _ in range(-(-budget // longest)):
        length = min(longest, budget - len(ids))
        ids += [0] * length
        types += [0] * length
        places += range(length)
        ends.append(len(ids))
    assert len(ids) == budget
    unused = [0] * (slots - len(rows))
    weights = torch.tensor([1.0] * len(rows) + [0.0] * len(unused))
    return FlatBatch(
        input_ids=_int32(ids),
        token_type_ids=_int32(types),
        position_ids=_int32(places),
        ends=_int32(ends),
        first_rows=_int32(firsts),
        masked_lm_rows=_int32(rows + unused),
        masked_lm_ids=_int32(labels + unused),
        masked_lm_weights=weights,
        next_sentence_labels=batch.next_sentence_labels,
        longest=longest,
        tokens=tokens,
    )


def make_rows(
    lengths: Sequence[int], *, longest: int, slots: int, vocabulary: int, seed: int = 0
) -> PaddedExamples:
    """Return random padded examples of these lengths. 15 % of the tokens, and at least one, are masked."""
    draw = torch.Generator().manual_seed(seed)
    size = len(lengths)
    real = (torch.arange(longest) < torch.tensor(lengths)[:, None]).int()
    positions, filled = torch.zeros(size, slots, dtype=torch.int32), torch.zeros(size, slots)
    for example, length in enumerate(lengths):
        used = min(max(1, round(0.15 * length)), slots)
        positions[example, :used] = torch.randperm(length, generator=draw)[:used].sort().values.int()
        filled[example, :used] = 1
    ids, labels = (
        torch.randint(1, vocabulary, shape, generator=draw, dtype=torch.int32)
        for shape in ((size, longest), (size, slots))
    )
    return PaddedExamples(
        input_ids=ids * real,
        token_type_ids=(torch.arange(longest) >= 5).int() * real,
        attention_mask=real,
        masked_lm_positions=positions,
        masked_lm_ids=labels * filled.int(),
        masked_lm_weights=filled,
        next_sentence_labels=torch.randint(0, 2, (size,), generator=draw, dtype=torch.int32),
    )


def examples_of(batch: Batch | PaddedExamples) -> list[tuple[list[int], list[int], list[int]]]:
    """Return (ids, masked positions, labels) of each real example in a batch of any form."""
    if not isinstance(batch, FlatBatch):
        batch = flatten(batch)
    used = batch.masked_lm_weights > 0
    rows, labels = batch.masked_lm_rows[used].tolist(), batch.masked_lm_ids[used].tolist()
    found = []
    for start, end in itertools.pairwise(batch.ends.tolist()[: len(batch) + 1]):
        masks = [(row - start, label) for row, label in zip(rows, labels, strict=True) if start <= row < end]
        places = [place for place, _ in masks]
        found.append((batch.input_ids[start:end].tolist(), places, [label for _, label in masks]))
    return [example for example in found if example[0]]


def _int32(values: list[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)
