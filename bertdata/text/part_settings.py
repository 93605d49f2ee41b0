"""Settings of ``segment`` for records (JSON, CSV, Parquet and so on)."""

from dataclasses import dataclass, field
from typing import Any

from bertdata.config.declared import repeat_setting, setting
from bertdata.errors import SettingsError
from bertdata.sources.settings import RecordSettings
from bertdata.text.abbreviations import Abbreviations
from bertdata.text.languages import (
    ENGLISH,
    PUNKT_LANGUAGES,
    find_language,
    list_table_md5s,
    list_tables_by_language,
)
from bertdata.text.manifest import RECORDS
from bertdata.text.mlperf_parts import MEBIBYTE
from bertdata.text.punkt.variants import find_variant
from bertdata.text.selection.settings import SelectionSettings
from bertdata.text.settings import PUNKT_NAMES, SegmentSettings, check_escaped_articles, make_language_entries

SENTENCES = ("punkt", "lines", "none")


@dataclass(frozen=True, kw_only=True, slots=True)
class PartSettings:
    """Settings of a run that writes text parts (files with one sentence per line) from records.

    Together with the records and Punkt's tables, they determine every byte of the output.

    In a finished object, ``language`` is the code of the language. It is None if the field ``language_field``
    of each record says its language, and no language was chosen for records without it.
    """

    part_size: float = setting(26.92, "largest part, in MiB of text before it is split into sentences")
    sentences: str = setting(
        "punkt",
        "what a line of a part holds. punkt: a sentence, as split for the language; lines: a line of the "
        "text, taken as a sentence; none: the text's own lines, for objectives that need no sentences",
        SENTENCES,
    )
    punkt: str = repeat_setting(SegmentSettings, "punkt")
    language: str | None = repeat_setting(SegmentSettings, "language", default=None)
    abbreviations: Abbreviations | None = repeat_setting(SegmentSettings, "abbreviations")
    escaped_articles: str | None = repeat_setting(SegmentSettings, "escaped_articles")
    records: RecordSettings = field(default_factory=RecordSettings)
    selection: SelectionSettings = field(default_factory=SelectionSettings)

    def __post_init__(self) -> None:
        if not 0 < self.part_size < float("inf"):
            raise SettingsError(f"part_size is {self.part_size} MiB, expected more than 0")
        if self.sentences not in SENTENCES:
            raise SettingsError(f"sentences is {self.sentences!r}, expected one of {', '.join(SENTENCES)}")
        if self.punkt not in PUNKT_NAMES:
            raise SettingsError(f"punkt is {self.punkt!r}, expected one of {', '.join(PUNKT_NAMES)}")
        check_escaped_articles(self.escaped_articles)
        object.__setattr__(self, "punkt", find_variant(self.punkt))
        self._check_language()

    def _check_language(self) -> None:
        """Replace the language's name by its code. Raise SettingsError if a setting does not suit it."""
        if self.language is not None or self.records.language_field is None:
            object.__setattr__(self, "language", find_language(self.language or ENGLISH).code)
        if self.records.language_field is None and self.selection.keep_languages is not None:
            raise SettingsError(
                "keep_languages goes with language_field, the field that holds a record's language"
            )
        if self.abbreviations is None:
            return
        if self.records.language_field is not None:
            raise SettingsError("abbreviations goes with a single language, not with language_field")
        if not self.tables():
            raise SettingsError(
                "abbreviations go with --sentences punkt and a language that has Punkt tables, not with "
                f"--sentences {self.sentences} and {self.language}"
            )

    @property
    def part_bytes(self) -> float:
        """Largest size of a part, in bytes of its text before it is split into sentences."""
        return self.part_size * MEBIBYTE

    def languages(self) -> tuple[str, ...]:
        """Return the ISO 639-1 codes of all languages whose text Punkt or end marks may have to split.

        With a language field they are the languages to keep, or all languages with Punkt tables. The tuple is
        empty if the text is not split into sentences.
        """
        if self.sentences != "punkt":
            return ()
        if self.records.language_field is None:
            return (self.language or ENGLISH,)
        kept = self.selection.keep_languages
        return PUNKT_LANGUAGES if kept is None else tuple(kept.split(","))

    def tables(self) -> dict[str, str]:
        """Return the md5 of each file of the languages' Punkt tables, by file name.

        With a language field, the language's folder of tables comes before the name:
        ``german/ortho_context.tab``. The dict is empty if Punkt does not split the text.
        """
        if self.records.language_field is not None:
            return list_tables_by_language(self.languages())
        return {
            name: md5
            for code in self.languages()
            for name, md5 in list_table_md5s(find_language(code)).items()
        }

    def as_json(self) -> dict[str, Any]:
        """Return the settings as a manifest stores them.

        ``punkt`` is left out, because the manifest stores it in another place.
        """
        found = {"recipe": RECORDS, "part_size": self.part_size, "sentences": self.sentences}
        found |= self.records.as_json() | self.selection.as_json()
        if self.records.language_field is None:
            found |= make_language_entries(self.language or ENGLISH, self.abbreviations)
        elif self.language is not None:
            found["language"] = self.language
        return found | {"between": "\n"} if self.sentences == "none" else found
