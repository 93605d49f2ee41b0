"""The random streams of ``numpy.random.Generator``: PCG64 and PCG64DXSM, seeded as by NumPy.

NumPy does not promise that a Generator's draws stay the same in later versions, so they are written out here
and NumPy's Generator is not used. The draws are those of NumPy 1.26, 2.1 and 2.4. Pure-Python twin of
_native/examples/pcg64.h.
"""

from collections.abc import Callable

_WORD = (1 << 32) - 1
_LONG = (1 << 64) - 1
_HUGE = (1 << 128) - 1
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_CHEAP_MULTIPLIER = 0xDA942042E4DD58B5
_POOL = 4
_MANY = 10_000
"""Largest population from which ``choice`` always draws item by item. It may shuffle a larger one instead.

NumPy's Generator does so if more than a 50th of the population is chosen.
"""


class PcgStream:
    """The draws that ``numpy.random.default_rng(seed)`` makes. The seed is 0 or larger."""

    def __init__(self, seed: int) -> None:
        self._state, self._increment = _seed_generator(seed)
        self._half: int | None = None
        self.words = 0
        """Number of 32-bit words drawn, including words that were rejected."""

    @property
    def state(self) -> tuple[int, int | None]:
        """The generator's 128-bit state, and the unused half of its last output or None.

        It can be stored and set again, to continue the draws.
        """
        return self._state, self._half

    @state.setter
    def state(self, state: tuple[int, int | None]) -> None:
        self._state, self._half = state

    def long(self) -> int:
        """Return the next output of the generator, an integer of 64 bits."""
        # Make one step of a linear congruential generator. To get the output, the two halves of its state are
        # combined by xor, and the result is rotated by the number in the state's top 6 bits.
        self._state = (self._state * _MULTIPLIER + self._increment) & _HUGE
        mixed, turn = (self._state >> 64 ^ self._state) & _LONG, self._state >> 122
        return (mixed >> turn | mixed << (64 - turn)) & _LONG

    def advance(self, outputs: int) -> None:
        """Skip this many 64-bit outputs without computing each of them.

        If half of an output is still unused, it is kept.
        """
        # A step s -> s * a + c made twice is s -> s * a**2 + (a + 1) * c, which is a step of the same form.
        # So the step is doubled again and again, and applied for each bit of ``outputs`` that is 1.
        factor, step = _MULTIPLIER, self._increment
        while outputs:
            if outputs & 1:
                self._state = (self._state * factor + step) & _HUGE
            factor, step = factor * factor & _HUGE, (factor + 1) * step & _HUGE
            outputs >>= 1

    def word(self) -> int:
        """Return the next integer of 32 bits.

        It is the low half of an output. The next call returns the high half, even if ``random`` is called in
        between.
        """
        self.words += 1
        if self._half is not None:
            found, self._half = self._half, None
            return found
        drawn = self.long()
        self._half = drawn >> 32
        return drawn & _WORD

    def random(self) -> float:
        """Return a number in [0, 1) with 53 random bits."""
        return (self.long() >> 11) * 2.0**-53

    def below(self, limit: int) -> int:
        """Return a random integer from 0 to ``limit - 1``, as ``Generator.integers(limit)`` does.

        limit: at most 2**32. A limit of 1 draws nothing.
        """
        if limit == 1:
            return 0
        # The result is the high half of word x limit. Words whose low half is below 2**32 % limit would make
        # some results more probable than others, so such words are rejected.
        product = self.word() * limit
        least = (1 << 32) % limit
        while product & _WORD < least:
            product = self.word() * limit
        return product >> 32

    def choice(self, population: int, count: int) -> list[int]:
        """Return ``count`` different integers below ``population``, as ``Generator.choice`` draws without
        replacement.
        """
        # If a large part of a large population is chosen, shuffle only the last ``count`` places and return
        # them.
        if population > _MANY and count > population // 50:
            found = list(range(population))
            self._shuffle_end(found, max(population - count, 1))
            return found[population - count :]
        # In all other cases use Floyd's algorithm. For each ``last`` from n - k to n - 1, draw a number up to
        # ``last``. If the number was chosen before, take ``last`` itself, which cannot have been chosen. The
        # result is shuffled at the end, because larger numbers tend to come later.
        chosen: set[int] = set()
        found = []
        for last in range(population - count, population):
            drawn = self.below(last + 1)
            found.append(last if drawn in chosen else drawn)
            chosen.add(found[-1])
        self._shuffle_end(found, 1)
        return found

    def _shuffle_end(self, items: list[int], first: int) -> None:
        """Swap each item with a random item at or before it, from the last item down to index ``first``."""
        for place in range(len(items) - 1, first - 1, -1):
            other = self.below(place + 1)
            items[place], items[other] = items[other], items[place]


class DxsmStream(PcgStream):
    """The draws that ``numpy.random.Generator(PCG64DXSM(seed))`` makes."""

    def long(self) -> int:
        """Return the next output of the generator, an integer of 64 bits.

        PCG64DXSM computes it from the state before the step, PCG64 from the state after the step.
        """
        low, high = (self._state & _LONG) | 1, self._state >> 64
        self._state = (self._state * _CHEAP_MULTIPLIER + self._increment) & _HUGE
        high = (high ^ high >> 32) * _CHEAP_MULTIPLIER & _LONG
        return (high ^ high >> 48) * low & _LONG

    def permutation(self, count: int) -> list[int]:
        """Return ``Generator.permutation(count)``. The numbers are shuffled from the end.

        A random index is taken from the low bits of a random word. If it is too large, another word is drawn.
        """
        found = list(range(count))
        for place in range(count - 1, 0, -1):
            # An index from 0 to 5, for example, needs 3 bits, so words & 0b111 are drawn until one is at most
            # 5.
            mask = (1 << place.bit_length()) - 1
            while (other := self.word() & mask) > place:
                pass
            found[place], found[other] = found[other], found[place]
        return found


def _seed_generator(seed: int) -> tuple[int, int]:
    """Return the state and the increment with which NumPy's ``SeedSequence(seed)`` starts a generator."""
    words = _generate_seed_words(seed)
    state, increment = _join_words(words[:4]), _join_words(words[4:]) << 1 & _HUGE | 1
    return ((increment + state) * _MULTIPLIER + increment) & _HUGE, increment


def _join_words(words: list[int]) -> int:
    """Join four 32-bit words to one integer of 128 bits.

    Words 0 (low) and 1 (high) are its upper 64 bits, words 2 and 3 its lower 64 bits.
    """
    return (words[1] << 96) | (words[0] << 64) | (words[3] << 32) | words[2]


def _generate_seed_words(seed: int) -> list[int]:
    """Return the eight 32-bit words of NumPy's ``SeedSequence(seed).generate_state(8)``.

    The seed's 32-bit words are mixed into a pool of four words, from which the eight words are made.
    """
    # Split the seed into 32-bit words, least significant first. Add zeros up to the size of the pool.
    entropy = [seed >> shift & _WORD for shift in range(0, max(seed.bit_length(), 1), 32)]
    entropy += [0] * (_POOL - len(entropy))
    mixed = _make_hash(0x43B0D7E5, 0x931E8875)
    pool = [mixed(word) for word in entropy[:_POOL]]
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                pool[target] = _mix_words(pool[target], mixed(pool[source]))
    for word in entropy[_POOL:]:
        pool = [_mix_words(pooled, mixed(word)) for pooled in pool]
    made = _make_hash(0x8B51F9DD, 0x58F38DED)
    return [made(pool[place % _POOL]) for place in range(8)]


def _make_hash(constant: int, multiplier: int) -> Callable[[int], int]:
    """Return a function that hashes a 32-bit word. It changes its constant with every call."""

    def hash_word(word: int) -> int:
        nonlocal constant
        word ^= constant
        constant = constant * multiplier & _WORD
        word = word * constant & _WORD
        return word ^ word >> 16

    return hash_word


def _mix_words(one: int, other: int) -> int:
    """Combine two 32-bit words into one, as NumPy's SeedSequence does."""
    mixed = (0xCA01F9DD * one - 0x4973F715 * other) & _WORD
    return mixed ^ mixed >> 16
