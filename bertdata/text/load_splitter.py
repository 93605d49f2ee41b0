"""Load the sentence splitter of a language in a worker process, where it is kept for later calls."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from bertdata._native import Engine
from bertdata.errors import AssetError
from bertdata.io import storage
from bertdata.io.punkt_assets import find_punkt_tables, obtain_every_language
from bertdata.text.abbreviations import Abbreviations
from bertdata.text.languages import ENGLISH, PUNKT_LANGUAGES, find_language
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
    language: the language whose splitter is returned if the call names no language.
    abbreviations: abbreviations to add to the tables.
    """

    variant: Variant
    engine: Engine | None = None
    tables: str | None = None
    language: str = ENGLISH
    abbreviations: Abbreviations | None = None

    def __call__(self, language: str | None = None) -> Splitter:
        """Return the splitter of this language.

        language: ISO 639-1 code, for records that say their language. ``tables`` then holds a directory of
            tables for each language, such as ``german``. None: ``self.language``, whose tables are in
            ``tables`` itself.
        """
        chosen = find_language(self.language if language is None else language)
        # Only splitters with tables are kept. Text in very many languages would otherwise drop their tables,
        # which take long to read, in every piece of a file.
        if chosen.tables is None:
            return MarkSplitter(chosen.code)
        if language is None:
            return _load_splitter(self, chosen.tables)
        folder = _find_tables_folder(self.tables, chosen.tables)
        return _load_splitter(replace(self, language=chosen.code, tables=folder), chosen.tables)


def make_splitter_loader(
    settings: SegmentSettings | PartSettings, engine: Engine | None, tables: str | None
) -> LoadSplitter:
    """Return a loader for the language, Punkt version and abbreviations of these settings.

    tables: directory or URL of Punkt's tables. None: the user's cache and NLTK's directories.
    """
    variant = cast(Variant, settings.punkt)
    return LoadSplitter(variant, engine, tables, settings.language or ENGLISH, settings.abbreviations)


def fetch_tables(settings: SegmentSettings | PartSettings, directory: str | None) -> None:
    """Download the Punkt tables that a run with these settings may need, if they are missing.

    Raises AssetError if the tables are nowhere to be found. If each record may be of any language, it is not
    known yet which tables the run needs. Then a worker raises the error when a record needs them.

    directory: where to look for the tables. None: the user's cache and NLTK's directories.
    """
    languages = map(find_language, settings.languages())
    needed = [one.tables for one in languages if one.tables is not None]
    if not isinstance(settings, PartSettings) or settings.records.language_field is None:
        for tables in needed:
            find_punkt_tables(directory, tables)
    elif settings.selection.keep_languages is not None:
        for tables in needed:
            find_punkt_tables(_find_tables_folder(directory, tables), tables)
    elif needed and directory is None:
        with suppress(AssetError):
            obtain_every_language()


def _find_tables_folder(directory: str | None, tables: str) -> str | None:
    """Return the sub-directory of a directory of Punkt tables that holds the tables of a language.

    tables: NLTK's name of the tables, such as ``german``.
    """
    return None if directory is None else storage.join(directory, tables)


@lru_cache(maxsize=len(PUNKT_LANGUAGES) + 4)
def _load_splitter(chosen: LoadSplitter, tables: str) -> Splitter:
    """Return the splitter with Punkt's tables.

    tables: NLTK's name of the tables of ``chosen.language``.
    """
    parsed = parse_tables(find_punkt_tables(chosen.tables, tables))
    if chosen.abbreviations is not None:
        parsed = chosen.abbreviations.add_to(parsed)
    return SentenceSplitter(parsed, chosen.variant, engine=chosen.engine)
