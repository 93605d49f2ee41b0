"""The text stage as a whole: extracted files in, parts or shards out."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.process_pool import run_in_order
from bertdata.text.evaluation import eval_md5, eval_text
from bertdata.text.mlperf import MlperfText, make_sentences
from bertdata.text.nvidia import NvidiaText, make_articles
from bertdata.text.parts import part_text
from bertdata.text.plan import EVAL_MD5, EVAL_TEXT, TextPlan, deal_out, plan_text
from bertdata.text.settings import SegmentCounts, SegmentSettings
from bertdata.text.spool import open_spool


class Splitter(Protocol):
    """Decides where sentences end."""

    def segment_lines(self, data: bytes, name: str = "text", *, keeps_indent: bool = False) -> bytes:
        r"""The sentences of UTF-8 lines, one a line; an empty line stays an empty line.

        Only ``\n`` ends a line. Sentences are stripped; with keeps_indent the white space before a
        line's first sentence stays.
        """
        ...


LoadSplitter = Callable[[], Splitter]
"""Called for each file in the process that works on it: picklable, and quick from the second call on."""

Progress = Callable[[int], None]
"""Told of each file that is done: its bytes."""


def segment(
    files: Sequence[str],
    directory: str,
    settings: SegmentSettings,
    load_splitter: LoadSplitter,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> SegmentCounts:
    """Write the parts, or the shards, of the extracted files, in their order, into a directory.

    The same bytes for any number of workers. A file appears under its name when it is whole.
    InputError and its like for data at fault; DatasetError when the directory holds such files of
    another run, which would pass for this one's.
    """
    if workers < 1:
        raise SettingsError(f"workers is {workers}, expected 1 or more")
    if not files:
        raise MissingInputError("no extracted files given")
    plan = plan_text(files, settings)
    storage.make_directory(directory)
    plan.refuse_leftovers(directory)
    run = _Run(files, directory, plan, settings, load_splitter, workers, progress)
    if settings.recipe == "mlperf":
        _write_parts(run)
    else:
        _write_shards(run)
    return run.counts


class _Run:
    """What a run is given, and what it has counted so far."""

    def __init__(
        self,
        files: Sequence[str],
        directory: str,
        plan: TextPlan,
        settings: SegmentSettings,
        load_splitter: LoadSplitter,
        workers: int,
        progress: Progress | None,
    ) -> None:
        self.files = files
        self.directory = directory
        self.plan = plan
        self.settings = settings
        self.load_splitter = load_splitter
        self.workers = workers
        self.counts = SegmentCounts()
        self._progress = progress

    def path(self, name: str) -> str:
        return storage.join(self.directory, name)

    def count_file(self, text: "MlperfText | NvidiaText") -> None:
        self.counts.add(text.counts)
        if self._progress is not None:
            self._progress(text.bytes_in)


@dataclass(frozen=True, slots=True)
class MlperfStep:
    """Number and path of a file, one of ``files``, to its sentences."""

    files: int
    eval_articles: int
    load_splitter: LoadSplitter

    def __call__(self, work: tuple[int, str]) -> MlperfText:
        index, path = work
        split = self.load_splitter().segment_lines
        return make_sentences(storage.read_bytes(path), path, index, self.files, self.eval_articles, split)


def _write_parts(run: _Run) -> None:
    step = MlperfStep(len(run.files), run.settings.eval_articles, run.load_splitter)
    results = run_in_order(step, enumerate(run.files), run.workers)
    with (
        closing(results),
        storage.open_output(run.path(EVAL_TEXT)) as eval_file,
        storage.open_output(run.path(EVAL_MD5)) as md5_file,
    ):
        by_part = groupby(zip(run.plan.part_of, results, strict=True), key=lambda pair: pair[0])
        for number, group in by_part:
            with storage.open_output(run.path(run.plan.names[number])) as part:
                for _, text in group:
                    run.counts.bytes_out += part.write(part_text(text.training))
                    run.counts.bytes_out += eval_file.write(eval_text(text.withheld))
                    run.counts.bytes_out += md5_file.write(eval_md5(text.withheld))
                    run.count_file(text)


@dataclass(frozen=True, slots=True)
class NvidiaStep:
    """The path of a file to its articles."""

    load_splitter: LoadSplitter

    def __call__(self, path: str) -> NvidiaText:
        return make_articles(storage.read_bytes(path), path, self.load_splitter().segment_lines)


def _write_shards(run: _Run) -> None:
    sentences = array("I")
    results = run_in_order(NvidiaStep(run.load_splitter), run.files, run.workers)
    with closing(results), open_spool(run.directory) as spool:
        for text in results:
            spool.add(text.articles)
            sentences.extend(text.sentences)
            run.count_file(text)
        for name, numbers in zip(run.plan.names, deal_out(sentences, run.settings), strict=True):
            run.counts.bytes_out += _write_shard(run.path(name), spool.articles(numbers))


def _write_shard(path: str, articles: Iterable[bytes]) -> int:
    with storage.open_output(path) as shard:
        return sum(shard.write(article) for article in articles)
