"""Sentence splitters, loaded once in each process that needs one."""

from dataclasses import dataclass
from functools import lru_cache

from bertdata._native import Engine
from bertdata.io.assets import find_punkt_tables
from bertdata.text.punkt.tables import parse_tables
from bertdata.text.punkt.variants import Variant
from bertdata.text.sentences import SentenceSplitter


@dataclass(frozen=True, slots=True)
class LoadSplitter:
    """Loads the English splitter of a Punkt variant. Travels to worker processes.

    tables: the directory or URL of the tables; None: wherever each worker finds them.
    """

    variant: Variant
    engine: Engine | None = None
    tables: str | None = None

    def __call__(self) -> SentenceSplitter:
        return _load(self.variant, self.engine, self.tables)


@lru_cache(maxsize=4)
def _load(variant: Variant, engine: Engine | None, tables: str | None) -> SentenceSplitter:
    return SentenceSplitter(parse_tables(find_punkt_tables(tables)), variant, engine=engine)
