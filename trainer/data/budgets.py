"""Token budgets: the few sizes to which flat batches are padded, chosen from a sample of the examples."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples.columns import Array, lengths
from bertdata.examples.groups import MASKS, has_group, masks_of
from bertdata.records import ShardLayout
from trainer.data.order import numbers

_NEARLY_WHOLE = 0.97


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ExampleSizes:
    """Sizes of a sample of examples, or of packed rows.

    masks_per_token: masked slots of all over tokens of all.
    deviation: how far the masks of an example, or row, are from that fraction of its tokens, as a standard
    deviation.
    """

    lengths: Array  # tokens of each example, or row
    masks_per_token: float
    deviation: float

    @classmethod
    def of(cls, tokens: Array, masks: Array) -> "ExampleSizes":
        """The sizes of examples with so many tokens and masked slots each."""
        fraction = masks.sum() / tokens.sum()
        return cls(
            lengths=tokens,
            masks_per_token=float(fraction),
            deviation=float(np.sqrt(np.mean((masks - fraction * tokens) ** 2))),
        )


def sample_sizes(data: OpenedDataset, masked: OpenedDataset | None = None) -> ExampleSizes:
    """The sizes of a sample of the dataset's examples, the same on every worker.

    Tokens are those of 2^17 examples, of 16 shards spread over the dataset, where it has lengths, else, as
    masks always, those of the first examples, decoded. masked: the same examples with the masks that count.
    """
    found = ExampleSizes.of(*first_examples(masked or data))
    if not data.has_lengths:
        return found
    used = [shard for shard in data.shards if shard.examples]
    chosen = used[:: -(-len(used) // 16)]
    each = -(-(1 << 17) // len(chosen))
    return replace(found, lengths=np.concatenate([np.asarray(data.lengths(one)[:each]) for one in chosen]))


def first_examples(data: OpenedDataset) -> tuple[Array, Array]:
    """Tokens and masked slots of the first examples, decoded: batches that hold 4096."""
    tokens, masks = list[Array](), list[Array]()
    for batch in (batch for shard in data.shards for batch in data.batches(shard)):
        tokens.append(lengths(batch.ends))
        has_masks = has_group(type(batch), MASKS)
        masks.append(lengths(masks_of(batch).ends) if has_masks else np.zeros(len(batch), np.int64))
        if sum(map(len, tokens)) >= 4096:
            break
    return np.concatenate(tokens), np.concatenate(masks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Shapes of a flat batch: T tokens, M masked slots, N sequences, those of padding included."""

    tokens: int
    masks: int
    sequences: int


class Budgets:
    """The budgets of micro-batches of ``batch_size`` rows, by size. ``examples`` is the most that they hold.

    They are a function of the dataset and the batch size, so that a micro-batch has the same shape on
    whichever worker computes it. Workers need not agree on them: only sums of gradients leave a worker.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        examples: ExampleSizes,
        layout: ShardLayout,
        batch_size: int,
        *,
        least: int = 0,
        most: float = math.inf,
    ) -> None:
        """sizes: tokens of the budgets, rising. Those near batch_size * max_seq_length are replaced by it.

        least: tokens that all micro-batches have, but a few; these take the last budget, which has sequences
        enough for any padding. most: tokens that no micro-batch exceeds, but a few; by default all of them.
        """
        self.batch_size = batch_size
        self.layout = layout
        self.examples = batch_size * layout.sequences_per_row
        self._longest = layout.max_seq_length
        whole, every_mask = batch_size * self._longest, self.examples * layout.max_predictions_per_seq
        sizes = [*(size for size in sizes if size < _NEARLY_WHOLE * whole), whole]
        margin = 3 * examples.deviation * math.sqrt(batch_size)
        self.budgets = []
        for before, size in zip([min(least, sizes[0]), *sizes], sizes, strict=False):
            masks = min(every_mask, _round_up(math.ceil(examples.masks_per_token * size + margin), 8))
            if size == whole and layout.packing is None:  # else few rows of several examples have as many
                masks = every_mask
            padding = math.ceil((size - before) / self._longest + 0.5)  # half a sequence to spare
            self.budgets.append(Budget(tokens=size, masks=masks, sequences=self.examples + padding))
        self.budgets.append(Budget(tokens=whole, masks=every_mask, sequences=self.examples + batch_size))
        self._sizes = [one.tokens for one in self.budgets]
        self.usual = self.budgets[: bisect_left(self._sizes, min(most, whole)) + 1]
        """The budgets of all micro-batches but a few: without those larger than the data need."""

    def find(self, tokens: int, masks: int, count: int) -> Budget:
        """The smallest budget for ``count`` examples of so many tokens and masked slots."""
        for budget in self.budgets[bisect_left(self._sizes, tokens) :]:
            room = (budget.sequences - count) * self._longest
            if masks <= budget.masks and budget.tokens - tokens <= room:
                return budget
        raise AssertionError(f"{count} examples with {tokens} tokens and {masks} masks fit no budget")


def find_budgets(
    examples: ExampleSizes,
    layout: ShardLayout,
    batch_size: int,
    *,
    token_budget: int | None = None,
    group: int = 1,
    bins: int = 1,
) -> Budgets:
    """The multiples of ``token_budget``, by default few budgets with at most 5 % of padding on average.

    group: micro-batches among which examples are dealt so that all have near equal tokens. bins: length
    bins that a micro-batch's examples are drawn from, here of as many examples each.
    """
    if token_budget is not None and token_budget <= 0:
        raise SettingsError(f"token_budget is {token_budget}, expected a number of tokens above 0")
    in_bins = np.array_split(np.sort(examples.lengths), min(bins, len(examples.lengths)))
    totals = np.concatenate([_draw_totals(lengths, batch_size, group, len(in_bins)) for lengths in in_bins])
    least = int(totals.min())
    if token_budget is not None:
        sizes, least = [*range(token_budget, batch_size * layout.max_seq_length, token_budget)], 0
    else:
        sizes = _choose_sizes(totals)
        if least < _NEARLY_WHOLE * sizes[0]:  # rarely used: for micro-batches shorter than those drawn
            sizes, least = [_round_up(least, 8), *sizes], 0
    return Budgets(sizes, examples, layout, batch_size, least=least, most=int(totals.max()))


def _draw_totals(lengths: Array, batch_size: int, group: int, bins: int) -> Array:
    """The tokens of many micro-batches, of examples drawn with replacement from those of the lengths.

    bins: so many calls make all that are drawn: 2^20 examples, or those of 64 to 4096 micro-batches.
    """
    drawn = batch_size * group
    batches = min(max((1 << 20) // (drawn * bins), -(-64 // bins)), -(-4096 // bins))
    chosen = numbers(batches * drawn, "token budgets") % np.uint64(len(lengths))
    sums = lengths.astype(np.int64)[chosen].reshape(batches, drawn).sum(axis=1)
    totals: Array = -(-sums // group)
    return totals


def _choose_sizes(totals: Array) -> list[int]:
    """The fewest sizes, multiples of 64 (of 8 for small totals), with 5 % of padding on average, at most 16.

    Up to 4 where 1 % needs them: so few cost little to compile. Dynamic programming: of all choices of so
    many sizes, the one with the least padding.
    """
    sizes, padding = _padding_between(totals)
    least, chosen = padding[0], sizes[np.newaxis]  # of the totals up to each size; the sizes up to it
    for count in range(1, 16):
        if least[-1] <= (0.05 if count >= 4 else 0.01) * totals.sum():
            break
        sums = least[:, np.newaxis] + padding
        least, chosen = sums.min(axis=0), np.vstack([chosen[:, sums.argmin(axis=0)], sizes])
    chosen_sizes: list[int] = np.setdiff1d(chosen[:, -1], 0).tolist()
    return chosen_sizes


def _padding_between(totals: Array) -> tuple[Array, Array]:
    """Sizes from 0 on, at most 256, and the padding [i, j] of all totals above size i, up to j, in size j."""
    step = 64 if totals.mean() >= 20 * 64 else 8
    step = max(step, _round_up(math.ceil((totals.max() - totals.min()) / 256), step))
    first = max(int(totals.min()) // step, 1) * step
    sizes = np.insert(np.arange(first, totals.max() + step, step), 0, 0)
    found = np.searchsorted(sizes, totals)
    counts = np.cumsum(np.bincount(found, minlength=len(sizes)))
    sums = np.cumsum(np.bincount(found, totals, len(sizes)))
    padding = sizes * (counts - counts[:, np.newaxis]) - (sums - sums[:, np.newaxis])
    padding[np.tril_indices(len(sizes))] = np.inf
    return sizes, padding


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step
