"""Speed and memory of finding duplicates by sorting hashes on disk, and speed of searching text for n-grams.

The memory for ten million hashes is compared with the memory for one million.
"""

import argparse
import sys
import time
from tempfile import TemporaryDirectory

from benchmarks import corpus, measure
from bertdata.io.sorted_entries import SortedEntries
from bertdata.text.record_text import hash_text
from bertdata.text.selection.duplicates import HASH_ENTRY, match_duplicates
from bertdata.text.selection.ngrams import Ngrams

MILLION = 1_000_000
HASHES_PER_DUPLICATE = 20
"""Of this many hashes, one repeats an earlier hash."""


def sort_hashes(number: int) -> int:
    """Sort ``number`` hashes in the way ``bertdata segment`` does. Return the number of duplicates."""
    with TemporaryDirectory() as place, SortedEntries(HASH_ENTRY.size, place) as hashed:
        for record in range(number):
            text = record // 2 if record % HASHES_PER_DUPLICATE == 0 else record
            piece, place_in_piece = divmod(record, 4096)
            hashed.add(HASH_ENTRY.pack(hash_text(text.to_bytes(8, "big")), 0, piece, place_in_piece))
        return sum(1 for _ in match_duplicates(hashed, lambda file, piece: piece << 12))


def show_sorting() -> None:
    """Print speed and memory of sorting hashes."""
    for number in (MILLION, 10 * MILLION):
        cost = measure.measure_command(sys.executable, "-m", "benchmarks.duplicates", "--hashes", str(number))
        print(
            f"{number:>10,} hashes, {number * HASH_ENTRY.size / 1e6:.0f} MB: {cost.wall:.0f} s, "
            f"{cost.megabytes:.0f} MB of memory"
        )


def show_search() -> None:
    """Print the speed of searching a text for the n-grams (runs of n words) of an evaluation set.

    The evaluation set does not occur in the text.
    """
    text = corpus.make_long_text(1 << 24)
    texts, ngrams = text.split(b"\n\n"), Ngrams(13)
    for one in corpus.read_text().decode().split("\n\n"):
        ngrams.add(" ".join(reversed(one.split())), 0)
    seconds = measure.measure_best_cpu(lambda: [ngrams.find(one) for one in texts])
    size = sum(map(len, texts))
    print(f"search for {len(ngrams):,} n-grams of 13 words: {size / 1e6 / seconds:.0f} MB a CPU second")


def main() -> None:
    """Print the figures of sorting and of searching."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hashes", type=int, help="sort so many, and show nothing")
    number = parser.parse_args().hashes
    if number is None:
        show_sorting()
        show_search()
        return
    start = time.perf_counter()
    print(f"{sort_hashes(number):,} duplicates, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
