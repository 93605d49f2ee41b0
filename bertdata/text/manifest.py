"""Manifest of a text directory: its parts, the input files, and the settings.

The manifest is deterministic: it has no time, host or path. Its schema is ``schemas/text_manifest.json``.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from bertdata.io.file_check import FileEntry, dump_entries, parse_entries
from bertdata.io.manifest_file import FORMAT_VERSION, dump_json, format_md5sums, parse_checked
from bertdata.sources.kinds import ESCAPED_ARTICLES
from bertdata.text.input_kinds import ARTICLES, describe_kinds
from bertdata.text.languages import ENGLISH
from bertdata.text.settings import RUN_COUNTERS, SegmentCounts

TEXT_KIND = "text"

RECORDS = "records"
"""The value of ``recipe`` in the manifest of parts that were made from records."""

_SPLITTING_SETTINGS = ("language", "language_field", "abbreviations")
_RECORD_COUNTERS = ("malformed", "too_long", "other_language", "excluded", "duplicate")

ARTICLES_COPY = "sources/articles.json"
"""Path, inside a text directory, of the copy of the manifest of its extracted articles."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextInput:
    """Manifest entry of an input file: name, size, md5, and counts of its articles, sentences and so on.

    The fields from ``articles`` to ``duplicate`` are counts, described in ``SegmentCounts``.

    kind: how the file was read: a key of ``input_kinds.KINDS``, or of ``sources.kinds.SOURCE_KINDS``.
    """

    name: str
    bytes: int
    md5: str
    articles: int
    sentences: int
    withheld: int
    empty: int
    lines_outside: int
    malformed: int = 0
    too_long: int = 0
    other_language: int = 0
    excluded: int = 0
    duplicate: int = 0
    kind: str = ARTICLES

    def as_json(self, *, of_records: bool = False) -> dict[str, Any]:
        """Return the entry as a manifest stores it.

        The kind "articles" is left out, because it is the default.

        of_records: True to include the counts of records that were left out.
        """
        entry = asdict(self) if of_records else _drop_record_counters(asdict(self))
        if self.kind == ARTICLES:
            del entry["kind"]
        return entry


def _drop_record_counters(counts: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the counts without counters such as "malformed", which only apply to records."""
    return {name: value for name, value in counts.items() if name not in _RECORD_COUNTERS}


def make_text_input(name: str, md5: str, counts: SegmentCounts, kind: str) -> TextInput:
    """Make the manifest entry of an input file.

    counts: counts of this file alone.
    """
    return TextInput(
        name=name,
        bytes=counts.bytes_in,
        md5=md5,
        articles=counts.articles,
        sentences=counts.sentences,
        withheld=counts.withheld,
        empty=counts.empty,
        lines_outside=counts.lines_outside,
        malformed=counts.malformed,
        too_long=counts.too_long,
        other_language=counts.other_language,
        excluded=counts.excluded,
        duplicate=counts.duplicate,
        kind=kind,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class TextManifest:
    """Manifest of a finished text directory.

    settings: settings of the recipe.
    punkt: dict with the version of Punkt (``variant``), and the md5s of Punkt's tables by file name
        (``tables``). None for a language without Punkt tables.
    articles_manifest: md5 of the manifest of the extracted articles. None: they have no manifest.
    inputs: entries of the input files, in the order in which they were read.
    files: entries of the output files, ordered by name.
    withheld_in_training: number of evaluation texts that also occur in the training text.
    unprotected: number of texts of evaluation sets that are too short to be searched for in the training
        text.
    """

    settings: dict[str, Any]
    punkt: dict[str, Any] | None
    articles_manifest: str | None
    inputs: tuple[TextInput, ...]
    files: tuple[FileEntry, ...]
    withheld_in_training: int | None = None
    unprotected: int | None = None

    @property
    def language(self) -> str:
        """Language of the text, an ISO 639-1 code. With a language field, it is the language of records in
        which the field is missing.
        """
        found: str = self.settings.get("language", ENGLISH)
        return found

    @property
    def between(self) -> str:
        """Text between two sentences of a paragraph: a blank, or nothing."""
        found: str = self.settings.get("between", " ")
        return found

    def splitting(self) -> dict[str, Any]:
        """Return the settings that decide where sentences end: Punkt's tables, the language or the field that
        holds each record's language, and the abbreviations.

        The manifests of datasets made from the directory store these settings too.
        """
        told = {name: self.settings.get(name) for name in _SPLITTING_SETTINGS}
        return {"punkt": self.punkt} | {name: value for name, value in told.items() if value is not None}

    @property
    def counts(self) -> SegmentCounts:
        """Counts of the run that made the directory."""
        counts = sum_counts(self.inputs, self.files)
        counts.withheld_in_training, counts.unprotected = self.withheld_in_training, self.unprotected
        return counts

    def terms(self) -> dict[str, Any]:
        """Return the plan of the directory: the settings and input names that determine its contents.

        Another run may use the directory only if its plan is equal.
        """
        names, kinds = [one.name for one in self.inputs], [one.kind for one in self.inputs]
        return make_text_plan(self.settings, self.punkt, self.articles_manifest, names, kinds)

    def as_json(self) -> dict[str, Any]:
        of_records = self.settings["recipe"] == RECORDS
        totals = {name: count for name, count in asdict(self.counts).items() if count is not None}
        del totals["unescaped"]  # left out because it follows from the kinds of the inputs
        return {
            "format_version": FORMAT_VERSION,
            "kind": TEXT_KIND,
            "settings": self.settings,
            "punkt": self.punkt,
            "articles_manifest": self.articles_manifest,
            "inputs": [entry.as_json(of_records=of_records) for entry in self.inputs],
            "files": dump_entries(self.files),
            "totals": totals if of_records else _drop_record_counters(totals),
        }

    def dump(self) -> bytes:
        return dump_json(self.as_json())

    def md5sums(self) -> bytes:
        """Return the content of the file MD5SUMS, which lists the md5 of each file of the directory."""
        return format_md5sums(self.files, self.dump())


def make_text_plan(
    settings: dict[str, Any],
    punkt: dict[str, Any] | None,
    articles_manifest: str | None,
    inputs: list[str],
    kinds: list[str],
) -> dict[str, Any]:
    """Return the plan of a text directory: everything known before the run that determines its contents.

    A run may continue an interrupted run with an equal plan. The plan does not include the contents of the
    input files, which are not read yet. For articles with a manifest, it includes the manifest's md5.
    """
    told = describe_kinds(kinds)
    return {
        **settings,
        "punkt": punkt and punkt["variant"],
        "punkt tables": punkt and punkt["tables"],
        "articles' manifest": articles_manifest,
        "inputs": inputs,
        **({} if told is None else {"input kinds": told}),
    }


def sum_counts(inputs: Iterable[TextInput], files: Iterable[FileEntry]) -> SegmentCounts:
    """Add up the counts of all input files, and the bytes of all output files."""
    counts = SegmentCounts(bytes_out=sum(file.bytes for file in files))
    for entry in inputs:
        counts.add(
            SegmentCounts(
                files=1,
                articles=entry.articles,
                sentences=entry.sentences,
                withheld=entry.withheld,
                empty=entry.empty,
                lines_outside=entry.lines_outside,
                unescaped=int(entry.kind == ESCAPED_ARTICLES),
                malformed=entry.malformed,
                too_long=entry.too_long,
                other_language=entry.other_language,
                excluded=entry.excluded,
                duplicate=entry.duplicate,
                bytes_in=entry.bytes,
            )
        )
    return counts


def parse_text_manifest(data: bytes, where: str) -> TextManifest:
    """Parse a text directory's manifest and check it against its schema.

    Raises ManifestError, with a description of the fault, if it does not match.

    where: path of the manifest, for errors.
    """
    value = parse_checked(data, where, "text_manifest")
    return TextManifest(
        settings=value["settings"],
        punkt=value["punkt"],
        articles_manifest=value["articles_manifest"],
        inputs=tuple(TextInput(**item) for item in value["inputs"]),
        files=parse_entries(value["files"], where),
        **{name: value["totals"].get(name) for name in RUN_COUNTERS},
    )
