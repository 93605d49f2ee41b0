"""Sentence splitters, loaded once in each process that needs one."""

from dataclasses import dataclass
from functools import lru_cache

from bertdata._native import Engine
from bertdata.assets import find_punkt_tables
from bertdata.text.punkt import Variant
from bertdata.text.punkt_tables import parse_tables
from bertdata.text.sentences import SentenceSplitter


@dataclass(frozen=True, slots=True)
class LoadSplitter:
    """Loads the English splitter of a Punkt variant; travels to worker processes."""

    variant: Variant
    engine: Engine | None = None

    def __call__(self) -> SentenceSplitter:
        return _load(self.variant, self.engine)


@lru_cache(maxsize=4)
def _load(variant: Variant, engine: Engine | None) -> SentenceSplitter:
    return SentenceSplitter(parse_tables(find_punkt_tables()), variant, engine=engine)
