"""Counter-based random streams, one for each example: Philox4x32-10 (Salmon et al. 2011).

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
    """Return the key of a shard's examples in an epoch: 8 bytes of BLAKE2b of ``masks/SEED/EPOCH/SHARD``."""
    return int.from_bytes(blake2b(f"masks/{seed}/{epoch}/{shard}".encode(), digest_size=8).digest(), "little")


def compute_philox(counter: Words, key: tuple[int, int]) -> Words:
    """Return the four 32-bit outputs of the random generator Philox4x32-10 for a counter and a key."""
    a, b, c, d = counter
    first, second = key
    # Each round multiplies two of the four words and mixes the halves of the products with the other two
    # words and the key, which itself changes by a constant.
    for _ in range(_ROUNDS):
        low, high = _MULTIPLIERS[0] * a, _MULTIPLIERS[1] * c
        a, b = (high >> 32) ^ b ^ first, high & _WORD
        c, d = (low >> 32) ^ d ^ second, low & _WORD
        first, second = (first + _KEY_STEPS[0]) & _WORD, (second + _KEY_STEPS[1]) & _WORD
    return a, b, c, d


class CounterStream:
    """Random stream of one example.

    Its counters are (block, 0, low and high 32 bits of the example's number).
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
        """Return an integer in [0, limit), for a limit of at most 2**32.

        The result is the upper half of output x limit. An output is drawn again while the lower half is below
        2**32 mod limit, which makes all integers equally likely (Lemire 2019).
        """
        product = self.word() * limit
        while product & _WORD < (1 << 32) % limit:
            product = self.word() * limit
        return product >> 32


def make_pass_keys(documents: Documents, seed: int, passes: int) -> list[int]:
    """Return the Philox keys for masks that are written to files: one key for each pass over the text.

    The key is made like the key of an epoch, with the number of the pass instead of the epoch. A block's
    masks are a function of the seed, the pass, the text and the block's number in the text. The text is part
    of the key, as the CRC-32 of its ids, because all parts of a corpus have the same seed and would otherwise
    get the same draws.
    """
    text = f"{crc32(documents.ids):08x}"
    return [derive_shard_key(seed, number, text) for number in range(passes)]
