"""Text of any length for benchmarks: the kit's text parts or the sample corpus, repeated with changed words.

If the text were repeated without changes, a cache of words would look too good. So in each further copy, the
letters of all words that occur only once in the text are rotated. New words are then about as frequent in
every copy as in the first.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

ROOT = Path(__file__).parent.parent
WORD = re.compile(rb"[a-zA-Z]{4,}")


def find_kit() -> Path | None:
    """Return the directory of the reference kit, or None if this machine does not have it."""
    place = Path(os.environ.get("BERTDATA_REFERENCE_KIT", ROOT.parent / "shared" / "reference"))
    return place if place.is_dir() else None


def read_text() -> bytes:
    """Return about 2 MB of Wikipedia text from the kit, one sentence per line.

    Without the kit, return the sample corpus.
    """
    if place := find_kit():
        return b"".join((place / "results" / f"part-0000{i}-of-00500").read_bytes() for i in (0, 1))
    return b"".join(path.read_bytes() for path in sorted((ROOT / "golden" / "corpus").glob("part-*")))


def find_vocabulary() -> Path:
    """Return the path of BERT's published vocabulary in the kit.

    Without the kit, return the vocabulary of the golden files.
    """
    if place := find_kit():
        return place / "vocab" / "bert-base-uncased.txt"
    return ROOT / "golden" / "vocab.txt"


def make_long_text(min_bytes: int) -> bytes:
    """Return a text of at least ``min_bytes`` bytes.

    Words that occur once in the source differ in every copy.
    """
    base = read_text()
    counts = Counter(WORD.findall(base))
    once = {word for word, count in counts.items() if count == 1}
    copies, size = [base], len(base)
    while size < min_bytes:
        table = _make_rotation(len(copies))
        copy = WORD.sub(lambda m, t=table: m[0].translate(t) if m[0] in once else m[0], base)
        copies.append(copy)
        size += len(copy)
    return b"".join(copies)


def make_growing_text(min_bytes: int) -> Iterator[bytes]:
    """Yield copies of the text in which the number of distinct words grows as it does in real text.

    The copies have at least ``min_bytes`` bytes in total. In every copy after the first, all words that occur
    only once in the text are replaced, in one of two ways:

    - Some of them are replaced with new words. A new word consists of the first half of a word that occurs
      once and the second half of another such word. The share of words replaced in this way is proportional
      to n ** -0.4 in copy n.
    - The others are replaced with new words of earlier copies. These words are drawn from all their uses so
      far, so that frequent words become more frequent (Simon 1955).

    So n copies have about n ** 0.6 times as many distinct words as the text. Real text grows like this too:
    the first 100 MB of Wikipedia (text8) have 254,000 distinct words, and the first 1 GB (fil9) 833,000.
    """
    base = read_text()
    counts = Counter(WORD.findall(base))
    once = sorted(word for word, number in counts.items() if number == 1)
    replaced = set(once)
    rng = random.Random(1)
    occurrences = list(once)
    yield base
    size = len(base)
    for copy in count(2):
        if size >= min_bytes:
            return
        chance = 0.6 * copy**-0.4 * len(counts) / len(once)

        def choose_replacement(match: re.Match[bytes], chance: float = chance) -> bytes:
            """Return the word to put in place of the matched word.

            A word that occurs more than once in the text is kept.

            chance: probability of a new word instead of an earlier one.
            """
            word = match[0]
            if word not in replaced:
                return word
            if rng.random() < chance:
                other = rng.choice(once)
                word = word[: len(word) // 2] + other[len(other) // 2 :]
            else:
                word = rng.choice(occurrences)
            occurrences.append(word)
            return word

        changed = WORD.sub(choose_replacement, base)
        yield changed
        size += len(changed)


def _make_rotation(places: int) -> bytes:
    """Return a table for ``bytes.translate`` that moves each letter by ``places`` places in the alphabet."""
    lower, upper = bytes(range(97, 123)), bytes(range(65, 91))
    places %= 26
    return bytes.maketrans(lower + upper, lower[places:] + lower[:places] + upper[places:] + upper[:places])


def make_parts(place: Path, parts: int, part_bytes: int) -> list[Path]:
    """Write files of ``part_bytes`` bytes with the sample corpus's documents, and return their paths.

    The documents are repeated, in another order in each file.

    parts: number of files.
    """
    text = b"\n\n".join(path.read_bytes() for path in sorted((ROOT / "golden" / "corpus").glob("part-*")))
    documents = [document for document in text.split(b"\n\n") if document.strip()]
    paths = [place / f"part-{number:05d}-of-{parts:05d}" for number in range(parts)]
    for number, path in enumerate(paths):
        start = number % len(documents)
        once = b"\n\n".join(documents[start:] + documents[:start]) + b"\n\n"
        path.write_bytes(once * (part_bytes // len(once) + 1))
    return paths
