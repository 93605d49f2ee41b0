"""Manifest of a directory of extracted articles, with the dump, the settings, the report and all files.

The manifest contains no time, host or path, so the same extraction always gives the same manifest. Its schema
is ``schemas/articles_manifest.json``.
"""

from typing import Any, NamedTuple

from bertdata.io.file_check import FileEntry, dump_entries, parse_entries
from bertdata.io.manifest_file import FORMAT_VERSION, dump_json, format_md5sums, parse_checked
from bertdata.wiki.articles.report import ExtractReport

ARTICLES_KIND = "articles"
SKIPPED_PAGES = "skipped pages"
"""Key for the ids of pages to leave out, in the settings that an unfinished run stores."""


class ArticlesManifest(NamedTuple):
    """Manifest of a finished extraction.

    source: name, size and md5 of the dump.
    settings: the keys date (None: day of the dump's newest revision), templates, max_page_bytes, and
        skip_pages if pages were left out.
    extractor: name and version of the program whose output is reproduced.
    """

    source: FileEntry
    settings: dict[str, Any]
    extractor: dict[str, str]
    report: ExtractReport
    files: tuple[FileEntry, ...]

    def terms(self) -> dict[str, Any]:
        """Return the run's terms: everything that determines the output, except the content of the dump.

        A later run can use the directory only if its terms are the same.
        """
        return make_plan_terms(self.source.name, self.source.bytes, self.settings, self.extractor)

    def as_json(self) -> dict[str, Any]:
        """Return the manifest as a dict with the keys of its JSON form."""
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
            "files": dump_entries(self.files),
            "totals": {"files": len(self.files), "bytes": sum(entry.bytes for entry in self.files)},
        }

    def dump(self) -> bytes:
        """Return the content of the manifest's file."""
        return dump_json(self.as_json())

    def md5sums(self) -> bytes:
        """Return the content of the file MD5SUMS, in the format that the program md5sum checks."""
        return format_md5sums(self.files, self.dump())


def make_plan_terms(
    dump: str, dump_bytes: int, settings: dict[str, Any], extractor: dict[str, str]
) -> dict[str, Any]:
    """Return the run's terms: everything that determines the output, except the content of the dump.

    A run can continue an interrupted run only if their terms are the same.

    dump: path or URL of the dump.
    dump_bytes: size of the dump in bytes.
    settings: settings of the extraction, in JSON form.
    extractor: name and version of the program whose output is reproduced.
    """
    return {
        "dump": dump,
        "dump bytes": dump_bytes,
        **{name: value for name, value in settings.items() if name != "skip_pages"},
        SKIPPED_PAGES: settings.get("skip_pages", []),
        "extractor": f"{extractor['name']} {extractor['version']}",
    }


def parse_articles_manifest(data: bytes, where: str) -> ArticlesManifest:
    """Parse a manifest of articles, and check it against its schema.

    where: path of the manifest, for error messages.

    Raises ManifestError for a manifest with a fault.
    """
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


def read_manifest_terms(data: bytes, where: str) -> dict[str, Any]:
    """Read a run's terms (everything that determines the output, except the dump's content) from its
    manifest.

    The caller compares them with the terms of a new run.

    where: path of the manifest, for error messages.
    """
    return parse_articles_manifest(data, where).terms()
