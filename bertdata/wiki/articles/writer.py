"""Write the articles of a dump into files, so that a later run can keep the complete files."""

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
    """Raised if this run must leave out a page that is in a file of an earlier run."""


class _ProgressNote(NamedTuple):
    """Position in the dump at the end of a complete file.

    begin: offset of a block of whole pages in the dump's text.
    taken: number of the block's pages that are written or skipped.
    namespace, redirect, inside_text, last_id: state that the extractor carries over from the pages before the
        block.
    dump_md5: md5 of the dump, if there was a first pass.
    skip_pages: ids of pages that the run was asked to leave out.
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
    def at(cls, begin: int, state: BlockState) -> "_ProgressNote":
        """Return the progress at the start of a block."""
        return cls(begin=begin, taken=0, **state._asdict(), dump_md5=None, skip_pages=[], left_out=[])

    @property
    def state(self) -> BlockState:
        return BlockState(self.namespace, self.redirect, self.inside_text, self.last_id)


class ArticleWriter:
    """Writer that extracts the articles of a dump into files, and counts the pages in a report.

    left_out: ids of pages that were left out so far.
    dump_md5: md5 of the dump, if there was a first pass.
    identity: identity of the dump's file, to detect changes.
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
        self._resumed = _ProgressNote.at(0, START)
        # current block: its offset, the state at its start, and the number of its pages that are done
        self._begin, self._entered, self._taken = 0, START, 0
        # ids of pages that this run must leave out and the earlier run did not
        self._new_ids: frozenset[str] = frozenset()
        self._files: list[FileEntry] = []

    @staticmethod
    def has_begun(commit: Commit) -> bool:
        """Return True if an earlier run left complete files."""
        return commit.read_note(make_file_name(0)) is not None

    def resume(self) -> None:
        """Keep the complete files of an earlier run if all of them match their notes.

        Raises InputError if the dump has changed since that run.
        """
        try:
            entries, report, progress = self._read_notes()
        except ManifestError:  # the note was written by another version of the program
            return
        if progress is None:
            return
        if progress.dump_md5 != self.dump_md5:
            raise InputError(
                f"{self._settings.rules.dump}: was changed since the earlier run began: md5 {self.dump_md5}, "
                f"then {progress.dump_md5}; remove {self._commit.directory} to extract the new one"
            )
        # This run may have to leave out pages that the earlier run did not leave out. Such a page may be in
        # the kept files. If the page is a template, any article may have used it, so no file can be kept. If
        # it is an article, _skip_before_offset raises PageIsKept when it meets the page.
        new_ids = frozenset(self._settings.rules.skip_pages).difference(progress.skip_pages)
        if new_ids & self.left_out:
            return  # a template is left out now that any of the kept articles may have used
        for number, entry in enumerate(entries):
            if entry.name != make_file_name(number) or not matches_entry(self._commit.directory, entry):
                return
        self.report, self._resumed, self._files, self._new_ids = report, progress, entries, new_ids
        self.left_out |= set(progress.left_out)

    def _read_notes(self) -> tuple[list[FileEntry], ExtractReport, _ProgressNote | None]:
        """Read the notes of an earlier run.

        Returns its complete files, and the report and progress at the end of the last file. The progress is
        None if there are no files.
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
        """Extract and write all articles that are not in kept files. Yields the offset reached in the dump.

        Raises PageIsKept if a kept file contains a page that this run must leave out. All files must then be
        written again.
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
        """Entries of all complete files."""
        return self._files

    def _write_block(self, block: PageBlock, found: BlockArticles, files: ArticleFiles, taken: int) -> int:
        """Write the block's articles except those of its first ``taken`` pages.

        Returns the number of pages skipped this way.
        """
        articles, report, at = found.articles, self.report, 0
        repeats = found.revisions > len(found.outcomes)
        for number, outcome in enumerate(found.outcomes):
            reason, _, size, _, _ = outcome  # faster than attribute access
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
        """Write the note of a complete file, with the report and the progress up to its end.

        All of it is in one note, so that an interruption cannot separate them. Raises ChangedInputError if
        the dump has changed since the run began.
        """
        self._identity.check()
        self.report.files += 1
        self.report.bytes += entry.bytes
        progress = _ProgressNote.at(self._begin, self._entered)._replace(
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

    left_out: set that receives the page's id if the user left the page out.
    block, outcome: block that contains the page, and the page's result.

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
    """Return True if the page was written as an article that joins several revisions of the dump."""
    return not outcome.reason and has_several_revisions(block.data[outcome.begin : outcome.end])


def is_empty(article: bytes) -> bool:
    """Return True if a rendered article contains only its title."""
    body = article.find(b"\n\n") + 2
    if article[body : body + 1].isalnum():  # fast: nearly every text starts with a letter or digit
        return False
    return not article.split(b"\n", 2)[2].removesuffix(b"</doc>\n").strip()


def _skip_before_offset(
    blocks: Iterable[PageBlock], begin: int, new_ids: Collection[str]
) -> Iterator[PageBlock]:
    """Skip the pages before an offset in the dump's text, and yield the rest of the blocks.

    Raises PageIsKept if a skipped page has one of the ids ``new_ids``.
    """
    marks = [f"<id>{number}</id>".encode() for number in new_ids]
    for block in blocks:
        # The offset may be inside a block, because an earlier run with another engine or number of workers
        # may have cut the dump into other blocks.
        passed = block.data[: max(0, begin - block.begin)]
        if any(mark in passed for mark in marks):
            raise PageIsKept
        if len(passed) < len(block.data):
            yield block._replace(data=block.data[len(passed) :], begin=block.begin + len(passed))
        elif block.skipped is not None and block.begin >= begin:
            yield block
