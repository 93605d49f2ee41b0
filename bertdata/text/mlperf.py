"""MLPerf's text processing for one file: remove tags and mark-up, split into sentences, withhold articles."""

from collections.abc import Callable
from dataclasses import dataclass

from bertdata.io.file_check import compute_md5
from bertdata.sources.kinds import ESCAPED_ARTICLES
from bertdata.text.input_kinds import ARTICLES, KINDS
from bertdata.text.mlperf_evaluation import withhold_articles
from bertdata.text.reading import count_sentences
from bertdata.text.settings import SegmentCounts


@dataclass(frozen=True, kw_only=True, slots=True)
class MlperfText:
    """Sentences of one file, divided into training text and withheld articles.

    training: sentences to train on, one per line, with an empty line after each article.
    withheld: for each article that goes to the evaluation set, its sentences.
    articles: number of articles in the whole file.
    sentences: number of sentences in the whole file.
    bytes_in: size of the input file.
    md5: md5 of the input file.
    unescaped: True if escapes such as ``&amp;`` were undone.
    """

    training: bytes
    withheld: list[bytes]
    articles: int
    sentences: int
    bytes_in: int
    md5: str
    unescaped: bool = False

    @property
    def counts(self) -> SegmentCounts:
        """Counts of this file, which are added to the counts of the run."""
        return SegmentCounts(
            files=1,
            articles=self.articles,
            sentences=self.sentences,
            withheld=len(self.withheld),
            unescaped=int(self.unescaped),
            bytes_in=self.bytes_in,
        )


def make_sentences(
    data: bytes,
    name: str,
    index: int,
    files: int,
    eval_articles: int,
    split: Callable[[bytes, str], bytes],
    kind: str = ARTICLES,
) -> MlperfText:
    """Split a file into sentences, and withhold some of its articles for evaluation.

    Raises InputError if the bytes are not UTF-8, if an article is cut short, or if the file has too few
    articles to withhold.

    data: the file's bytes.
    name: the file's name, for errors.
    index: number of the file, from 0. Together with ``files`` it determines which articles are withheld.
    files: number of all input files.
    eval_articles: number of articles to withhold from all files together.
    split: function that splits lines into sentences, such as ``Splitter.segment_lines``.
    kind: kind of the file, a key of ``input_kinds.KINDS``.
    """
    stripped = KINDS[kind].paragraphs(data, name)
    sentences = split(stripped.text, name) + b"\n"
    draws_rest = KINDS[kind].draws_rest
    separated = withhold_articles(sentences, index, files, eval_articles, name, draws_rest=draws_rest)
    return MlperfText(
        training=separated.training,
        withheld=separated.withheld,
        articles=stripped.articles,
        sentences=count_sentences(sentences),
        bytes_in=len(data),
        md5=compute_md5(data),
        unescaped=kind == ESCAPED_ARTICLES,
    )
