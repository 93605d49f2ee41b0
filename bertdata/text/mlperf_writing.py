"""Write MLPerf's parts and evaluation set. The input files of a part are processed as a group
(``grouped_run``).
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby

from bertdata.config.held_out_names import EVAL_MD5, EVAL_TEXT
from bertdata.io import storage
from bertdata.io.file_check import FileEntry
from bertdata.text.grouped_run import Group, GroupedRun, Note
from bertdata.text.mlperf import MlperfText, make_sentences
from bertdata.text.mlperf_evaluation import format_eval_md5, format_eval_text
from bertdata.text.mlperf_parts import trim_part_text
from bertdata.text.splitter import SplitterLoader
from bertdata.text.text_plan import NumberedFile

EVAL = (EVAL_TEXT, EVAL_MD5)


@dataclass(frozen=True, slots=True)
class FileToSentences:
    """Function object that splits a file into sentences and withholds articles from it. Workers call it.

    files: number of all input files.
    eval_articles: number of articles to withhold from all files together.
    """

    files: int
    eval_articles: int
    load_splitter: SplitterLoader

    def __call__(self, work: NumberedFile) -> MlperfText:
        index, path, kind = work
        split = self.load_splitter().segment_lines
        data = storage.read_bytes(path)
        return make_sentences(data, path, index, self.files, self.eval_articles, split, kind)


def write_parts(run: GroupedRun) -> list[FileEntry]:
    """Write the parts and the evaluation set, and return their manifest entries.

    The withheld articles of each part wait in a scratch file until all parts are written. If the run is
    interrupted, a later run reads them from there.
    """
    plan, commit = run.text.plan, run.text.commit
    step = FileToSentences(len(run.files), plan.settings.eval_articles, run.load_splitter)

    def name_scratch_file(part: str, name: str) -> str:
        return commit.scratch_name(f"{part}.{name}")

    numbered = groupby(range(len(run.files)), key=lambda number: plan.part_of[number])
    groups = [
        Group(
            name=name, numbers=list(numbers), made=[name, *(name_scratch_file(name, kind) for kind in EVAL)]
        )
        for name, numbers in ((plan.names[part], numbers) for part, numbers in numbered)
    ]

    def make(group: Group, texts: Iterator[MlperfText]) -> Note:
        with ExitStack() as opened:
            sinks = [opened.enter_context(run.text.open(name)) for name in group.made]
            part, eval_file, md5_file = sinks
            for text in texts:
                part.write(trim_part_text(text.training))
                eval_file.write(format_eval_text(text.withheld))
                md5_file.write(format_eval_md5(text.withheld))
        entries = [sink.entry(name) for name, sink in zip(group.made, sinks, strict=True)]
        return {"files": [entry._asdict() for entry in entries]}

    made = [FileEntry(**note["files"][0]) for note in run.run_groups(groups, step, make)]
    for name in EVAL:
        with run.text.open(name) as file:
            for group in groups:
                file.write(storage.read_bytes(commit.path(name_scratch_file(group.name, name))))
        made.append(file.entry(name))
    return made
