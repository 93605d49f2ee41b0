"""Articles of blocks, in order, into files. A run that goes on after a crash keeps the complete ones."""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from bertdata.errors import InputError, ManifestError
from bertdata.io.directory_protocol import Commit
from bertdata.io.entry_json import parse_entry
from bertdata.io.file_check import FileEntry, fits
from bertdata.io.file_identity import FileIdentity
from bertdata.wiki.articles.files import ArticleFiles, file_name
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.block_work import PackagePages, articles_of
from bertdata.wiki.dump.dump import PageBlock
from bertdata.wiki.dump.revisions import has_several
from bertdata.wiki.extractor import START, BlockArticles, BlockState, ExtractorSettings, PageOutcome
from bertdata.wiki.page_rules import PageRules
from bertdata.wiki.pages import FAULTS, LEFT_OUT, LIMIT, page_id, page_name, page_title
from bertdata.wiki.worker_pool import WorkerPool


class PageIsKept(Exception):
    """A page that is to be left out lies among those that an earlier run is done with."""


class _Progress(NamedTuple):
    """The end of a complete file.

    begin: of a block of whole pages in the dump's text; taken: pages of it that are done with. namespace,
    redirect, inside_text, last_id: the state at its begin.
    dump_md5: of the dump, where a first pass was made. skip_pages: ids to leave out; left_out: those of
    them that were met.
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
    def at(cls, begin: int, state: BlockState) -> "_Progress":
        """Progress to the begin of a block."""
        return cls(begin=begin, taken=0, **state._asdict(), dump_md5=None, skip_pages=[], left_out=[])

    @property
    def state(self) -> BlockState:
        return BlockState(self.namespace, self.redirect, self.inside_text, self.last_id)


class ArticleWriter:
    """Writes the second pass's articles into files, and keeps the report.

    left_out: ids of pages that were left out so far. dump_md5: where a first pass was made. identity: of the
    dump's file.
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
        self._resumed = _Progress.at(0, START)
        self._begin, self._entered, self._taken = 0, START, 0  # of the block in work, and its pages done
        self._new_ids: frozenset[str] = frozenset()  # of pages that an earlier run did not leave out
        self._files: list[FileEntry] = []

    @staticmethod
    def has_begun(commit: Commit) -> bool:
        """True if an earlier run left complete files."""
        return commit.read_note(file_name(0)) is not None

    def resume(self) -> None:
        """Take up an earlier run's complete files, unless one does not fit its note.

        InputError if the dump has changed since.
        """
        try:
            entries, report, progress = self._read_notes()
        except ManifestError:  # a note of another version
            return
        if progress is None:
            return
        if progress.dump_md5 != self.dump_md5:
            raise InputError(
                f"{self._settings.rules.dump}: was changed since the earlier run began: md5 {self.dump_md5}, "
                f"then {progress.dump_md5}; remove {self._commit.directory} to extract the new one"
            )
        new_ids = frozenset(self._settings.rules.skip_pages).difference(progress.skip_pages)
        if new_ids & self.left_out:
            return  # the template may be in any of the articles
        for number, entry in enumerate(entries):
            if entry.name != file_name(number) or not fits(self._commit.directory, entry):
                return
        self.report, self._resumed, self._files, self._new_ids = report, progress, entries, new_ids
        self.left_out |= set(progress.left_out)

    def _read_notes(self) -> tuple[list[FileEntry], ExtractReport, _Progress | None]:
        """The complete files, report and progress at the end of the last. None where there is none."""
        entries: list[FileEntry] = []
        report, progress = self.report, None
        while (note := self._commit.read_note(file_name(len(entries)))) is not None:
            if set(note) != {"file", "report", "progress"}:
                raise ManifestError("a note of another version")
            entries.append(parse_entry(FileEntry, note["file"]))
            report = parse_entry(ExtractReport, note["report"])
            progress = parse_entry(_Progress, note["progress"])
        return entries, report, progress

    def write(self, blocks: Iterable[PageBlock], pool: WorkerPool) -> Iterator[int]:
        """Extract and write what is not in the files that are kept. Returns the offsets in the dump reached.

        PageIsKept if the kept files hold a page that is to be left out now: write all files anew then.
        """
        begun = self._resumed
        blocks = _from_offset(blocks, begun.begin, self._new_ids)
        taken = begun.taken
        with (
            ArticleFiles(self._commit, self._files, self._note_file) as files,
            PackagePages(self._settings) as package,
        ):
            for block, found, entered in articles_of(blocks, self._settings, pool, begun.state):
                if block.skipped is not None:
                    self.report.skip(*block.skipped)
                else:
                    found, by_package = package.completed(block, found)
                    self.report.by_package += by_package
                    self._begin, self._entered = block.begin, entered
                    taken -= self._take(block, found, files, taken)
                yield block.position
            files.close()
        self.report.files, self.report.bytes = len(files.files), files.total_bytes
        self._files = files.files

    @property
    def files(self) -> list[FileEntry]:
        """The entries of all complete files."""
        return self._files

    def _take(self, block: PageBlock, found: BlockArticles, files: ArticleFiles, taken: int) -> int:
        """Write the block's articles but those of its first ``taken`` pages. Returns the pages passed."""
        articles, report, at = found.articles, self.report, 0
        repeats = found.revisions > len(found.outcomes)
        for number, outcome in enumerate(found.outcomes):
            reason, _, size, _, _ = outcome  # its fields, quickly
            begin, at = at, at + size
            if number < taken:
                continue
            self._taken = number
            report.several_revisions += repeats and holds_several(block, outcome)
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
        """Note a complete file, and everything before the article that starts the next one.

        One note holds all of it, so that no accident comes between. ChangedInputError where the dump was
        changed meanwhile.
        """
        self._identity.check()
        self.report.files += 1
        self.report.bytes += entry.bytes
        progress = _Progress.at(self._begin, self._entered)._replace(
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
    """Count a page that is no article. InputError for one that breaks a limit.

    left_out: takes its id if it is left out.
    """
    reason, name, _, begin, end = outcome
    if reason == LIMIT:
        page = block.data[begin:end]
        raise rules.too_much(page_id(page), page_title(page), name)
    if reason in FAULTS:
        name = page_name(block.data[begin:end]) + (f" ({name})" if name else "")
    elif reason == LEFT_OUT:
        left_out.add(name)
    report.skip(reason, name)


def holds_several(block: PageBlock, outcome: PageOutcome) -> bool:
    """Return whether the page is an article of several revisions."""
    return not outcome.reason and has_several(block.data[outcome.begin : outcome.end])


def is_empty(article: bytes) -> bool:
    """True if nothing but the title is left of a rendered article."""
    body = article.find(b"\n\n") + 2
    if article[body : body + 1].isalnum():  # as nearly always
        return False
    return not article.split(b"\n", 2)[2].removesuffix(b"</doc>\n").strip()


def _from_offset(blocks: Iterable[PageBlock], begin: int, new_ids: Collection[str]) -> Iterator[PageBlock]:
    """The blocks from the offset on. PageIsKept if one of the ids stands before it."""
    marks = [f"<id>{number}</id>".encode() for number in new_ids]
    for block in blocks:
        passed = block.data[: max(0, begin - block.begin)]
        if any(mark in passed for mark in marks):
            raise PageIsKept
        if len(passed) < len(block.data):
            yield block._replace(data=block.data[len(passed) :], begin=block.begin + len(passed))
        elif block.skipped is not None and block.begin >= begin:
            yield block
