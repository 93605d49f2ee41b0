"""Settings of ``segment`` for records (JSON, CSV, Parquet and so on)."""

from dataclasses import dataclass, field
from typing import Any

from bertdata.config.declared import repeat_setting, setting
from bertdata.errors import SettingsError
from bertdata.sources.settings import RecordSettings
from bertdata.text.abbreviations import Abbreviations
from bertdata.text.languages import find_language, list_table_md5s
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
    """

    part_size: float = setting(26.92, "largest part, in MiB of text before it is split into sentences")
    sentences: str = setting(
        "punkt",
        "what a line of a part holds. punkt: a sentence, as split for the language; lines: a line of the "
        "text, taken as a sentence; none: the text's own lines, for objectives that need no sentences",
        SENTENCES,
    )
    punkt: str = repeat_setting(SegmentSettings, "punkt")
    language: str = repeat_setting(SegmentSettings, "language")
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
        language = find_language(self.language)
        object.__setattr__(self, "language", language.code)
        if self.abbreviations is not None and not self.tables():
            raise SettingsError(
                "abbreviations go with --sentences punkt and a language that has Punkt tables, not with "
                f"--sentences {self.sentences} and {language.code}"
            )

    @property
    def part_bytes(self) -> float:
        """Largest size of a part, in bytes of its text before it is split into sentences."""
        return self.part_size * MEBIBYTE

    def tables(self) -> dict[str, str]:
        """Return the md5 of each file of the language's Punkt tables, by file name.

        The dict is empty if Punkt does not split the text.
        """
        return list_table_md5s(find_language(self.language)) if self.sentences == "punkt" else {}

    def as_json(self) -> dict[str, Any]:
        """Return the settings as a manifest stores them.

        ``punkt`` is left out, because the manifest stores it in another place.
        """
        found = {"recipe": RECORDS, "part_size": self.part_size, "sentences": self.sentences}
        found |= self.records.as_json() | self.selection.as_json()
        found |= make_language_entries(self.language, self.abbreviations)
        return found | {"between": "\n"} if self.sentences == "none" else found
