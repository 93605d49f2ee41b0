"""MLPerf's text stage for one file: stages 1 to 4 in a row."""

from collections.abc import Callable
from dataclasses import dataclass

from bertdata.io.file_check import md5_of
from bertdata.sources.kinds import ESCAPED_ARTICLES
from bertdata.text.input_kinds import ARTICLES, KINDS
from bertdata.text.mlperf_evaluation import withhold
from bertdata.text.reading import count_sentences
from bertdata.text.settings import SegmentCounts


@dataclass(frozen=True, kw_only=True, slots=True)
class MlperfText:
    """One file's sentences: what stays for training, the withheld articles, and what it held."""

    training: bytes
    withheld: list[bytes]
    articles: int
    sentences: int
    bytes_in: int
    md5: str
    unescaped: bool = False

    @property
    def counts(self) -> SegmentCounts:
        """The file's share of a run's counts."""
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
    """The sentences of file ``index`` (from 0) of ``files``. ``split`` is Splitter.segment_lines.

    InputError for bytes that are not UTF-8, a frame cut short, too few articles to withhold.
    """
    stripped = KINDS[kind].paragraphs(data, name)
    sentences = split(stripped.text, name) + b"\n"
    draws_rest = KINDS[kind].draws_rest
    separated = withhold(sentences, index, files, eval_articles, name, draws_rest=draws_rest)
    return MlperfText(
        training=separated.training,
        withheld=separated.withheld,
        articles=stripped.articles,
        sentences=count_sentences(sentences),
        bytes_in=len(data),
        md5=md5_of(data),
        unescaped=kind == ESCAPED_ARTICLES,
    )
