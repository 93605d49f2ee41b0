"""The settings of ModernBERT's data loader."""

from dataclasses import dataclass

from bertdata.errors import SettingsError

ORDER_SEED, MASK_SEED = 9176, 42
"""Default seeds for the order of examples and for the masks. ``shuffle_seed`` in ModernBERT's configuration
replaces both.
"""

_BUFFERED_BATCHES = 5
_MOST_SEED = (1 << 63) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenWarmup:
    """A warm-up of the batch size: batches are small at first and grow to the full size.

    sequences: number of sequences in the first batches.
    tokens: number of tokens, over all ranks, after which batches have the full size.
    """

    sequences: int
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ModernBertSettings:
    """Settings of the loader on one rank. ModernBERT's name of a setting is in brackets if it differs.

    batch_size: number of sequences that are read from the source at a time (``device_train_batch_size``).
    micro_batch_size: number of sequences of full length that fit into one row
        (``device_train_microbatch_size``).
    max_seq_len: most ids of a sequence. Longer sequences are cut.
    mask_prob: share of the positions to predict.
    order_seed: seed of the order in epoch 0. In later epochs the epoch's number is added.
    mask_seed: seed of the masks in epoch 0. In later epochs the epoch's number is added.
    shuffle: True puts the examples of each epoch in a random order.
    drop_last: what happens if the examples do not divide evenly among the ranks. True drops some, False
        repeats some.
    buffer_size: most sequences that may have been read without being in a row yet. None means five batches.
    rank: number of this rank (process of distributed training), from 0.
    world: number of ranks.
    warmup: warm-up of the batch size. None means that all batches have the full size.

    Raises SettingsError, which names the setting that is out of range.
    """

    batch_size: int
    micro_batch_size: int
    max_seq_len: int
    mask_prob: float = 0.3
    order_seed: int = ORDER_SEED
    mask_seed: int = MASK_SEED
    shuffle: bool = True
    drop_last: bool = True
    buffer_size: int | None = None
    rank: int = 0
    world: int = 1
    warmup: TokenWarmup | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "micro_batch_size", "max_seq_len", "world"):
            _check_setting(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}, expected 1 or more")
        for name in ("order_seed", "mask_seed"):
            found = getattr(self, name)
            _check_setting(0 <= found <= _MOST_SEED, f"{name} is {found}, expected 0 to {_MOST_SEED}")
        _check_setting(
            self.batch_size % self.micro_batch_size == 0,
            f"batch_size is {self.batch_size}, expected a multiple of micro_batch_size "
            f"({self.micro_batch_size})",
        )
        _check_setting(
            0 < self.mask_prob <= 1, f"mask_prob is {self.mask_prob:g}, expected above 0, at most 1"
        )
        _check_setting(
            0 <= self.rank < self.world, f"rank is {self.rank} of world {self.world}, expected less"
        )
        _check_setting(
            self.buffered > self.batch_size,
            f"buffer_size is {self.buffered}, expected more than batch_size ({self.batch_size})",
        )
        if self.warmup is not None:
            self._check_warmup(self.warmup)

    def _check_warmup(self, warmup: TokenWarmup) -> None:
        least, size = warmup.sequences, self.micro_batch_size
        _check_setting(
            least % size == 0 and size <= least < self.batch_size,
            f"the warm-up starts from {least} sequences, expected a multiple of micro_batch_size ({size}) "
            f"below batch_size ({self.batch_size})",
        )
        _check_setting(warmup.tokens >= 1, f"the warm-up takes {warmup.tokens} tokens, expected 1 or more")

    @property
    def rows(self) -> int:
        """Number of rows of a batch after the warm-up."""
        return self.batch_size // self.micro_batch_size

    @property
    def width(self) -> int:
        """Number of ids in a row."""
        return self.micro_batch_size * self.max_seq_len

    @property
    def buffered(self) -> int:
        """The most sequences that may have been read without being in a row yet."""
        return _BUFFERED_BATCHES * self.batch_size if self.buffer_size is None else self.buffer_size


def _check_setting(is_right: bool, problem: str) -> None:
    if not is_right:
        raise SettingsError(problem)
