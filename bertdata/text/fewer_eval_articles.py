"""The remedy where files have too few articles to withhold: a number that they can give."""

from collections.abc import Sequence

from bertdata.errors import TooFewArticles
from bertdata.io import storage
from bertdata.io.process_pool import run_in_order
from bertdata.text.evaluation import count_articles, most_eval_articles, split_articles
from bertdata.text.input_kinds import KINDS


def with_remedy(
    error: TooFewArticles, files: Sequence[str], kinds: Sequence[str], workers: int = 1
) -> TooFewArticles:
    """The error of a run on these files, with a number that works. All files are read for it."""
    articles = list(run_in_order(_articles_of, zip(files, kinds, strict=True), workers))
    number, total = most_eval_articles(articles), sum(articles)
    return TooFewArticles(f"{str(error).removesuffix(' N')} {number} works here ({total} articles in all)")


def _articles_of(file: tuple[str, str]) -> int:
    """The number of a file's articles, as the text stage divides it. Sentences need not be known."""
    path, kind = file
    lines = KINDS[kind].paragraphs(storage.read_bytes(path), path).text.split(b"\n")
    kept = [line for line in lines if not line or line.decode().strip()]  # white space alone has no sentence
    return count_articles(split_articles(b"\n".join(kept)))
