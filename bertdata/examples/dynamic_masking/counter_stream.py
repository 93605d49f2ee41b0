"""A random stream for each example: Philox4x32-10 (Salmon et al. 2011), a generator without a state.

Its outputs are a function of a key of 64 bits and a counter of 128. The key is a digest of seed, epoch and
shard; the counter holds the example's number in the shard and counts the stream's blocks of four outputs.
So the streams of examples never meet, and none is drawn before another. Twin of
_native/examples/counter_stream.h.
"""

from hashlib import blake2b
from zlib import crc32

from bertdata.records import Documents

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_WORD = (1 << 32) - 1

Words = tuple[int, int, int, int]


def shard_key(seed: int, epoch: int, shard: str) -> int:
    """The key of a shard's examples in an epoch: 8 bytes of BLAKE2b of ``masks/SEED/EPOCH/SHARD``."""
    return int.from_bytes(blake2b(f"masks/{seed}/{epoch}/{shard}".encode(), digest_size=8).digest(), "little")


def philox(counter: Words, key: tuple[int, int]) -> Words:
    """The four outputs of a counter and a key."""
    a, b, c, d = counter
    first, second = key
    for _ in range(_ROUNDS):
        low, high = _MULTIPLIERS[0] * a, _MULTIPLIERS[1] * c
        a, b = (high >> 32) ^ b ^ first, high & _WORD
        c, d = (low >> 32) ^ d ^ second, low & _WORD
        first, second = (first + _KEY_STEPS[0]) & _WORD, (second + _KEY_STEPS[1]) & _WORD
    return a, b, c, d


class CounterStream:
    """The draws of one example: those of the counters (block, 0, example's low and high 32 bits)."""

    def __init__(self, key: int, example: int) -> None:
        self._key = key & _WORD, key >> 32
        self._example = example & _WORD, example >> 32
        self._block = 0
        self._words: list[int] = []

    def word(self) -> int:
        """The next output of 32 bits."""
        if not self._words:
            self._words = list(philox((self._block, 0, *self._example), self._key))
            self._block += 1
        return self._words.pop(0)

    def below(self, limit: int) -> int:
        """An integer in [0, limit), limit at most 2**32: the upper half of output times limit.

        An output is drawn anew while the lower half is below 2**32 mod limit, so that all integers are
        equally likely (Lemire 2019).
        """
        product = self.word() * limit
        while product & _WORD < (1 << 32) % limit:
            product = self.word() * limit
        return product >> 32


def pass_keys(documents: Documents, seed: int, passes: int) -> list[int]:
    """The keys of the streams of blocks in files: a pass over the text takes the place of an epoch at load.

    So the masks of a block are a function of the seed, the pass, the text and the block's number in it,
    whatever else is drawn. The text counts because each part of a corpus has the same seed; the CRC-32 of
    its ids stands for it.
    """
    text = f"{crc32(documents.ids):08x}"
    return [shard_key(seed, number, text) for number in range(passes)]
