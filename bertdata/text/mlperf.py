"""MLPerf's text stage for one extracted file: stages 1 to 4 in a row."""

from collections.abc import Callable
from dataclasses import dataclass

from bertdata.io.file_check import md5_of
from bertdata.text.cleaning import clean
from bertdata.text.doc_tags import strip_frame
from bertdata.text.evaluation import withhold
from bertdata.text.reading import check_articles_text, count_sentences, universal_newlines
from bertdata.text.settings import SegmentCounts


@dataclass(frozen=True, kw_only=True, slots=True)
class MlperfText:
    """One file's sentences: what stays for training, the withheld articles; and what it held."""

    training: bytes
    withheld: list[bytes]
    articles: int
    sentences: int
    bytes_in: int
    md5: str

    @property
    def counts(self) -> SegmentCounts:
        """The file's share of a run's counts."""
        return SegmentCounts(
            files=1,
            articles=self.articles,
            sentences=self.sentences,
            withheld=len(self.withheld),
            bytes_in=self.bytes_in,
        )


def make_sentences(
    data: bytes, name: str, index: int, files: int, eval_articles: int, split: Callable[[bytes, str], bytes]
) -> MlperfText:
    """The sentences of extracted file ``index`` (from 0) of ``files``; ``split`` is Splitter.segment_lines.

    InputError for bytes that are not UTF-8, a frame cut short, too few articles to withhold.
    """
    check_articles_text(data, name)
    stripped = strip_frame(data, name)
    sentences = split(universal_newlines(clean(stripped.text)), name) + b"\n"
    separated = withhold(sentences, index, files, eval_articles, name)
    return MlperfText(
        training=separated.training,
        withheld=separated.withheld,
        articles=stripped.articles,
        sentences=count_sentences(sentences),
        bytes_in=len(data),
        md5=md5_of(data),
    )
