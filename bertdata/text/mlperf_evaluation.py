"""Stage 4 of MLPerf's text processing: withhold articles from training, for the evaluation set.

The number of articles to withhold is divided evenly among the files. Within a file, the articles are drawn by
a random generator that is seeded with the file's number, so the files can be processed independently.
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
    """Sentences of one file: the training text, and the withheld articles in the order of the file."""

    training: bytes
    withheld: list[bytes]


def count_articles_to_withhold(index: int, files: int, eval_articles: int) -> int:
    """Return how many articles a file contributes to the evaluation set.

    index: number of the file, from 0.
    files: number of all files.
    eval_articles: number of articles to withhold from all files together.
    """
    return int((index + 1) * eval_articles / files) - int(index * eval_articles / files)


def withhold_articles(
    text: bytes, index: int, files: int, eval_articles: int, name: str, *, draws_rest: bool = True
) -> SeparatedText:
    """Divide the sentences of a file into training text and withheld articles.

    The text is cut at empty lines. What comes after the last article is empty. MLPerf's program may draw this
    empty piece like an article, and so does this function unless ``draws_rest`` is False.

    Raises TooFewArticles if the file has fewer pieces than it must contribute. MLPerf's program would then
    loop forever.

    text: sentences, one per line, with an empty line after each article.
    index: number of the file, from 0.
    files: number of all files.
    eval_articles: number of articles to withhold from all files together.
    name: path of the file, for errors.
    """
    # For example, "A1\n\nA2\n\n" gives ["A1", "A2", ""]. The empty last piece can be drawn too.
    articles = split_articles(text)
    wanted = count_articles_to_withhold(index, files, eval_articles)
    pieces = len(articles) if draws_rest else len(articles) - 1
    if wanted > pieces:
        found = count_articles(articles)
        raise TooFewArticles(
            f"{name}: found {found} {'article' if found == 1 else 'articles'}, expected {wanted} or more, "
            f"this file's share of the {eval_articles} to withhold for evaluation; "
            "withhold fewer: --eval-articles N"
        )
    drawn = _draw_articles(wanted, pieces, FIRST_SEED + SEED_STEP * index)
    return SeparatedText(
        training=b"".join([a + b"\n\n" for number, a in enumerate(articles) if number not in drawn]),
        withheld=[articles[number] for number in sorted(drawn)],
    )


def split_articles(text: bytes) -> list[bytes]:
    """Return the pieces of a file that may be withheld: its articles, and the empty piece at the end."""
    return text.split(b"\n\n")


def count_articles(pieces: list[bytes]) -> int:
    """Return how many of the pieces are articles, that is, contain more than white space."""
    return sum(not piece.isspace() for piece in pieces if piece)


def find_most_eval_articles(articles: Sequence[int]) -> int:
    """Return the largest usable ``eval_articles`` that leaves at least half of all articles for training.

    A value is usable if no file has to contribute more articles than it has. A file without articles can
    still contribute the empty piece at its end.

    articles: number of articles in each file.
    """
    # Start with half of all articles, and count down until no file must contribute more articles than it has.
    files = len(articles)
    most = min(sum(articles) // 2, (max(min(articles), 1) + 1) * files)
    while any(
        count_articles_to_withhold(index, files, most) > max(found, 1) for index, found in enumerate(articles)
    ):
        most -= 1
    return most


def _draw_articles(wanted: int, articles: int, seed: int) -> set[int]:
    """Draw this number of different articles, and return their numbers.

    If an article is drawn twice, the second draw is repeated.

    wanted: how many articles to draw.
    articles: number of articles to draw from.
    seed: seed of the random generator.
    """
    stream = random.Random(seed)
    drawn: set[int] = set()
    while len(drawn) < wanted:
        drawn.add(int(stream.random() * articles))
    return drawn


def format_eval_text(withheld: list[bytes]) -> bytes:
    """Return the lines of eval.txt: each article followed by an empty line."""
    return b"".join([article + b"\n\n" for article in withheld])


def format_eval_md5(withheld: list[bytes]) -> bytes:
    """Return the lines of eval.md5: the md5 of each article without white space at its end."""
    digests = [hashlib.md5(article.decode().rstrip().encode(), usedforsecurity=False) for article in withheld]
    return b"".join([digest.hexdigest().encode() + b"\n" for digest in digests])


def add_remedy(
    error: TooFewArticles, files: Sequence[str], kinds: Sequence[str], workers: int = 1
) -> TooFewArticles:
    """Return the error with advice added: the largest ``--eval-articles`` that works for these files.

    All files are read to find that number, in ``workers`` processes.
    """
    articles = list(run_in_order(_count_file_articles, zip(files, kinds, strict=True), workers))
    number, total = find_most_eval_articles(articles), sum(articles)
    return TooFewArticles(f"{str(error).removesuffix(' N')} {number} works here ({total} articles in all)")


def _count_file_articles(file: tuple[str, str]) -> int:
    """Return the number of articles in a file, without splitting it into sentences."""
    path, kind = file
    lines = KINDS[kind].paragraphs(storage.read_bytes(path), path).text.split(b"\n")
    # Drop lines of white space, because they would yield no sentence.
    kept = [line for line in lines if not line or line.decode().strip()]
    return count_articles(split_articles(b"\n".join(kept)))
