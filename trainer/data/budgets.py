"""Token budgets: a few sizes to which flat batches are padded. They are chosen by a sample of the examples.

A flat batch could be of any size. But compiled devices compile the model for each size, and other devices
allocate memory for each. Batches are therefore padded to one of a few sizes, the budgets. For example, two
micro-batches with sequences of 5 + 3 = 8 and 9 + 6 = 15 tokens fit into budgets of 8 and 16 tokens.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples.columns import Array, compute_lengths
from bertdata.examples.groups import MASKS, get_masks, has_group
from bertdata.records import ShardLayout
from trainer.data.order import draw_numbers

# A budget with more than this fraction of the full size (batch_size x longest sequence) gets the full size.
_NEARLY_WHOLE = 0.97


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ExampleSizes:
    """Sizes of a sample of examples, or of packed rows.

    masks_per_token: number of masked words in all examples, divided by the number of their tokens.
    deviation: standard deviation of the number of masked words in an example from the expected number, which
    is masks_per_token times the example's tokens.
    """

    lengths: Array  # tokens of each example or row
    masks_per_token: float
    deviation: float

    @classmethod
    def of(cls, tokens: Array, masks: Array) -> "ExampleSizes":
        """Compute the sizes of examples.

        tokens: number of tokens of each example.
        masks: number of masked words of each example.
        """
        fraction = masks.sum() / tokens.sum()
        return cls(
            lengths=tokens,
            masks_per_token=float(fraction),
            deviation=float(np.sqrt(np.mean((masks - fraction * tokens) ** 2))),
        )


def sample_sizes(data: OpenedDataset, masked: OpenedDataset | None = None) -> ExampleSizes:
    """Return the sizes of a sample of the dataset's examples. All workers take the same sample.

    If the dataset has a file with the lengths of its examples, tokens are counted in 2^17 examples from 16
    shards all over the dataset. Otherwise the first examples are decoded and counted. Masked words are always
    counted in the first examples.
    masked: the same examples with the masks that will be trained on. None: the masks of ``data``.
    """
    found = ExampleSizes.of(*decode_first_sizes(masked or data))
    if not data.has_lengths:
        return found
    used = [shard for shard in data.shards if shard.examples]
    chosen = used[:: -(-len(used) // 16)]
    each = -(-(1 << 17) // len(chosen))
    return replace(found, lengths=np.concatenate([np.asarray(data.lengths(one)[:each]) for one in chosen]))


def decode_first_sizes(data: OpenedDataset) -> tuple[Array, Array]:
    """Decode at least the first 4096 examples. Return the number of tokens and of masked words of each
    example.
    """
    tokens, masks = list[Array](), list[Array]()
    for batch in (batch for shard in data.shards for batch in data.batches(shard)):
        tokens.append(compute_lengths(batch.ends))
        has_masks = has_group(type(batch), MASKS)
        masks.append(compute_lengths(get_masks(batch).ends) if has_masks else np.zeros(len(batch), np.int64))
        if sum(map(len, tokens)) >= 4096:
            break
    return np.concatenate(tokens), np.concatenate(masks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Shape of a flat batch: its tokens, its slots for masked words and its sequences, with padding."""

    tokens: int
    masks: int
    sequences: int


class Budgets:
    """The budgets, that is, the shapes to which micro-batches of ``batch_size`` rows are padded.

    They are sorted from small to large. Budgets follow from the dataset and the batch size, so they are the
    same on every worker. Training would be correct even if workers had different budgets, because they
    exchange only sums of gradients.
    examples: largest number of examples in a micro-batch.
    usual: the budgets that nearly all micro-batches use, without larger budgets for rare micro-batches.
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
        multiple: int = 1,
    ) -> None:
        """Choose the shapes of the budgets.

        sizes: number of tokens of each budget, in ascending order. A number near batch_size * max_seq_length,
        the size of a batch of full sequences, is replaced by this product.
        examples: sizes of a sample of examples. They determine the number of slots for masked words.
        layout: numbers of the dataset, such as max_seq_length.
        batch_size: number of rows in a micro-batch.
        least: number of tokens that nearly all micro-batches have. The rare smaller ones use the last budget,
        which has room for any amount of padding.
        most: number of tokens that nearly no micro-batch exceeds. Budgets for larger micro-batches are not
        among ``usual``. By default all budgets are.
        multiple: number of which the number of tokens of each budget is a multiple. ``sizes`` are multiples
        already.
        """
        self.batch_size = batch_size
        self.layout = layout
        self.examples = batch_size * layout.sequences_per_row
        self._longest = layout.max_seq_length
        whole = _round_up(batch_size * self._longest, multiple)
        every_mask = self.examples * layout.max_predictions_per_seq
        sizes = [*(size for size in sizes if size < _NEARLY_WHOLE * whole), whole]
        # Slots for masked words: the expected number, plus three standard deviations of the number of masked
        # words in batch_size examples.
        margin = 3 * examples.deviation * math.sqrt(batch_size)
        self.budgets = []
        # How many sequences of padding does a budget need? A batch gets the smallest budget that fits. So it
        # has more tokens than the next smaller budget, and less padding than the difference of the two. A
        # sequence of padding has at most ``_longest`` tokens. For example, the budgets 4096 and 5120 differ
        # by 1024, which are 2 sequences of 512. Half a sequence is added to be safe.
        for before, size in zip([min(least, sizes[0]), *sizes], sizes, strict=False):
            masks = min(every_mask, _round_up(math.ceil(examples.masks_per_token * size + margin), 8))
            # The largest size gets a slot for every masked word that is possible. With packing this would be
            # far more slots than are used in practice.
            if size == whole and layout.packing is None:
                masks = every_mask
            padding = math.ceil((size - before) / self._longest + 0.5)  # half a sequence to be safe
            self.budgets.append(Budget(tokens=size, masks=masks, sequences=self.examples + padding))
        padding = math.ceil(whole / self._longest)  # sequences, if all tokens are padding
        self.budgets.append(Budget(tokens=whole, masks=every_mask, sequences=self.examples + padding))
        self._sizes = [one.tokens for one in self.budgets]
        self.usual = self.budgets[: bisect_left(self._sizes, min(most, whole)) + 1]
        """Budgets that nearly all micro-batches use, without those larger than the data need."""

    def find(self, tokens: int, masks: int, count: int) -> Budget:
        """Return the smallest budget with room for a number of examples.

        tokens: number of tokens of all examples.
        masks: number of masked words of all examples.
        count: number of examples.
        """
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
    multiple: int = 1,
) -> Budgets:
    """Choose a few budgets for a dataset, so that padding is at most 5 % on average.

    examples: sizes of a sample of the dataset's examples.
    layout: numbers of the dataset, such as max_seq_length.
    batch_size: number of rows in a micro-batch.
    token_budget: use the multiples of this number instead. None: choose the budgets.
    group: number of micro-batches that exchange examples, so that all have nearly equally many tokens.
    bins: number of length bins from which micro-batches are drawn. They are assumed to have equally many
    examples.
    multiple: number of which the number of tokens of each budget is a multiple. A given token_budget must be
    a multiple of it.
    """
    if token_budget is not None and token_budget <= 0:
        raise SettingsError(f"token_budget is {token_budget}, expected a number of tokens above 0")
    # Simulate many micro-batches, then choose sizes that fit their numbers of tokens.
    in_bins = np.array_split(np.sort(examples.lengths), min(bins, len(examples.lengths)))
    totals = np.concatenate(
        [_simulate_totals(lengths, batch_size, group, len(in_bins)) for lengths in in_bins]
    )
    least = int(totals.min())
    if token_budget is not None:
        sizes, least = [*range(token_budget, batch_size * layout.max_seq_length, token_budget)], 0
    else:
        sizes = _choose_sizes(totals)
        # add a budget for the rare micro-batches with fewer tokens than any that was simulated
        if least < _NEARLY_WHOLE * sizes[0]:
            sizes, least = [_round_up(least, 8), *sizes], 0
        sizes = sorted({_round_up(size, multiple) for size in sizes})
    most = int(totals.max())
    return Budgets(sizes, examples, layout, batch_size, least=least, most=most, multiple=multiple)


def _simulate_totals(lengths: Array, batch_size: int, group: int, bins: int) -> Array:
    """Simulate many micro-batches, and return the number of tokens of each.

    Their examples are drawn with replacement.
    lengths: number of tokens of each example that may be drawn.
    batch_size: number of examples in a micro-batch.
    group: number of micro-batches that exchange examples, so that all have nearly equally many tokens.
    bins: number of bins, for each of which this function is called. All calls together draw 2^20 examples,
    but at least 64 and at most 4096 micro-batches.
    """
    drawn = batch_size * group
    batches = min(max((1 << 20) // (drawn * bins), -(-64 // bins)), -(-4096 // bins))
    chosen = draw_numbers(batches * drawn, "token budgets") % np.uint64(len(lengths))
    # The micro-batches of a group exchange examples, so each is taken to have the group's mean number of
    # tokens.
    sums = lengths.astype(np.int64)[chosen].reshape(batches, drawn).sum(axis=1)
    totals: Array = -(-sums // group)
    return totals


def _choose_sizes(totals: Array) -> list[int]:
    """Choose the sizes to which numbers of tokens are padded: the fewest with which padding is at most 5 %.

    Up to 4 sizes are used to reach even 1 %, because a few sizes cost little to compile. There are at most 16
    sizes. They are multiples of 64, or of 8 for small numbers.

    totals: number of tokens of each simulated micro-batch.
    """
    # This is dynamic programming. Each round allows one more size. least[j] is the least padding of all
    # totals up to the candidate j with ``count`` sizes, of which j is the largest. chosen[:, j] are these
    # sizes.
    sizes, padding = _measure_padding(totals)
    least, chosen = padding[0], sizes[np.newaxis]
    for count in range(1, 16):
        if least[-1] <= (0.05 if count >= 4 else 0.01) * totals.sum():
            break
        sums = least[:, np.newaxis] + padding
        least, chosen = sums.min(axis=0), np.vstack([chosen[:, sums.argmin(axis=0)], sizes])
    chosen_sizes: list[int] = np.setdiff1d(chosen[:, -1], 0).tolist()
    return chosen_sizes


def _measure_padding(totals: Array) -> tuple[Array, Array]:
    """Return up to 256 candidates for sizes, beginning with 0, and how much padding each pair of them causes.

    padding[i, j]: padding of all totals between candidates i and j if they are padded to candidate j.
    """
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
    """Return the smallest multiple of ``step`` that is not less than the number."""
    return -(-number // step) * step
