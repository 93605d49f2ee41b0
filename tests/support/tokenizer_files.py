"""Tokenisers' files for tests: vocabularies as a run's settings read them."""

from collections.abc import Mapping

from bertdata.config.settings import ExampleSettings
from bertdata.tokens.files import VocabularyFile


def vocabulary_file(path: str, settings: Mapping[str, ExampleSettings]) -> VocabularyFile:
    """The vocabulary at the path, as the settings by output directory read it."""
    first = next(iter(settings.values()))
    return VocabularyFile(path=path, dialect=first.dialect, lower_case=first.lower_case)
