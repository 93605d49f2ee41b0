"""Output directory of an extraction: checks whether it is finished, and writes its manifest."""

from collections.abc import Iterable

from bertdata.errors import DatasetError
from bertdata.io import storage
from bertdata.io.directory_protocol import Commit
from bertdata.io.file_check import FileEntry, compute_file_md5
from bertdata.io.manifest_file import MANIFEST_NAME, MD5SUMS_NAME, format_md5sums
from bertdata.wiki.articles.manifest import (
    ARTICLES_KIND,
    SKIPPED_PAGES,
    ArticlesManifest,
    make_plan_terms,
    parse_articles_manifest,
    read_manifest_terms,
)
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.settings import ExtractSettings


class ArticlesDirectory:
    """Output directory of an extraction. Workers can receive this object, because it can be pickled.

    dump: path or URL of the dump.
    dump_bytes: size of the dump in bytes.
    day: day that replaces ``{{CURRENTDAY}}`` and similar words. None if it must be found in the pages of the
        dump.
    """

    def __init__(self, directory: str, dump: str, dump_bytes: int, settings: ExtractSettings) -> None:
        self.dump = dump
        self.dump_bytes = dump_bytes
        self.settings = settings
        name = storage.get_base_name(dump)
        self.day = settings.find_day(name)
        terms = make_plan_terms(name, dump_bytes, settings.as_json(self.day), settings.program)
        self.commit = Commit(directory, ARTICLES_KIND, terms, read_manifest_terms, may_grow=(SKIPPED_PAGES,))

    def finished(self) -> ArticlesManifest | None:
        """Return the manifest of the directory if it is finished and all files have the sizes in the
        manifest.

        Returns None for any other directory. Raises DatasetError for a directory that was written with other
        settings, from another dump or by another command. A local dump is read for this, because a changed
        dump may have the same name and size.
        """
        self.commit.refuse_others()
        data = self.commit.manifest()
        if data is None:
            return None
        manifest = parse_articles_manifest(data, self.commit.path(MANIFEST_NAME))
        paths = [self.commit.path(entry.name) for entry in manifest.files]
        sizes = storage.map_paths(paths, _read_size_if_present)
        if sizes != [entry.bytes for entry in manifest.files]:
            return None
        if not storage.is_remote(self.dump) and (md5 := compute_file_md5(self.dump)) != manifest.source.md5:
            raise DatasetError(
                f"{self.commit.directory}: holds the articles of another {manifest.source.name}, md5 "
                f"{manifest.source.md5}; the md5 of {self.dump} is {md5}; choose another directory"
            )
        return manifest

    def keep_finished(self, manifest: ArticlesManifest) -> None:
        """Keep a finished directory. If MD5SUMS is lost, write it again.

        manifest: the directory's manifest, from ``finished``.
        """
        sums = format_md5sums(manifest.files, self.commit.manifest())
        self.commit.release_finished({MD5SUMS_NAME: sums})

    def preview(self, *, begun: bool) -> list[str]:
        """Return lines that tell the user about the dump, the settings and the state of the directory.

        begun: whether the directory contains complete files of an earlier run, which will be kept.
        """
        directory, terms = self.commit.directory, self.commit.terms
        if (manifest := self.finished()) is not None:
            return [f"{directory}: articles of {terms['dump']} are there, {len(manifest.files)} files"]
        plan = ", ".join(f"{name} {value}" for name, value in terms.items() if value not in (None, []))
        how = "an earlier run's complete files are kept" if begun else "from the beginning"
        return [f"{directory}: articles to extract: {plan}; {how}"]

    def finish(
        self,
        report: ExtractReport,
        files: Iterable[FileEntry],
        dump_md5: str,
        left_out: set[str],
        *,
        release: bool = True,
    ) -> None:
        """Write MD5SUMS and the manifest.

        report: report on all pages. Faults that are found now are added to it.
        files: manifest entries of the files with articles.
        dump_md5: md5 of the dump.
        left_out: ids of pages that were found in the dump and left out, as the user asked. If an id in
            ``skip_pages`` of the settings is not among them, this is reported as a fault.
        release: if True, end the run and remove its unfinished files.
        """
        missing = [number for number in self.settings.skip_pages if number not in left_out]
        report.faults += [f"page id {number}: not in the dump, nothing to leave out" for number in missing]
        source = FileEntry(name=storage.get_base_name(self.dump), bytes=self.dump_bytes, md5=dump_md5)
        manifest = ArticlesManifest(
            source=source,
            settings=self.settings.as_json(self.day),
            extractor=self.settings.program,
            report=report,
            files=tuple(files),
        )
        self.commit.finish(manifest.dump(), manifest.md5sums(), release=release)


def _read_size_if_present(path: str) -> int | None:
    """Return the size of a file in bytes, or None if there is no such file."""
    return storage.read_size(path) if storage.exists(path) else None
