"""Files of records of any size: documents of permuted sentences, their rare words replaced by generated ones.

A sentence of the golden corpus keeps its common words. Each of its rare ones is drawn anew for every use, of
a lexicon whose words are about as frequent as Zipf's law has them, so that a cache of words meets new ones
to the end.
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
_DRAWN = 200_000
"""Words drawn at once."""


def make_documents(seed: int = 1) -> Iterator[str]:
    """Documents without end, 2 kB on average, each of some lines of some sentences."""
    rng = random.Random(seed)
    sentences, words = _read_templates(), _draw_words(rng)
    while True:
        lines = []
        for _ in range(rng.randrange(1, 8)):
            chosen = rng.choices(sentences, k=rng.randrange(1, 6))
            lines.append(" ".join([text % tuple(islice(words, slots)) for text, slots in chosen]))
        yield "\n".join(lines)


def write_json_lines(directories: Mapping[Path, int], megabytes: int) -> int:
    """Write the same records into directories, each with its number of files, compressed by zstd.

    Returns bytes of text.
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
    """The compressed files of a directory, written one after another."""

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
        """Write data. share: of all data, written before."""
        import zstandard

        if share * self._files >= self._opened:
            self._stack.close()
            file = self._stack.enter_context((self._directory / f"{self._opened:02d}.jsonl.zst").open("wb"))
            self._open = self._stack.enter_context(zstandard.ZstdCompressor().stream_writer(file))
            self._opened += 1
        self._open.write(data)


def _read_templates() -> list[tuple[str, int]]:
    """The sentences of the golden corpus with a slot for each rare word, and the number of slots."""
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
    """Words of the lexicon without end."""
    lexicon = ["".join(rng.choices(_SYLLABLES, k=rng.randrange(1, 4))) for _ in range(LEXICON_WORDS)]
    cumulative = list(accumulate(1 / (rank + 10) for rank in range(LEXICON_WORDS)))
    while True:
        yield from rng.choices(lexicon, cum_weights=cumulative, k=_DRAWN)
