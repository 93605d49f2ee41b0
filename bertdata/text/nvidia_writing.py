"""Write NVIDIA's text shards.

Which shard an article goes to is only known when the sentences of all articles are counted. Until then the
articles wait in scratch files.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import BinaryIO

from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.io.entry_json import parse_number_list
from bertdata.io.file_check import FileEntry, HashingSink
from bertdata.text.grouped_run import Group, GroupedRun, Note
from bertdata.text.nvidia import NvidiaText, make_articles
from bertdata.text.splitter import SplitterLoader
from bertdata.text.text_plan import NumberedFile, assign_articles_to_shards

GROUP_FILES = 64
"""Number of input files per group (see ``grouped_run``). Extracted files have about a megabyte each."""


@dataclass(frozen=True, slots=True)
class FileToArticles:
    """Function object that reads a file's articles and splits them into sentences. Workers call it."""

    load_splitter: SplitterLoader

    def __call__(self, work: NumberedFile) -> NvidiaText:
        _, path, kind = work
        return make_articles(storage.read_bytes(path), path, self.load_splitter().segment_lines, kind)


def write_shards(run: GroupedRun) -> list[FileEntry]:
    """Write the training and test shards, and return their manifest entries.

    For a remote output directory the scratch files are local, because each article is read back by itself.
    They are lost if the run is interrupted, and a later run starts from the beginning.
    """
    if not storage.is_remote(run.text.commit.directory):
        return _write_shards(run, None)
    with TemporaryDirectory() as place:
        return _write_shards(run, place)


def _write_shards(run: GroupedRun, place: str | None) -> list[FileEntry]:
    """Split all articles into sentences in scratch files, then copy them to their shards.

    place: local directory for the scratch files. None: the output directory's ``unfinished/``, where a later
        run finds them.
    """
    commit, plan = run.text.commit, run.text.plan
    starts = range(0, len(run.files), GROUP_FILES)
    groups = [
        Group(
            name=(name := f"articles-{index:05d}"),
            numbers=range(start, min(start + GROUP_FILES, len(run.files))),
            made=[commit.scratch_name(name)],
        )
        for index, start in enumerate(starts)
    ]

    def make_path(group: Group) -> str:
        (name,) = group.made
        return commit.path(name) if place is None else storage.join(place, storage.get_base_name(name))

    def make(group: Group, texts: Iterator[NvidiaText]) -> Note:
        path = make_path(group)
        lengths, sentences = array("I"), array("I")
        opened = commit.open_path(path) if place is None else storage.open_output(path, flushes=False)
        with opened as file:
            sink = HashingSink(file.write)
            for text in texts:
                for article in text.articles:
                    sink.write(article)
                lengths.extend(map(len, text.articles))
                sentences.extend(text.sentences)
        entry = sink.entry(*group.made)
        return {"files": [entry._asdict()], "lengths": list(lengths), "sentences": list(sentences)}

    # In the first pass, all articles are split into sentences and written to one scratch file per group, and
    # their lengths and sentence counts are kept. The sentence counts decide which shard gets which article.
    # In the second pass, each shard's articles are copied from the scratch files.
    sentences = array("I")
    with StoredArticles() as spool:
        notes = run.run_groups(
            groups, FileToArticles(run.load_splitter), make, keep=place is None, is_whole=_is_complete_note
        )
        for group, note in zip(groups, notes, strict=True):
            spool.add(make_path(group), note["lengths"])
            sentences.extend(note["sentences"])
        made = []
        for name, numbers in zip(
            plan.names, assign_articles_to_shards(sentences, plan.settings), strict=True
        ):
            with run.text.open(name) as shard:
                for article in spool.read_articles(numbers):
                    shard.write(article)
            made.append(shard.entry(name))
    return made


def _is_complete_note(note: Note) -> bool:
    """Return True if an earlier run's note has the length and sentence count of each article in its file."""
    try:
        lengths, sentences = parse_number_list(note.get("lengths")), parse_number_list(note.get("sentences"))
    except ManifestError:  # the note was written by another version of the program
        return False
    return (
        len(lengths) == len(sentences)
        and sum(lengths) == note["files"][0]["bytes"]
        and max([*lengths, *sentences], default=0) < 1 << 32
    )


class StoredArticles:
    """Reader of articles that are stored one after another in several scratch files.

    An article is found by its number, which is counted from 0 over all files. The reader needs eight bytes of
    memory per article.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._files: list[BinaryIO] = []
        self._firsts: list[int] = []
        self._starts: list[array[int]] = []
        self._articles = 0

    def add(self, path: str, lengths: Iterable[int]) -> None:
        """Add a file of articles that are stored one after another.

        The first of these articles gets the number after the last article of the file that was added before.

        lengths: size of each article in bytes.
        """
        starts = array("Q", [0])
        for length in lengths:
            starts.append(starts[-1] + length)
        self._files.append(self._stack.enter_context(storage.open_input(path)))
        self._firsts.append(self._articles)
        self._starts.append(starts)
        self._articles += len(starts) - 1

    def read_articles(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """Yield the articles with these numbers, in this order."""
        for number in numbers:
            index = bisect_right(self._firsts, number) - 1
            starts, place = self._starts[index], number - self._firsts[index]
            self._files[index].seek(starts[place])
            yield self._files[index].read(starts[place + 1] - starts[place])

    def __enter__(self) -> "StoredArticles":
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()
