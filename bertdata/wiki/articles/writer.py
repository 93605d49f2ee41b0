"""Writes the articles of a dump into files. A later run can keep the complete files of an interrupted run."""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from bertdata.errors import InputError, ManifestError
from bertdata.io.directory_protocol import Commit
from bertdata.io.entry_json import parse_entry
from bertdata.io.file_check import FileEntry, matches_entry
from bertdata.io.file_identity import FileIdentity
from bertdata.wiki.articles.files import ArticleFiles, make_file_name
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.block_work import PackagePages, extract_blocks
from bertdata.wiki.dump.dump import PageBlock
from bertdata.wiki.dump.revisions import has_several_revisions
from bertdata.wiki.extractor import START, BlockArticles, BlockState, ExtractorSettings, PageOutcome
from bertdata.wiki.page_rules import PageRules
from bertdata.wiki.pages import FAULTS, LEFT_OUT_PAGE, LIMIT, describe_page, read_page_id, read_page_title
from bertdata.wiki.worker_pool import WorkerPool


class PageIsKept(Exception):
    """Raised if a page that this run must leave out is already in a file of an earlier run."""


class _ProgressNote(NamedTuple):
    """Place in the dump up to which it has been processed at the end of a complete file.

    begin: offset of the current block of pages in the dump's text.
    taken: number of pages of this block that are written or skipped.
    namespace, redirect, inside_text, last_id: state of the extractor before the block (see ``BlockState``).
    dump_md5: md5 of the dump, or None if the dump was not read in a first pass.
    skip_pages: ids of pages that the user asked to leave out.
    left_out: ids of pages that were found in the dump and left out.
    """

    begin: int
    taken: int
    namespace: str
    redirect: bool
    inside_text: bool
    last_id: str | None
    dump_md5: str | None
    skip_pages: list[str]
    left_out: list[str]

    @classmethod
    def make_at(cls, begin: int, state: BlockState) -> "_ProgressNote":
        """Return the progress at the start of a block.

        begin: offset of the block in the dump's text.
        state: state of the extractor before the block.
        """
        return cls(begin=begin, taken=0, **state._asdict(), dump_md5=None, skip_pages=[], left_out=[])

    @property
    def state(self) -> BlockState:
        """State of the extractor before the block."""
        return BlockState(self.namespace, self.redirect, self.inside_text, self.last_id)


class ArticleWriter:
    """Writer that extracts the articles of a dump into files, and counts the pages in a report.

    report: the report.
    left_out: ids of pages that were left out so far.
    dump_md5: md5 of the dump, or None if the dump was not read in a first pass.
    identity: size and time of the dump's file, to detect changes.
    """

    def __init__(
        self,
        commit: Commit,
        identity: FileIdentity,
        settings: ExtractorSettings,
        report: ExtractReport,
        left_out: set[str],
        dump_md5: str | None,
    ) -> None:
        self.report = report
        self.left_out = left_out
        self.dump_md5 = dump_md5
        self._commit = commit
        self._identity = identity
        self._settings = settings
        self._resumed = _ProgressNote.make_at(0, START)
        # The current block: its offset, the state before it, and the number of its pages that are done.
        self._begin, self._entered, self._taken = 0, START, 0
        # Ids of pages that this run must leave out but the earlier run did not leave out.
        self._new_ids: frozenset[str] = frozenset()
        self._files: list[FileEntry] = []

    @staticmethod
    def has_begun(commit: Commit) -> bool:
        """Return True if an earlier run has left complete files."""
        return commit.read_note(make_file_name(0)) is not None

    def resume(self) -> None:
        """Keep the complete files of an earlier run, if all of them have the sizes and md5s that the run has
        noted.

        Raises InputError if the dump has changed since that run.
        """
        try:
            entries, report, progress = self._read_notes()
        except ManifestError:  # Another version of the program has written the note.
            return
        if progress is None:
            return
        if progress.dump_md5 != self.dump_md5:
            raise InputError(
                f"{self._settings.rules.dump}: was changed since the earlier run began: md5 {self.dump_md5}, "
                f"then {progress.dump_md5}; remove {self._commit.directory} to extract the new one"
            )
        # This run may have to leave out a page that the earlier run did not leave out. If the page is a
        # template, any article may contain its text, so no file can be kept. If it is an article, it may be
        # in a kept file. In this case _skip_before_offset raises PageIsKept when it meets the page.
        new_ids = frozenset(self._settings.rules.skip_pages).difference(progress.skip_pages)
        if new_ids & self.left_out:
            return  # The page is a template whose text may be in any of the files.
        for number, entry in enumerate(entries):
            if entry.name != make_file_name(number) or not matches_entry(self._commit.directory, entry):
                return
        self.report, self._resumed, self._files, self._new_ids = report, progress, entries, new_ids
        self.left_out |= set(progress.left_out)

    def _read_notes(self) -> tuple[list[FileEntry], ExtractReport, _ProgressNote | None]:
        """Read the notes that an earlier run has left about its complete files.

        Returns the manifest entries of these files, and the report and the progress at the end of the last
        file. The progress is None if there are no files.
        """
        entries: list[FileEntry] = []
        report, progress = self.report, None
        while (note := self._commit.read_note(make_file_name(len(entries)))) is not None:
            if set(note) != {"file", "report", "progress"}:
                raise ManifestError("a note of another version")
            entries.append(parse_entry(FileEntry, note["file"]))
            report = parse_entry(ExtractReport, note["report"])
            progress = parse_entry(_ProgressNote, note["progress"])
        return entries, report, progress

    def write(self, blocks: Iterable[PageBlock], pool: WorkerPool) -> Iterator[int]:
        """Extract and write all articles that are not in kept files.

        Yields the number of bytes of the dump read so far.

        Raises PageIsKept if a kept file contains a page that this run must leave out. In this case all files
        must be written again.
        """
        begun = self._resumed
        blocks = _skip_before_offset(blocks, begun.begin, self._new_ids)
        taken = begun.taken
        with (
            ArticleFiles(self._commit, self._files, self._note_file) as files,
            PackagePages(self._settings) as package,
        ):
            for block, found, entered in extract_blocks(blocks, self._settings, pool, begun.state):
                if block.skipped is not None:
                    self.report.skip(*block.skipped)
                else:
                    found, by_package = package.extract_unknown(block, found)
                    self.report.by_package += by_package
                    self._begin, self._entered = block.begin, entered
                    taken -= self._write_block(block, found, files, taken)
                yield block.position
            files.close()
        self.report.files, self.report.bytes = len(files.files), files.total_bytes
        self._files = files.files

    @property
    def files(self) -> list[FileEntry]:
        """Manifest entries of all complete files."""
        return self._files

    def _write_block(self, block: PageBlock, found: BlockArticles, files: ArticleFiles, taken: int) -> int:
        """Write the articles of a block of pages.

        found: result of the extractor for the block.
        taken: number of pages at the start of the block that are already in kept files and are passed over.

        Returns the number of pages that were passed over.
        """
        articles, report, at = found.articles, self.report, 0
        repeats = found.revisions > len(found.outcomes)
        for number, outcome in enumerate(found.outcomes):
            reason, _, size, _, _ = outcome  # Unpacking the tuple is faster than reading its attributes.
            begin, at = at, at + size
            if number < taken:
                continue
            self._taken = number
            report.several_revisions += repeats and is_multi_revision_article(block, outcome)
            if reason:
                skip_page(report, self.left_out, self._settings.rules, block, outcome)
                continue
            article = articles[begin:at]
            files.write(article)
            report.pages += 1
            report.written += 1
            report.empty += is_empty(article)
        return min(taken, len(found.outcomes))

    def _note_file(self, entry: FileEntry) -> None:
        """Store a note about a complete file, with the report and the progress at its end.

        The report and the progress are in the same note, so that an interruption cannot separate them.

        entry: manifest entry of the file.

        Raises ChangedInputError if the dump has changed since the run began.
        """
        self._identity.check()
        self.report.files += 1
        self.report.bytes += entry.bytes
        progress = _ProgressNote.make_at(self._begin, self._entered)._replace(
            taken=self._taken,
            dump_md5=self.dump_md5,
            skip_pages=list(self._settings.rules.skip_pages),
            left_out=sorted(self.left_out),
        )
        note = {"file": entry._asdict(), "report": self.report.as_json(), "progress": progress._asdict()}
        self._commit.note(entry.name, note)


def skip_page(
    report: ExtractReport, left_out: set[str], rules: PageRules, block: PageBlock, outcome: PageOutcome
) -> None:
    """Count a page that gave no article in the report.

    report: the report.
    left_out: set of page ids. The id of the page is added if the user asked to leave the page out.
    rules: limits of the pages, for error messages.
    block: block that contains the page.
    outcome: result for the page, with the reason why it gave no article.

    Raises InputError for a page that exceeds a limit.
    """
    reason, name, _, begin, end = outcome
    if reason == LIMIT:
        page = block.data[begin:end]
        raise rules.make_limit_error(read_page_id(page), read_page_title(page), name)
    if reason in FAULTS:
        name = describe_page(block.data[begin:end]) + (f" ({name})" if name else "")
    elif reason == LEFT_OUT_PAGE:
        left_out.add(name)
    report.skip(reason, name)


def is_multi_revision_article(block: PageBlock, outcome: PageOutcome) -> bool:
    """Return True if a page was written as an article that contains the texts of several revisions.

    block: block that contains the page.
    outcome: result for the page.
    """
    return not outcome.reason and has_several_revisions(block.data[outcome.begin : outcome.end])


def is_empty(article: bytes) -> bool:
    """Return True if the text of an article is empty, so that only its title is written."""
    body = article.find(b"\n\n") + 2
    # This test is fast, and nearly every text starts with a letter or digit.
    if article[body : body + 1].isalnum():
        return False
    return not article.split(b"\n", 2)[2].removesuffix(b"</doc>\n").strip()


def _skip_before_offset(
    blocks: Iterable[PageBlock], begin: int, new_ids: Collection[str]
) -> Iterator[PageBlock]:
    """Pass over the pages before an offset in the dump's text, and yield the rest of the blocks.

    begin: the offset.
    new_ids: ids of pages that must not be passed over.

    Raises PageIsKept if a page that is passed over has one of these ids.
    """
    marks = [f"<id>{number}</id>".encode() for number in new_ids]
    for block in blocks:
        # The offset may be inside a block. An earlier run with another engine or another number of workers
        # may have cut the dump into different blocks.
        passed = block.data[: max(0, begin - block.begin)]
        if any(mark in passed for mark in marks):
            raise PageIsKept
        if len(passed) < len(block.data):
            yield block._replace(data=block.data[len(passed) :], begin=block.begin + len(passed))
        elif block.skipped is not None and block.begin >= begin:
            yield block
