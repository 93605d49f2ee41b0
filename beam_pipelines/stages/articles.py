"""Stages that make text parts and their manifest from articles or plain text: clean and split, gather, write.

Beam delivers elements in any order. So the files, the parts and (for NVIDIA's shards) the articles get
numbers before the run, and each stage that writes sorts its elements by number. An element is a whole file,
or the articles of one file that belong to one shard.
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
"""The shards that the articles of a file belong to, and the position of each article in its shard.

Both sequences have an item for each article of the file, in the file's order.
"""


def make_parts(stage: TextStage) -> beam.PTransform:
    """Return the Beam transform that makes text parts by the rules of the chosen text recipe.

    The recipe is "nvidia" for the rules of NVIDIA's program, or "mlperf" for those of MLPerf's program.
    """
    return MakeTextShards(stage) if stage.plan.settings.recipe == "nvidia" else MakeParts(stage)


class MakeParts(beam.PTransform):  # type: ignore[misc]
    """Make text parts by MLPerf's rules, with the files eval.txt and eval.md5 of the held-out articles.

    Each input element is the number of a file, its path and its kind. There are two outputs: the paths of the
    parts, and the manifest, which is output when everything is written. For a file and the part that contains
    its text::

        (0, "extracted/AA/wiki_00", "articles") -> "results/part-00000-of-00500"
    """

    def __init__(self, stage: TextStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(
        self, files: beam.PCollection[NumberedFile]
    ) -> tuple[beam.PCollection[str], beam.PCollection[Provenance]]:
        """Connect the stages from numbered files to parts and their manifest."""
        # Without Reshuffle, the runner may fuse listing the files and splitting them into one stage. Then a
        # single worker would do all the work.
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
    """Split the text of a file into sentences, and separate the articles that are held out for evaluation.

    The main output is the text with the number of the part it belongs to. Output "withheld" has the held-out
    articles, and output "entries" has the file's entry for the manifest. Both have the key 0, so that one
    worker gets those of all files. For file number 3, whose text belongs to part 0::

        (3, "AA/wiki_03", "articles") -> (0, (3, text))
        output "withheld":               (0, (3, [article, ...]))
        output "entries":                (0, (3, TextInput(...)))
    """

    def __init__(self, stage: TextStage) -> None:
        self._stage = stage
        self._step = FileToSentences(stage.files, stage.plan.settings.eval_articles, stage.load_splitter)

    def setup(self) -> None:
        """Load the splitter of sentences once in each worker."""
        self._stage.load_splitter()

    def process(self, file: NumberedFile) -> Iterator[Any]:
        """Split one file."""
        number, path, _ = file
        with add_path_to_errors(path):
            text = self._step(file)
        add_to_counters(count_text(text.counts))
        (value,) = self._stage.spill_files.write([trim_part_text(text.training)])
        yield self._stage.plan.part_of[number], (number, value)
        yield beam.pvalue.TaggedOutput("withheld", (0, (number, text.withheld)))
        yield make_input_entry(self._stage, number, text)


class WritePart(beam.DoFn):  # type: ignore[misc]
    """Write a text part from the texts of its files, in the order of the files' numbers.

    The main output is the part's path. Output "entries" has the part's entry for the manifest.
    """

    def __init__(self, stage: TextStage) -> None:
        self._stage = stage

    def process(self, gathered: tuple[int, Iterable[tuple[int, StageBytes]]]) -> Iterator[Any]:
        """Write one part.

        gathered: the part's number, and the number and text of each of its files.
        """
        part, texts = gathered
        ordered = sorted(texts, key=itemgetter(0))
        name = self._stage.plan.names[part]
        entry = self._stage.write(name, (read_value(value) for _, value in ordered))
        yield self._stage.text.commit.path(name)
        yield beam.pvalue.TaggedOutput("entries", (0, entry))


class WriteEvaluation(beam.DoFn):  # type: ignore[misc]
    """Write eval.txt and eval.md5 from the held-out articles of all files, in the files' order.

    The output elements are the manifest entries of these two files.
    """

    def __init__(self, stage: TextStage) -> None:
        self._stage = stage

    def process(
        self, gathered: tuple[int, Iterable[tuple[int, list[bytes]]]]
    ) -> Iterator[tuple[int, FileEntry]]:
        """Write the two files.

        gathered: the key 0, and the number and held-out articles of each file.
        """
        withheld = [articles for _, articles in sorted(gathered[1])]
        yield 0, self._stage.write(EVAL_TEXT, map(format_eval_text, withheld))
        yield 0, self._stage.write(EVAL_MD5, map(format_eval_md5, withheld))


class MakeTextShards(beam.PTransform):  # type: ignore[misc]
    """Make text shards by NVIDIA's rules. Input and outputs are of the same types as those of MakeParts.

    One worker assigns all articles to shards, because it must know how many sentences every article has.
    """

    def __init__(self, stage: TextStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(
        self, files: beam.PCollection[NumberedFile]
    ) -> tuple[beam.PCollection[str], beam.PCollection[Provenance]]:
        """Connect the stages from numbered files to text shards and their manifest."""
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
    """Split the articles of a file into sentences.

    The main output is (file number, articles). Output "sentences" has the number of sentences of each
    article, and output "entries" has the file's entry for the manifest.
    """

    def __init__(self, stage: TextStage) -> None:
        self._stage = stage
        self._step = FileToArticles(stage.load_splitter)

    def setup(self) -> None:
        """Load the splitter of sentences once in each worker."""
        self._stage.load_splitter()

    def process(self, file: NumberedFile) -> Iterator[Any]:
        """Split the articles of one file."""
        number, path, _ = file
        with add_path_to_errors(path):
            text = self._step(file)
        add_to_counters(count_text(text.counts))
        yield number, self._stage.spill_files.write(text.articles)
        yield beam.pvalue.TaggedOutput("sentences", (0, (number, array("I", text.sentences))))
        yield make_input_entry(self._stage, number, text)


class AssignArticles(beam.DoFn):  # type: ignore[misc]
    """Assign every article to a shard, by the number of sentences of all articles.

    The only input element has these numbers for each file. For each file there is an output element with the
    shards of its articles and their positions in the shards. For file 0 with two articles and file 1 with
    one::

        (0, [(0, [12, 3]), (1, [7])]) -> (0, ([shard, shard], [position, position])),
                                         (1, ([shard], [position]))
    """

    def __init__(self, stage: TextStage) -> None:
        self._settings = stage.plan.settings

    def process(
        self, gathered: tuple[int, Iterable[tuple[int, Sequence[int]]]]
    ) -> Iterator[tuple[int, ShardPositions]]:
        """Assign the articles of all files.

        gathered: the key 0, and for each file its number and its articles' numbers of sentences.
        """
        by_file = sorted(gathered[1], key=lambda pair: pair[0])
        sentences = array("I")
        for _, found in by_file:
            sentences.extend(found)
        # Articles are numbered through all files. ``sentences`` is copied only to get arrays of the right
        # length. All values in the copies are then replaced.
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
    """Group the articles of a file by shard.

    For each shard the output is (shard number, [(position of the article in the shard, article), ...]).
    """

    def process(
        self, file: tuple[int, list[StageBytes]], positions: dict[int, ShardPositions]
    ) -> Iterator[tuple[int, list[tuple[int, StageBytes]]]]:
        """Group the articles of one file.

        positions: shards and positions of the articles, by the file's number.
        """
        number, articles = file
        by_shard: dict[int, list[tuple[int, StageBytes]]] = {}
        for article, shard, position in zip(articles, *positions[number], strict=True):
            by_shard.setdefault(shard, []).append((position, article))
        yield from by_shard.items()


class WriteTextShard(beam.DoFn):  # type: ignore[misc]
    """Write a text shard from its articles of all files, in the order of their positions.

    The main output is the shard's path. Output "entries" has the shard's entry for the manifest.
    """

    def __init__(self, stage: TextStage) -> None:
        self._stage = stage

    def process(self, gathered: tuple[int, Iterable[list[tuple[int, StageBytes]]]]) -> Iterator[Any]:
        """Write one text shard.

        gathered: the shard's number, and its articles with their positions.
        """
        shard, blocks = gathered
        articles = sorted((article for block in blocks for article in block), key=itemgetter(0))
        name = self._stage.plan.names[shard]
        entry = self._stage.write(name, (read_value(value) for _, value in articles))
        yield self._stage.text.commit.path(name)
        yield beam.pvalue.TaggedOutput("entries", (0, entry))
