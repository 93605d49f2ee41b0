"""Stage 4 of MLPerf's text stage: articles are withheld from training, to make the evaluation set of.

The files share out the number of articles evenly; within a file they are drawn by the file's own
random stream, so each file can be done without the others.
"""

import hashlib
import random
from dataclasses import dataclass

from bertdata.errors import InputError

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


def withhold(text: bytes, index: int, files: int, eval_articles: int, name: str) -> SeparatedText:
    """The sentences of file ``index``, separated.

    An article is what stands between two empty lines; what follows the last of them counts as one, even
    when it is empty. InputError when the file has fewer articles than its quota: the original would
    draw for ever.
    """
    articles = text.split(b"\n\n")
    wanted = quota(index, files, eval_articles)
    if wanted > len(articles):
        raise InputError(
            f"{name}: {len(articles)} articles found, {wanted} of them are to be withheld "
            f"(this file's share of {eval_articles}); withhold fewer evaluation articles"
        )
    drawn = _draw(wanted, len(articles), FIRST_SEED + SEED_STEP * index)
    return SeparatedText(
        training=b"".join([a + b"\n\n" for number, a in enumerate(articles) if number not in drawn]),
        withheld=[articles[number] for number in sorted(drawn)],
    )


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
