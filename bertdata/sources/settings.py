"""Settings for reading records."""

from dataclasses import dataclass
from typing import Any

from bertdata.config.declared import setting
from bertdata.errors import SettingsError
from bertdata.sources.delimited import QUOTING, parse_separator
from bertdata.sources.encoding import UTF_8, normalise_encoding

MOST_RECORD_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordSettings:
    """Settings for reading records: fields, longest text, unusable records, encoding, CSV format."""

    text_field: str | None = setting(
        None,
        "field or column that holds the text; a.b is field b inside field a. Not needed if only one field "
        "holds text",
    )
    id_field: str | None = setting(None, "field that holds a record's id, for error messages")
    language_field: str | None = setting(
        None,
        "field that holds a record's language, an ISO 639-1 code, whose splitter finds the sentences of the "
        "record; --language is for records in which the field is missing",
    )
    max_record_bytes: int = setting(1 << 24, "longest text that a record may have, in bytes of UTF-8")
    skip_bad_records: bool = setting(
        False,
        "leave out and count records that are malformed, empty, too long or in an unknown language; "
        "without this flag the first such record ends the run with an error",
    )
    encoding: str = setting(
        UTF_8,
        "encoding of the source files, by any name that Python knows, such as cp1252 or utf-16. In Parquet "
        "and Arrow, it is the encoding of binary columns",
    )
    quoting: str | None = setting(
        None,
        "double quotes in CSV and TSV. csv: they enclose a field, which may then hold separators and line "
        "breaks; none: they are ordinary text (default: csv for .csv, none for .tsv)",
        QUOTING,
    )
    separator: str | None = setting(
        None,
        "what separates the fields of CSV and TSV: a single character, or the word tab (default: recognised "
        "from the file: , ; | or a tab)",
    )
    no_heading: bool = setting(
        False,
        "read CSV and TSV files whose first line is a record, not the names of the columns; columns "
        "are numbered from 0",
    )
    as_is: bool = setting(
        False,
        "read files of --input-kind text or blocks as plain text even if they look like another format, such "
        "as JSON",
    )

    def __post_init__(self) -> None:
        if self.quoting not in (None, *QUOTING):
            raise SettingsError(f"quoting is {self.quoting!r}, expected one of {', '.join(QUOTING)}")
        object.__setattr__(self, "encoding", normalise_encoding(self.encoding))
        if self.separator is not None:
            object.__setattr__(self, "separator", parse_separator(self.separator))
        if not 1 <= self.max_record_bytes <= MOST_RECORD_BYTES:
            raise SettingsError(
                f"max_record_bytes is {self.max_record_bytes}, expected 1 to {MOST_RECORD_BYTES}"
            )
        named = [name for name in (self.text_field, self.id_field, self.language_field) if name is not None]
        if len(set(named)) < len(named) or "" in named:
            raise SettingsError(f"fields are named {', '.join(map(repr, named))}, expected different names")

    @property
    def raw_bytes(self) -> int:
        """Most bytes that a record may take in its file. Larger records are refused before they are parsed.

        This is more than the longest text may have, because JSON may write a character as ``\\uXXXX``, and a
        record has other fields.
        """
        return 8 * self.max_record_bytes + (1 << 16)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as a manifest stores them.

        ``skip_bad_records`` is left out, because the manifest's counts show whether records were skipped.
        """
        found: dict[str, Any] = {
            "text_field": self.text_field,
            "id_field": self.id_field,
            "language_field": self.language_field,
            "max_record_bytes": self.max_record_bytes,
        }
        if self.encoding != UTF_8:
            found["encoding"] = self.encoding
        further = {name: getattr(self, name) for name in ("quoting", "separator", "no_heading", "as_is")}
        return found | {name: value for name, value in further.items() if value}
