"""Fake sentence splitters, for tests of the text stage that are not about sentence boundaries."""

import lzma
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path


class FakeSplitter:
    """A splitter that calls a function for the sentences of each non-empty line."""

    def __init__(self, sentences_of: Callable[[str], list[str]]) -> None:
        self._sentences_of = sentences_of

    def segment_lines(self, data: bytes, name: str = "text", *, keeps_indent: bool = False) -> bytes:
        sentences: list[str] = []
        for line in data.decode().removesuffix("\n").split("\n"):
            found = self._sentences_of(line) if line else [""]
            sentences += found if keeps_indent else [sentence.strip() for sentence in found]
        return "".join(f"{sentence}\n" for sentence in sentences).encode()


def split_at_periods(line: str) -> list[str]:
    return re.split(r"(?<=\.)\s+(?=\S)", line.rstrip()) if line.strip() else []


def load_period_splitter(language: str | None = None) -> FakeSplitter:
    return FakeSplitter(split_at_periods)


def load_no_splitter() -> FakeSplitter:
    """Return a splitter that finds no sentences at all."""
    return FakeSplitter(lambda line: [])


def read_kit(kit: Path, name: str) -> bytes:
    return lzma.decompress((kit / f"{name}.xz").read_bytes())


def without_space(text: str) -> str:
    return re.sub(r"\s+", "", text)


@lru_cache(maxsize=1)
def load_stage_splitter(kit: Path) -> FakeSplitter:
    """Return a splitter that looks up MLPerf's sentences for a line of its stage 2 in the kit."""
    known: dict[str, list[str]] = {}
    for file in ("wiki_00", "wiki_01"):
        sentences = iter(read_kit(kit, f"stages/{file}.3").decode().split("\n"))
        for line in read_kit(kit, f"stages/{file}.2").decode().split("\n"):
            if not line.strip():
                continue
            taken: list[str] = []
            while without_space("".join(taken)) != without_space(line):
                taken += [sentence] if (sentence := next(sentences)) else []
            known[line] = taken
    return FakeSplitter(lambda line: known[line] if line.strip() else [])


@lru_cache(maxsize=1)
def load_shard_splitter(kit: Path) -> FakeSplitter:
    """Return a splitter that looks up the sentences of NVIDIA's formatted articles in the kit's shards."""
    known: dict[str, list[str]] = {}
    for kind, shards in (("training", 4), ("test", 2)):
        for index in range(shards):
            text = read_kit(kit, f"nvidia/shard_{kind}_{index}.txt").decode()
            for article in text.split("\n\n"):
                known[without_space(article)] = article.split("\n")
    return FakeSplitter(lambda line: known[without_space(line)])
