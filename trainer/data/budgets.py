"""Token budgets: the few sizes to which flat batches are padded, chosen from a sample of the examples.

A flat batch could be of any size. But compiled devices compile the model for each size, and other devices
allocate memory for each. So batches are padded to one of a few sizes, the budgets. For example, two
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

# a budget above this share of the full size (batch_size x longest sequence) becomes the full size
_NEARLY_WHOLE = 0.97


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ExampleSizes:
    """Sizes of a sample of examples, or of packed rows.

    masks_per_token: masked slots of all examples divided by their tokens.
    deviation: standard deviation of an example's masked slots from masks_per_token times its tokens.
    """

    lengths: Array  # tokens of each example or row
    masks_per_token: float
    deviation: float

    @classmethod
    def of(cls, tokens: Array, masks: Array) -> "ExampleSizes":
        """Make the sizes from the number of tokens and of masked slots of each example."""
        fraction = masks.sum() / tokens.sum()
        return cls(
            lengths=tokens,
            masks_per_token=float(fraction),
            deviation=float(np.sqrt(np.mean((masks - fraction * tokens) ** 2))),
        )


def sample_sizes(data: OpenedDataset, masked: OpenedDataset | None = None) -> ExampleSizes:
    """Return the sizes of a sample of the dataset's examples, the same on every worker.

    If the dataset has lengths, tokens come from 2^17 examples in 16 shards spread over the dataset. Otherwise
    tokens come from the first examples, decoded, as masked slots always do.
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
    """Decode the first batches, with at least 4096 examples.

    Return the number of tokens and the number of masked slots of each example.
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
    """Shape of a flat batch: T tokens, M masked slots and N sequences, including padding."""

    tokens: int
    masks: int
    sequences: int


class Budgets:
    """The budgets for micro-batches of ``batch_size`` rows, from small to large.

    Budgets are a function of the dataset and the batch size, so that a micro-batch has the same shape on
    every worker. Training would be correct even if workers had different budgets, because workers exchange
    only sums of gradients.
    examples: most examples that a micro-batch may have.
    usual: budgets that nearly all micro-batches use. Larger budgets, for rare micro-batches, are not among
    them.
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
        """Choose the shapes of the budgets.

        sizes: tokens of the budgets, ascending. Sizes near batch_size * max_seq_length, the size of a batch
        of full sequences, are replaced by that product.
        examples: sizes of a sample, from which the masked slots of a budget follow.
        least: number of tokens that nearly all micro-batches reach. Smaller micro-batches, which are rare,
        use the last budget, which has enough sequences for any amount of padding.
        most: number of tokens that nearly no micro-batch exceeds. Budgets needed only beyond it are not
        listed as usual. By default all budgets are usual.
        """
        self.batch_size = batch_size
        self.layout = layout
        self.examples = batch_size * layout.sequences_per_row
        self._longest = layout.max_seq_length
        whole, every_mask = batch_size * self._longest, self.examples * layout.max_predictions_per_seq
        sizes = [*(size for size in sizes if size < _NEARLY_WHOLE * whole), whole]
        # Masked slots: the expected number plus three standard deviations of a sum over batch_size examples.
        margin = 3 * examples.deviation * math.sqrt(batch_size)
        self.budgets = []
        # A batch gets the smallest budget that fits, so it has more tokens than the budget before, and its
        # padding is less than the difference. The padding needs room for sequences of at most ``longest``
        # tokens: budgets 4096 and 5120, longest 512 -> 1024 / 512 = 2 sequences, plus half a sequence to
        # spare.
        for before, size in zip([min(least, sizes[0]), *sizes], sizes, strict=False):
            masks = min(every_mask, _round_up(math.ceil(examples.masks_per_token * size + margin), 8))
            # with packing, a few rows of several examples may have as many tokens as many unpacked examples
            if size == whole and layout.packing is None:
                masks = every_mask
            padding = math.ceil((size - before) / self._longest + 0.5)  # half a sequence to spare
            self.budgets.append(Budget(tokens=size, masks=masks, sequences=self.examples + padding))
        self.budgets.append(Budget(tokens=whole, masks=every_mask, sequences=self.examples + batch_size))
        self._sizes = [one.tokens for one in self.budgets]
        self.usual = self.budgets[: bisect_left(self._sizes, min(most, whole)) + 1]
        """Budgets that nearly all micro-batches use, without those larger than the data need."""

    def find(self, tokens: int, masks: int, count: int) -> Budget:
        """Return the smallest budget with room for ``count`` examples with these tokens and masks."""
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
    """Return the budgets for a dataset: few sizes, with at most 5 % of padding on average.

    token_budget: use its multiples as sizes instead.
    group: number of micro-batches among which examples are dealt so that all have nearly equal tokens.
    bins: length bins that a micro-batch is drawn from. Here each is assumed to have equally many examples.
    """
    if token_budget is not None and token_budget <= 0:
        raise SettingsError(f"token_budget is {token_budget}, expected a number of tokens above 0")
    # Simulate many micro-batches, then choose sizes that suit their total numbers of tokens.
    in_bins = np.array_split(np.sort(examples.lengths), min(bins, len(examples.lengths)))
    totals = np.concatenate([_draw_totals(lengths, batch_size, group, len(in_bins)) for lengths in in_bins])
    least = int(totals.min())
    if token_budget is not None:
        sizes, least = [*range(token_budget, batch_size * layout.max_seq_length, token_budget)], 0
    else:
        sizes = _choose_sizes(totals)
        # a rarely used budget, for micro-batches shorter than all that were simulated
        if least < _NEARLY_WHOLE * sizes[0]:
            sizes, least = [_round_up(least, 8), *sizes], 0
    return Budgets(sizes, examples, layout, batch_size, least=least, most=int(totals.max()))


def _draw_totals(lengths: Array, batch_size: int, group: int, bins: int) -> Array:
    """Return the tokens of many simulated micro-batches, whose examples are drawn with replacement.

    lengths: tokens of the examples to draw from.
    bins: number of calls that share the simulation. All calls together draw 2^20 examples, but at least 64
    and at most 4096 micro-batches.
    """
    drawn = batch_size * group
    batches = min(max((1 << 20) // (drawn * bins), -(-64 // bins)), -(-4096 // bins))
    chosen = draw_numbers(batches * drawn, "token budgets") % np.uint64(len(lengths))
    # The examples of a group are dealt evenly to its micro-batches, so each gets the mean number of tokens.
    sums = lengths.astype(np.int64)[chosen].reshape(batches, drawn).sum(axis=1)
    totals: Array = -(-sums // group)
    return totals


def _choose_sizes(totals: Array) -> list[int]:
    """Choose the fewest sizes, at most 16, that keep the padding at 5 % on average.

    Up to 4 sizes are used to reach 1 %, because so few cost little to compile. Sizes are multiples of 64, or
    of 8 for small totals.
    """
    # Dynamic programme. least[j]: least padding of all totals up to size j with ``count`` sizes, the last
    # being j. chosen[:, j]: these sizes. Each round allows one more size.
    sizes, padding = _padding_between(totals)
    least, chosen = padding[0], sizes[np.newaxis]
    for count in range(1, 16):
        if least[-1] <= (0.05 if count >= 4 else 0.01) * totals.sum():
            break
        sums = least[:, np.newaxis] + padding
        least, chosen = sums.min(axis=0), np.vstack([chosen[:, sums.argmin(axis=0)], sizes])
    chosen_sizes: list[int] = np.setdiff1d(chosen[:, -1], 0).tolist()
    return chosen_sizes


def _padding_between(totals: Array) -> tuple[Array, Array]:
    """Return candidate sizes from 0 on, at most 256, and the padding between them.

    padding[i, j]: padding of all totals above size i and up to size j if they are padded to size j.
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
    """Return the next multiple of ``step``."""
    return -(-number // step) * step
