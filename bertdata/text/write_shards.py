"""NVIDIA's text shards: articles wait in scratch files until it is known which shard each goes to."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.io.entry_json import parse_numbers
from bertdata.io.file_check import FileEntry, HashingSink
from bertdata.text.grouped_run import Group, GroupedRun, Note
from bertdata.text.nvidia import NvidiaText, make_articles
from bertdata.text.plan import NumberedFile, deal_out
from bertdata.text.splitter import SplitterLoader
from bertdata.text.spool import Spool

GROUP_FILES = 64
"""Extracted files, of a megabyte each, that are noted together."""


@dataclass(frozen=True, slots=True)
class NvidiaStep:
    """Number, path and kind of a file to its articles."""

    load_splitter: SplitterLoader

    def __call__(self, work: NumberedFile) -> NvidiaText:
        _, path, kind = work
        return make_articles(storage.read_bytes(path), path, self.load_splitter().segment_lines, kind)


def write_shards(run: GroupedRun) -> list[FileEntry]:
    """Write training and test shards. Returns their entries.

    The articles of a remote directory wait in a temporary one of this machine, since each is read back
    by itself: a later run then begins anew.
    """
    if not storage.is_remote(run.text.commit.directory):
        return _write_shards(run, None)
    with TemporaryDirectory() as place:
        return _write_shards(run, place)


def _write_shards(run: GroupedRun, place: str | None) -> list[FileEntry]:
    """Write the shards. place: directory of the scratch files, None: ``unfinished/``, for a later run."""
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

    def path_of(group: Group) -> str:
        (name,) = group.made
        return commit.path(name) if place is None else storage.join(place, storage.base_name(name))

    def make(group: Group, texts: Iterator[NvidiaText]) -> Note:
        path = path_of(group)
        lengths, sentences = array("I"), array("I")
        with commit.open_path(path) if place is None else storage.open_output(path) as file:
            sink = HashingSink(file.write)
            for text in texts:
                for article in text.articles:
                    sink.write(article)
                lengths.extend(map(len, text.articles))
                sentences.extend(text.sentences)
        entry = sink.entry(*group.made)
        return {"files": [entry._asdict()], "lengths": list(lengths), "sentences": list(sentences)}

    sentences = array("I")
    with Spool() as spool:
        notes = run.notes(groups, NvidiaStep(run.load_splitter), make, keep=place is None, is_whole=_is_whole)
        for group, note in zip(groups, notes, strict=True):
            spool.add(path_of(group), note["lengths"])
            sentences.extend(note["sentences"])
        made = []
        for name, numbers in zip(plan.names, deal_out(sentences, plan.settings), strict=True):
            with run.text.open(name) as shard:
                for article in spool.articles(numbers):
                    shard.write(article)
            made.append(shard.entry(name))
    return made


def _is_whole(note: Note) -> bool:
    """True if an earlier run's note has length and number of sentences of each article in its file."""
    try:
        lengths, sentences = parse_numbers(note.get("lengths")), parse_numbers(note.get("sentences"))
    except ManifestError:  # a note of another version
        return False
    return (
        len(lengths) == len(sentences)
        and sum(lengths) == note["files"][0]["bytes"]
        and max([*lengths, *sentences], default=0) < 1 << 32
    )
