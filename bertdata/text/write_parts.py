"""MLPerf's parts and its evaluation set: the files of a part are a group."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby

from bertdata.io import storage
from bertdata.io.commit import Commit
from bertdata.io.file_check import FileEntry, HashingSink
from bertdata.text.evaluation import eval_md5, eval_text
from bertdata.text.grouped_run import Group, GroupedRun, Note
from bertdata.text.mlperf import MlperfText, make_sentences
from bertdata.text.parts import part_text
from bertdata.text.plan import EVAL_MD5, EVAL_TEXT
from bertdata.text.splitter import SplitterLoader


@dataclass(frozen=True, slots=True)
class MlperfStep:
    """Number and path of a file, one of ``files``, to its sentences."""

    files: int
    eval_articles: int
    load_splitter: SplitterLoader

    def __call__(self, work: tuple[int, str]) -> MlperfText:
        index, path = work
        split = self.load_splitter().segment_lines
        return make_sentences(storage.read_bytes(path), path, index, self.files, self.eval_articles, split)


def write_parts(run: GroupedRun) -> list[FileEntry]:
    """Write parts and evaluation set; their entries.

    The withheld articles of each part wait in scratch files of their own, so that a later run has them.
    """
    plan, commit = run.text.plan, run.text.commit
    step = MlperfStep(len(run.files), plan.settings.eval_articles, run.load_splitter)
    numbered = groupby(range(len(run.files)), key=lambda number: plan.part_of[number])
    groups = [Group(name=plan.names[part], numbers=list(numbers)) for part, numbers in numbered]

    def make(group: Group, texts: Iterator[MlperfText]) -> Note:
        text_scratch, md5_scratch = f"{group.name}.{EVAL_TEXT}", f"{group.name}.{EVAL_MD5}"
        with (
            run.text.open(group.name) as part,
            open_scratch(commit, text_scratch) as eval_file,
            open_scratch(commit, md5_scratch) as md5_file,
        ):
            for text in texts:
                part.write(part_text(text.training))
                eval_file.write(eval_text(text.withheld))
                md5_file.write(eval_md5(text.withheld))
        entries = [
            part.entry(group.name),
            eval_file.entry(commit.scratch_name(text_scratch)),
            md5_file.entry(commit.scratch_name(md5_scratch)),
        ]
        return {"files": [asdict(entry) for entry in entries]}

    made = [FileEntry(**note["files"][0]) for note in run.notes(groups, step, make)]
    for name in (EVAL_TEXT, EVAL_MD5):
        with run.text.open(name) as file:
            for group in groups:
                scratch = commit.scratch_name(f"{group.name}.{name}")
                file.write(storage.read_bytes(commit.path(scratch)))
        made.append(file.entry(name))
    return made


@contextmanager
def open_scratch(commit: Commit, name: str) -> Iterator[HashingSink]:
    """A scratch file for a later step, opened for writing; it appears when the block ends well."""
    with commit.open(commit.scratch_name(name)) as file:
        yield HashingSink(file.write)
