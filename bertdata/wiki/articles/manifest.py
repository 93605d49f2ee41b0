"""The manifest of a directory of extracted articles: from which dump, how, and every file.

Deterministic: no clock, no host, no path. Declared in ``schemas/articles_manifest.json``.
"""

from typing import Any, NamedTuple

from bertdata.io.file_check import FileEntry, entries_json, parse_entries
from bertdata.io.manifest_file import FORMAT_VERSION, dump_json, md5sums, parse_checked
from bertdata.wiki.articles.report import ExtractReport

ARTICLES_KIND = "articles"
SKIPPED_PAGES = "skipped pages"
"""The term of a plan that lists the ids of pages that are left out."""


class ArticlesManifest(NamedTuple):
    """A finished extraction.

    source: the dump's entry. settings: date (None: the dump's newest revision), templates,
    max_page_bytes, and skip_pages where there are any. extractor: name and version of the program whose
    rendering it is.
    """

    source: FileEntry
    settings: dict[str, Any]
    extractor: dict[str, str]
    report: ExtractReport
    files: tuple[FileEntry, ...]

    def terms(self) -> dict[str, Any]:
        """The plan as the commit protocol compares it with another."""
        return plan_terms(self.source.name, self.source.bytes, self.settings, self.extractor)

    def as_json(self) -> dict[str, Any]:
        report = self.report
        return {
            "format_version": FORMAT_VERSION,
            "kind": ARTICLES_KIND,
            "dump": self.source._asdict(),
            "settings": self.settings,
            "date": report.date,
            "extractor": self.extractor,
            "pages": {
                "total": report.pages,
                "written": report.written,
                "empty": report.empty,
                "templates": report.template_pages,
                **({"several_revisions": several} if (several := report.several_revisions) else {}),
                "skipped": dict(sorted(report.skipped.items())),
            },
            "faults": report.faults,
            "files": entries_json(self.files),
            "totals": {"files": len(self.files), "bytes": sum(entry.bytes for entry in self.files)},
        }

    def dump(self) -> bytes:
        return dump_json(self.as_json())

    def md5sums(self) -> bytes:
        """Lines as md5sum prints and checks them."""
        return md5sums(self.files, self.dump())


def plan_terms(
    dump: str, dump_bytes: int, settings: dict[str, Any], extractor: dict[str, str]
) -> dict[str, Any]:
    """All that the articles' bytes depend on, but what is in the dump."""
    return {
        "dump": dump,
        "dump bytes": dump_bytes,
        **{name: value for name, value in settings.items() if name != "skip_pages"},
        SKIPPED_PAGES: settings.get("skip_pages", []),
        "extractor": f"{extractor['name']} {extractor['version']}",
    }


def parse_articles_manifest(data: bytes, where: str) -> ArticlesManifest:
    """The manifest in ``data``, checked against its schema. ManifestError says what does not fit."""
    value = parse_checked(data, where, "articles_manifest")
    pages, totals = value["pages"], value["totals"]
    report = ExtractReport(
        date=value["date"],
        pages=pages["total"],
        written=pages["written"],
        empty=pages["empty"],
        skipped=pages["skipped"],
        faults=value["faults"],
        template_pages=pages["templates"],
        several_revisions=pages.get("several_revisions", 0),
        files=totals["files"],
        bytes=totals["bytes"],
    )
    return ArticlesManifest(
        source=FileEntry(**value["dump"]),
        settings=value["settings"],
        extractor=value["extractor"],
        report=report,
        files=parse_entries(value["files"], where),
    )


def manifest_terms(data: bytes, where: str) -> dict[str, Any]:
    """The plan that a manifest's bytes were made by."""
    return parse_articles_manifest(data, where).terms()
