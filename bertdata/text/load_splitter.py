"""Load the sentence splitter of a language in a worker process, where it is kept for later calls."""

from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from bertdata._native import Engine
from bertdata.io.punkt_assets import find_punkt_tables
from bertdata.text.abbreviations import Abbreviations
from bertdata.text.languages import ENGLISH, find_language
from bertdata.text.marked_sentences import MarkSplitter
from bertdata.text.part_settings import PartSettings
from bertdata.text.punkt.tables import parse_tables
from bertdata.text.punkt.variants import Variant
from bertdata.text.sentences import SentenceSplitter
from bertdata.text.settings import SegmentSettings
from bertdata.text.splitter import Splitter


@dataclass(frozen=True, slots=True)
class LoadSplitter:
    """Function object that returns a language's sentence splitter when it is called. It can be pickled.

    variant: version of Punkt to reproduce, such as "3.4.5". Only used if the language has Punkt tables.
    engine: whether to use the C++ kernel or Python. None: the kernel if it is built.
    tables: directory or URL of Punkt's tables. None: each worker searches the user's cache and NLTK's
        directories.
    abbreviations: abbreviations to add to the tables.
    """

    variant: Variant
    engine: Engine | None = None
    tables: str | None = None
    language: str = ENGLISH
    abbreviations: Abbreviations | None = None

    def __call__(self) -> Splitter:
        return _load_splitter(self)


def make_splitter_loader(
    settings: SegmentSettings | PartSettings, engine: Engine | None, tables: str | None
) -> LoadSplitter:
    """Return a loader for the language, Punkt version and abbreviations of these settings.

    tables: directory or URL of Punkt's tables. None: the user's cache and NLTK's directories.
    """
    variant = cast(Variant, settings.punkt)
    return LoadSplitter(variant, engine, tables, settings.language, settings.abbreviations)


def fetch_tables(language: str, directory: str | None) -> None:
    """Download a language's Punkt tables if they are missing. Does nothing for a language without tables.

    directory: where to look for the tables. None: the user's cache and NLTK's directories.
    """
    if (tables := find_language(language).tables) is not None:
        find_punkt_tables(directory, tables)


@lru_cache(maxsize=4)
def _load_splitter(chosen: LoadSplitter) -> Splitter:
    language = find_language(chosen.language)
    if language.tables is None:
        return MarkSplitter(language.code)
    tables = parse_tables(find_punkt_tables(chosen.tables, language.tables))
    if chosen.abbreviations is not None:
        tables = chosen.abbreviations.add_to(tables)
    return SentenceSplitter(tables, chosen.variant, engine=chosen.engine)
