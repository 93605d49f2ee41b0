"""The text stage as a whole: extracted files in, parts or shards out."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from bertdata import storage
from bertdata.errors import DatasetError, MissingInputError, SettingsError
from bertdata.text.evaluation import eval_md5, eval_text
from bertdata.text.mlperf import MlperfText, make_sentences
from bertdata.text.nvidia import NvidiaText, make_articles
from bertdata.text.nvidia_sharding import distribute
from bertdata.text.parts import part_name, part_text, plan_parts
from bertdata.text.settings import SegmentCounts, SegmentSettings
from bertdata.text.spool import open_spool
from bertdata.workers import run_in_order


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

_OUTPUT_NAMES = re.compile(r"part-\d+-of-\d+|eval\.txt|eval\.md5|[^/]+_(training|test)_\d+\.txt")


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
    storage.make_directory(directory)
    run = _Run(files, directory, settings, load_splitter, workers, progress)
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
        settings: SegmentSettings,
        load_splitter: LoadSplitter,
        workers: int,
        progress: Progress | None,
    ) -> None:
        self.files = files
        self.directory = directory
        self.settings = settings
        self.load_splitter = load_splitter
        self.workers = workers
        self.counts = SegmentCounts()
        self._progress = progress

    def path(self, name: str) -> str:
        return storage.join(self.directory, name)

    def count_file(self, text: "MlperfText | NvidiaText") -> None:
        self.counts.files += 1
        self.counts.bytes_in += text.bytes_in
        if self._progress is not None:
            self._progress(text.bytes_in)

    def refuse_leftovers(self, planned: Collection[str]) -> None:
        """DatasetError for parts or shards in the directory that this run will not replace."""
        names = storage.list_files(self.directory)
        left = [name for name in names if _OUTPUT_NAMES.fullmatch(name) and name not in planned]
        if left:
            raise DatasetError(
                f"{self.directory}: holds {left[0]}{' and others' if left[1:] else ''}, which these inputs "
                "and settings do not make; remove the files of the other run, or choose another directory"
            )


@dataclass(frozen=True, slots=True)
class _MlperfStep:
    """Number and path of a file to its sentences."""

    files: int
    eval_articles: int
    load_splitter: LoadSplitter

    def __call__(self, work: tuple[int, str]) -> MlperfText:
        index, path = work
        split = self.load_splitter().segment_lines
        return make_sentences(storage.read_bytes(path), path, index, self.files, self.eval_articles, split)


def _write_parts(run: _Run) -> None:
    sizes = [storage.size(path) for path in run.files]
    numbers = plan_parts(sizes, run.settings.block_size, run.files)
    run.refuse_leftovers({part_name(number) for number in numbers} | {"eval.txt", "eval.md5"})
    step = _MlperfStep(len(run.files), run.settings.eval_articles, run.load_splitter)
    results = run_in_order(step, enumerate(run.files), run.workers)
    with (
        closing(results),
        storage.open_output(run.path("eval.txt")) as eval_file,
        storage.open_output(run.path("eval.md5")) as md5_file,
    ):
        by_part = groupby(zip(numbers, results, strict=True), key=lambda pair: pair[0])
        for number, group in by_part:
            with storage.open_output(run.path(part_name(number))) as part:
                for _, text in group:
                    run.counts.bytes_out += part.write(part_text(text.training))
                    run.counts.bytes_out += eval_file.write(eval_text(text.withheld))
                    run.counts.bytes_out += md5_file.write(eval_md5(text.withheld))
                    run.counts.withheld += len(text.withheld)
                    run.counts.articles += text.articles
                    run.counts.sentences += text.sentences
                    run.count_file(text)


@dataclass(frozen=True, slots=True)
class _NvidiaStep:
    """The path of a file to its articles."""

    load_splitter: LoadSplitter

    def __call__(self, path: str) -> NvidiaText:
        return make_articles(storage.read_bytes(path), path, self.load_splitter().segment_lines)


def _write_shards(run: _Run) -> None:
    settings = run.settings
    training = [f"{settings.prefix}_training_{index}.txt" for index in range(settings.training_shards)]
    test = [f"{settings.prefix}_test_{index}.txt" for index in range(settings.test_shards)]
    run.refuse_leftovers({*training, *test})
    results = run_in_order(_NvidiaStep(run.load_splitter), run.files, run.workers)
    with closing(results), open_spool(run.directory) as spool:
        for text in results:
            spool.add(text.articles)
            run.counts.articles += len(text.articles)
            run.counts.empty += text.empty
            run.counts.lines_outside += text.outside
            run.count_file(text)
        run.counts.sentences = sum(spool.sentences)
        shards = distribute(
            spool.sentences,
            training_shards=settings.training_shards,
            test_shards=settings.test_shards,
            test_fraction=settings.test_fraction,
        )
        for name, numbers in zip(training + test, shards.training + shards.test, strict=True):
            run.counts.bytes_out += _write_shard(run.path(name), spool.articles(numbers))


def _write_shard(path: str, articles: Iterable[bytes]) -> int:
    with storage.open_output(path) as shard:
        return sum(shard.write(article) for article in articles)
