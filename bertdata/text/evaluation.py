"""Stage 4 of MLPerf's text stage: articles are withheld from training, to make the evaluation set of.

The files share out the number of articles evenly; within a file they are drawn by the file's own
random stream, so each file can be done without the others.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.errors import TooFewArticles
from bertdata.io import storage
from bertdata.io.process_pool import run_in_order
from bertdata.text.input_kinds import KINDS

FIRST_SEED = 12345
SEED_STEP = 13


@dataclass(frozen=True, kw_only=True, slots=True)
class SeparatedText:
    """One file's text: what stays for training, and the withheld articles in their order."""

    training: bytes
    withheld: list[bytes]


def quota(index: int, files: int, eval_articles: int) -> int:
    """Number of articles that file ``index`` (from 0) of ``files`` gives to the evaluation set."""
    return int((index + 1) * eval_articles / files) - int(index * eval_articles / files)


def withhold(
    text: bytes, index: int, files: int, eval_articles: int, name: str, *, draws_rest: bool = True
) -> SeparatedText:
    """The sentences of file ``index``, separated.

    A piece is what stands between two empty lines; what follows the last of them is one too, and may be
    drawn, although it is empty, but not without draws_rest. TooFewArticles when the file has fewer pieces
    than its quota: the original would draw for ever.
    """
    articles = split_articles(text)
    wanted = quota(index, files, eval_articles)
    pieces = len(articles) if draws_rest else len(articles) - 1
    if wanted > pieces:
        found = count_articles(articles)
        raise TooFewArticles(
            f"{name}: found {found} {'article' if found == 1 else 'articles'}, expected {wanted} or more, "
            f"this file's share of the {eval_articles} to withhold for evaluation; "
            "withhold fewer: --eval-articles N"
        )
    drawn = _draw(wanted, pieces, FIRST_SEED + SEED_STEP * index)
    return SeparatedText(
        training=b"".join([a + b"\n\n" for number, a in enumerate(articles) if number not in drawn]),
        withheld=[articles[number] for number in sorted(drawn)],
    )


def split_articles(text: bytes) -> list[bytes]:
    """The pieces of a file's sentences that may be withheld: its articles, and the empty rest."""
    return text.split(b"\n\n")


def count_articles(pieces: list[bytes]) -> int:
    """The number of articles among the pieces."""
    return sum(not piece.isspace() for piece in pieces if piece)


def most_eval_articles(articles: Sequence[int]) -> int:
    """The largest number to withhold that leaves half of all articles for training.

    articles: how many each file has, none of which gives more than that; one without any can give the
    empty piece at its end.
    """
    files = len(articles)
    most = min(sum(articles) // 2, (max(min(articles), 1) + 1) * files)
    while any(quota(index, files, most) > max(found, 1) for index, found in enumerate(articles)):
        most -= 1
    return most


def _draw(wanted: int, articles: int, seed: int) -> set[int]:
    """Distinct article numbers: one draw each, repeats drawn again."""
    stream = random.Random(seed)
    drawn: set[int] = set()
    while len(drawn) < wanted:
        drawn.add(int(stream.random() * articles))
    return drawn


def eval_text(withheld: list[bytes]) -> bytes:
    """The lines of eval.txt: each article, then an empty line."""
    return b"".join([article + b"\n\n" for article in withheld])


def eval_md5(withheld: list[bytes]) -> bytes:
    """The lines of eval.md5: of each article without the white space at its end."""
    digests = [hashlib.md5(article.decode().rstrip().encode(), usedforsecurity=False) for article in withheld]
    return b"".join([digest.hexdigest().encode() + b"\n" for digest in digests])


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
