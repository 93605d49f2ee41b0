"""Files of records of any size, whose documents are shuffled sentences with generated rare words.

The sentences are those of the golden corpus. Their common words are kept. Each use of a rare word is replaced
with a word drawn from a generated lexicon. The lexicon's words occur about as often as Zipf's law says, so a
cache of words continually meets new words.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from benchmarks.corpus import ROOT

LEXICON_WORDS = 400_000
_SYLLABLES = [
    begin + vowel + end
    for begin in (
        "b",
        "br",
        "d",
        "f",
        "gr",
        "h",
        "k",
        "l",
        "m",
        "n",
        "p",
        "pr",
        "r",
        "s",
        "st",
        "t",
        "tr",
        "v",
    )
    for vowel in ("a", "e", "i", "o", "u", "ea", "ou")
    for end in ("", "l", "n", "r", "s", "t", "nd")
]
_WORD = re.compile(r"[A-Za-z]{4,}")
_RARE = 2
_WORDS_PER_DRAW = 200_000
"""Number of words of the lexicon that are drawn in one call."""


def make_documents(seed: int = 1) -> Iterator[str]:
    """Yield an endless series of documents, 2 kB on average, each of several lines of several sentences."""
    rng = random.Random(seed)
    sentences, words = _read_templates(), _draw_words(rng)
    while True:
        lines = []
        for _ in range(rng.randrange(1, 8)):
            chosen = rng.choices(sentences, k=rng.randrange(1, 6))
            lines.append(" ".join([text % tuple(islice(words, slots)) for text, slots in chosen]))
        yield "\n".join(lines)


def write_json_lines(directories: Mapping[Path, int], megabytes: int) -> int:
    """Write the same records into several directories, as JSON lines compressed with zstd.

    Returns the number of bytes of their text.

    directories: for each directory, the number of files to write there.
    """
    source, written = make_documents(), 0
    with ExitStack() as stack:
        writers = [stack.enter_context(_Files(place, files)) for place, files in directories.items()]
        while written < megabytes * 1_000_000:
            batch = list(islice(source, 500))
            lines = [json.dumps({"id": n, "text": text}, ensure_ascii=False) for n, text in enumerate(batch)]
            for writer in writers:
                writer.write("".join([f"{line}\n" for line in lines]).encode(), written / megabytes / 1e6)
            written += sum(len(text.encode()) for text in batch)
    return written


class _Files:
    """Writer of the compressed files of a directory, one after another."""

    def __init__(self, directory: Path, files: int) -> None:
        directory.mkdir(parents=True)
        self._directory, self._files = directory, files
        self._opened = 0
        self._stack = ExitStack()
        self._open: Any = None

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, data: bytes, share: float) -> None:
        """Write data to the current file, or to the next one if the current file has its share.

        share: share of all data that was written before, from 0 to 1.
        """
        import zstandard

        if share * self._files >= self._opened:
            self._stack.close()
            file = self._stack.enter_context((self._directory / f"{self._opened:02d}.jsonl.zst").open("wb"))
            self._open = self._stack.enter_context(zstandard.ZstdCompressor().stream_writer(file))
            self._opened += 1
        self._open.write(data)


def _read_templates() -> list[tuple[str, int]]:
    """Return the golden corpus's sentences with a slot for each rare word, and how many slots each has."""
    paths = sorted((ROOT / "golden" / "corpus").glob("part-*"))
    lines = [line for path in paths for line in path.read_text().split("\n") if line]
    counts = Counter(word for line in lines for word in _WORD.findall(line))
    found = []
    for line in lines:
        text = _WORD.sub(
            lambda match: "%s" if counts[match[0]] <= _RARE else match[0], line.replace("%", "%%")
        )
        found.append((text, text.replace("%%", "").count("%s")))
    return found


def _draw_words(rng: random.Random) -> Iterator[str]:
    """Yield words drawn from the lexicon, without end."""
    lexicon = ["".join(rng.choices(_SYLLABLES, k=rng.randrange(1, 4))) for _ in range(LEXICON_WORDS)]
    cumulative = list(accumulate(1 / (rank + 10) for rank in range(LEXICON_WORDS)))
    while True:
        yield from rng.choices(lexicon, cum_weights=cumulative, k=_WORDS_PER_DRAW)
