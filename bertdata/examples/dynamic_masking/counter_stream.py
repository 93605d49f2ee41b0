"""Random streams that are computed from a counter, one stream per example: Philox4x32-10 (Salmon et al.
2011).

Philox has no state. Its output is a function of a 64-bit key and a 128-bit counter. Here the key is a digest
of seed, epoch and shard. The counter contains the example's number in the shard and the number of the block
of four outputs. Streams of different examples therefore never overlap, and examples can be masked in any
order. Pure-Python twin of _native/examples/counter_stream.h.
"""

from hashlib import blake2b
from zlib import crc32

from bertdata.records import Documents

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_WORD = (1 << 32) - 1

Words = tuple[int, int, int, int]


def derive_shard_key(seed: int, epoch: int, shard: str) -> int:
    """Return the Philox key for all examples of a shard in an epoch.

    The key is a BLAKE2b digest of 8 bytes over the text ``masks/SEED/EPOCH/SHARD``.
    """
    return int.from_bytes(blake2b(f"masks/{seed}/{epoch}/{shard}".encode(), digest_size=8).digest(), "little")


def compute_philox(counter: Words, key: tuple[int, int]) -> Words:
    """Return the four 32-bit outputs of the random generator Philox4x32-10 for a counter and a key."""
    a, b, c, d = counter
    first, second = key
    # In each round, two of the four words are multiplied. The halves of the products are mixed with the other
    # two words and the key. The key itself changes by a constant after each round.
    for _ in range(_ROUNDS):
        low, high = _MULTIPLIERS[0] * a, _MULTIPLIERS[1] * c
        a, b = (high >> 32) ^ b ^ first, high & _WORD
        c, d = (low >> 32) ^ d ^ second, low & _WORD
        first, second = (first + _KEY_STEPS[0]) & _WORD, (second + _KEY_STEPS[1]) & _WORD
    return a, b, c, d


class CounterStream:
    """Random stream of one example.

    The counter that Philox gets has four words: the number of the block of outputs, 0, and the low and high
    32 bits of the example's number.
    """

    def __init__(self, key: int, example: int) -> None:
        self._key = key & _WORD, key >> 32
        self._example = example & _WORD, example >> 32
        self._block = 0
        self._words: list[int] = []

    def word(self) -> int:
        """Return the next 32 random bits as an integer."""
        if not self._words:
            self._words = list(compute_philox((self._block, 0, *self._example), self._key))
            self._block += 1
        return self._words.pop(0)

    def below(self, limit: int) -> int:
        """Return a random integer from 0 to ``limit - 1``. ``limit`` is at most 2**32.

        The result is the upper half of the product of a 32-bit output and ``limit``. If the lower half is
        below 2**32 mod limit, another output is drawn. This makes all integers equally likely (Lemire 2019).
        """
        product = self.word() * limit
        while product & _WORD < (1 << 32) % limit:
            product = self.word() * limit
        return product >> 32


def make_pass_keys(documents: Documents, seed: int, passes: int) -> list[int]:
    """Return the Philox key of each pass over the text, for masks that are written to files.

    The masks of a block depend on the seed, the pass, the text and the block's number in the text. The keys
    are derived as those of epochs, with the number of the pass instead of the epoch, and the CRC-32 of the
    text's ids instead of the shard's name. Without the CRC-32 all input files would get the same draws,
    because they have the same seed.
    """
    text = f"{crc32(documents.ids):08x}"
    return [derive_shard_key(seed, number, text) for number in range(passes)]
