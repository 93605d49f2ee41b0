"""Stages from articles or plain text to text parts and their manifest: clean and split, gather, write.

Beam delivers elements in any order. So files, parts and (for NVIDIA's shards) articles are numbered at
launch, and each writer sorts its elements by number. An element is a whole file, or the articles of one file
that belong to one shard.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import apache_beam as beam

from beam_pipelines.report.counters import add_to_counters, count_text
from beam_pipelines.report.errors import add_path_to_errors
from beam_pipelines.stages.text_manifest import WriteTextManifest, make_input_entry
from beam_pipelines.stages.text_stage import TextStage
from beam_pipelines.transport.spill_files import StageBytes, read_value
from bertdata.config.held_out_names import EVAL_MD5, EVAL_TEXT
from bertdata.dataset.provenance import Provenance
from bertdata.io.file_check import FileEntry
from bertdata.text.mlperf_evaluation import format_eval_md5, format_eval_text
from bertdata.text.mlperf_parts import trim_part_text
from bertdata.text.mlperf_writing import FileToSentences
from bertdata.text.nvidia_writing import FileToArticles
from bertdata.text.text_plan import NumberedFile, assign_articles_to_shards

ShardPositions = tuple[Sequence[int], Sequence[int]]
"""Two sequences with an item per article of a file: its shard, and its position in that shard."""


def make_parts(stage: TextStage) -> beam.PTransform:
    """Return the Beam stages that make text parts by the rules of the text recipe (MLPerf's or NVIDIA's)."""
    return MakeTextShards(stage) if stage.plan.settings.recipe == "nvidia" else MakeParts(stage)


class MakeParts(beam.PTransform):  # type: ignore[misc]
    """Write MLPerf's parts, eval.txt and eval.md5 from numbered files.

    Returns the parts' paths, and the manifests once everything is written.

    ::

        (0, "extracted/AA/wiki_00", "articles") -> "results/part-00000-of-00500"
    """

    def __init__(self, stage: TextStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(
        self, files: beam.PCollection[NumberedFile]
    ) -> tuple[beam.PCollection[str], beam.PCollection[Provenance]]:
        # Without Reshuffle, the runner may fuse listing and splitting into one stage, which one worker would
        # then do alone.
        texts = (
            files
            | "spread files over workers" >> beam.Reshuffle()
            | "clean and split sentences"
            >> beam.ParDo(SplitFile(self._stage)).with_outputs("withheld", "entries", main="texts")
        )
        evaluation = (
            texts.withheld
            | "gather withheld articles" >> beam.GroupByKey()
            | "write evaluation set" >> beam.ParDo(WriteEvaluation(self._stage))
        )
        parts = (
            texts.texts
            | "gather parts" >> beam.GroupByKey()
            | "write part" >> beam.ParDo(WritePart(self._stage)).with_outputs("entries", main="parts")
        )
        entries = (texts.entries, evaluation, parts.entries)
        return parts.parts, entries | "write text manifest" >> WriteTextManifest(self._stage)


class SplitFile(beam.DoFn):  # type: ignore[misc]
    """Split a file into sentences, and set its evaluation articles aside.

    ::

        (3, "AA/wiki_03", "articles") -> (0, (3, text)), and tagged "withheld": (0, (3, [article, ...])),
        "entries": (0, (3, TextInput(...)))

    The first number of an output is the part's number. Evaluation articles and manifest entries all have key
    0, so that one worker gets them all.
    """

    def __init__(self, stage: TextStage) -> None:
        self._stage = stage
        self._step = FileToSentences(stage.files, stage.plan.settings.eval_articles, stage.load_splitter)

    def setup(self) -> None:
        self._stage.load_splitter()

    def process(self, file: NumberedFile) -> Iterator[Any]:
        number, path, _ = file
        with add_path_to_errors(path):
            text = self._step(file)
        add_to_counters(count_text(text.counts))
        (value,) = self._stage.spill_files.write([trim_part_text(text.training)])
        yield self._stage.plan.part_of[number], (number, value)
        yield beam.pvalue.TaggedOutput("withheld", (0, (number, text.withheld)))
        yield make_input_entry(self._stage, number, text)


class WritePart(beam.DoFn):  # type: ignore[misc]
    """Write a part from the texts of its files, in the order of the files' numbers.

    Returns the part's path and, tagged "entries", its manifest entry.
    """

    def __init__(self, stage: TextStage) -> None:
        self._stage = stage

    def process(self, gathered: tuple[int, Iterable[tuple[int, StageBytes]]]) -> Iterator[Any]:
        part, texts = gathered
        ordered = sorted(texts, key=itemgetter(0))
        name = self._stage.plan.names[part]
        entry = self._stage.write(name, (read_value(value) for _, value in ordered))
        yield self._stage.text.commit.path(name)
        yield beam.pvalue.TaggedOutput("entries", (0, entry))


class WriteEvaluation(beam.DoFn):  # type: ignore[misc]
    """Write eval.txt and eval.md5 from all evaluation articles, in the files' order.

    Returns the two entries.
    """

    def __init__(self, stage: TextStage) -> None:
        self._stage = stage

    def process(
        self, gathered: tuple[int, Iterable[tuple[int, list[bytes]]]]
    ) -> Iterator[tuple[int, FileEntry]]:
        withheld = [articles for _, articles in sorted(gathered[1])]
        yield 0, self._stage.write(EVAL_TEXT, map(format_eval_text, withheld))
        yield 0, self._stage.write(EVAL_MD5, map(format_eval_md5, withheld))


class MakeTextShards(beam.PTransform):  # type: ignore[misc]
    """Write NVIDIA's text shards from numbered files. The results have the same types as in MakeParts.

    One worker assigns the articles to shards, because it must know the number of sentences of every article.
    """

    def __init__(self, stage: TextStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(
        self, files: beam.PCollection[NumberedFile]
    ) -> tuple[beam.PCollection[str], beam.PCollection[Provenance]]:
        articles = (
            files
            | "spread files over workers" >> beam.Reshuffle()
            | "clean and split sentences"
            >> beam.ParDo(SplitArticles(self._stage)).with_outputs("sentences", "entries", main="articles")
        )
        positions = (
            articles.sentences
            | "gather numbers of sentences" >> beam.GroupByKey()
            | "assign articles to shards"
            >> beam.ParDo(AssignArticles(self._stage)).with_output_types(tuple[int, ShardPositions])
        )
        shards = (
            articles.articles
            | "sort articles by shard" >> beam.ParDo(SortByShard(), beam.pvalue.AsDict(positions))
            | "gather shards" >> beam.GroupByKey()
            | "write text shard"
            >> beam.ParDo(WriteTextShard(self._stage)).with_outputs("entries", main="shards")
        )
        entries = (articles.entries, shards.entries)
        return shards.shards, entries | "write text manifest" >> WriteTextManifest(self._stage)


class SplitArticles(beam.DoFn):  # type: ignore[misc]
    """Split a file's articles into sentences.

    Returns (file number, articles). Tagged "sentences": the number of sentences in each article. Tagged
    "entries": the file's manifest entry.
    """

    def __init__(self, stage: TextStage) -> None:
        self._stage = stage
        self._step = FileToArticles(stage.load_splitter)

    def setup(self) -> None:
        self._stage.load_splitter()

    def process(self, file: NumberedFile) -> Iterator[Any]:
        number, path, _ = file
        with add_path_to_errors(path):
            text = self._step(file)
        add_to_counters(count_text(text.counts))
        yield number, self._stage.spill_files.write(text.articles)
        yield beam.pvalue.TaggedOutput("sentences", (0, (number, array("I", text.sentences))))
        yield make_input_entry(self._stage, number, text)


class AssignArticles(beam.DoFn):  # type: ignore[misc]
    """Assign every article to a shard. Returns, for each file, the shards and positions of its articles.

    ::

        (0, [(0, [12, 3]), (1, [7])]) -> (0, ([shard, shard], [position, position])), (1, ...)
    """

    def __init__(self, stage: TextStage) -> None:
        self._settings = stage.plan.settings

    def process(
        self, gathered: tuple[int, Iterable[tuple[int, Sequence[int]]]]
    ) -> Iterator[tuple[int, ShardPositions]]:
        by_file = sorted(gathered[1], key=lambda pair: pair[0])
        sentences = array("I")
        for _, found in by_file:
            sentences.extend(found)
        # Articles are numbered through all files. The arrays are made as copies of ``sentences`` to have the
        # right length. All values are then replaced.
        shard_of, position_of = array("I", sentences), array("I", sentences)
        for shard, articles in enumerate(assign_articles_to_shards(sentences, self._settings)):
            for position, article in enumerate(articles):
                shard_of[article], position_of[article] = shard, position
        start = 0
        for number, found in by_file:
            stop = start + len(found)
            yield number, (shard_of[start:stop], position_of[start:stop])
            start = stop


class SortByShard(beam.DoFn):  # type: ignore[misc]
    """Group a file's articles by shard. Returns (shard number, [(position, article), ...]) pairs."""

    def process(
        self, file: tuple[int, list[StageBytes]], positions: dict[int, ShardPositions]
    ) -> Iterator[tuple[int, list[tuple[int, StageBytes]]]]:
        number, articles = file
        by_shard: dict[int, list[tuple[int, StageBytes]]] = {}
        for article, shard, position in zip(articles, *positions[number], strict=True):
            by_shard.setdefault(shard, []).append((position, article))
        yield from by_shard.items()


class WriteTextShard(beam.DoFn):  # type: ignore[misc]
    """Write a text shard from the articles of all files, in the order of their positions.

    Returns the shard's path and, tagged "entries", its manifest entry.
    """

    def __init__(self, stage: TextStage) -> None:
        self._stage = stage

    def process(self, gathered: tuple[int, Iterable[list[tuple[int, StageBytes]]]]) -> Iterator[Any]:
        shard, blocks = gathered
        articles = sorted((article for block in blocks for article in block), key=itemgetter(0))
        name = self._stage.plan.names[shard]
        entry = self._stage.write(name, (read_value(value) for _, value in articles))
        yield self._stage.text.commit.path(name)
        yield beam.pvalue.TaggedOutput("entries", (0, entry))
