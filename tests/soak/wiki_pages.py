"""Pages for the fuzzers of wiki mark-up: generated ones, and pieces of real ones with mutations.

A round is a dump of its own: a head, templates, and pages. It depends on its seed alone, so a round in which
a difference was found is made again by its seed.
"""

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.soak.wiki_grammar import Markup
from tests.soak.wiki_markup import random_dump
from tests.soak.wiki_words import BROKEN, ENTITIES, MAGIC_WORDS, TAGS, TYPOGRAPHY, WORDS
from tests.support.dump_pages import HEAD, TAIL, page
from tests.support.wiki_kit import read_dump

PAGES = 250
"""Pages of a round."""

REAL_DUMPS = ("smallwiki", "enwiki-p10-p30302-shortened", "torture-11", "torture-12")
_PIECE = 1500
_MOST_MUTATIONS = 12
_MOST_TEMPLATES = 60
_TEXT = re.compile(rb"<title>([^<]*)</title>.*?<text[^>]*>(.*?)</text>", re.DOTALL)
_MARKS = (
    *(
        "{{",
        "}}",
        "{{{",
        "}}}",
        "[[",
        "]]",
        "[",
        "]",
        "|",
        "=",
        ":",
        "''",
        "'''",
        "{|",
        "|}",
        "|-",
        "\n",
        "\n\n",
    ),
    *(
        "<!--",
        "-->",
        "<",
        ">",
        "</",
        "/>",
        "< ",
        "<nowiki>",
        "</nowiki>",
        "<ref>",
        "</ref>",
        "<ref/>",
        "__NOTOC__",
    ),
    *(
        "{{#if:",
        "{{#switch:",
        "{{#expr:",
        "{{lc:",
        "{{uc:",
        "{{#invoke:String|sub|",
        "{{{1|",
        "{{{a",
        "#default=",
    ),
    *(
        "é",
        "ß",
        "東",
        "𐐷",
        "\u00a0",
        "\u3000",
        "\t",
        "&amp;",
        "&lt;",
        "&nbsp;",
        "&#x41;",
        "* ",
        "# ",
        "; ",
        ": ",
    ),
    *("==", "=== ", "http://x.org/a b", "//x", "1+2", "round", "**", "__", '"', "«", "...", ",,", "(", ")"),
    *(f"<{tag}>" for tag in TAGS),
    *(f"</{tag} >" for tag in TAGS),
    *(f"{{{{{word}}}}}" for word in MAGIC_WORDS),
    *(*WORDS, *ENTITIES, *TYPOGRAPHY, *BROKEN),
)


class RealText(NamedTuple):
    """A page of a real dump: its title and wikitext."""

    title: str
    text: str


def generated_round(seed: int) -> bytes:
    """A dump of pages from the grammar of wiki mark-up (``tests.soak.wiki_grammar``)."""
    return random_dump(seed, PAGES, odd=False)


def mutated_round(seed: int, kit: Path) -> bytes:
    """A dump of mutated pieces of the kit's pages, with some of its templates, mutated too."""
    rng = Random(seed)
    texts, templates = _real_texts(kit)
    chosen = rng.sample(templates, min(_MOST_TEMPLATES, len(templates)))
    bodies = [body if rng.random() < 0.7 else mutated(body, texts, rng) for _, body in chosen]
    pages = [
        page(title, body, number=n, namespace=10)
        for n, ((title, _), body) in enumerate(zip(chosen, bodies, strict=True), 1)
    ]
    names = [title.partition(":")[2] for title, _ in chosen]
    for number in range(PAGES):
        text = mutated(_piece(rng.choice(texts).text, rng), texts, rng)
        if rng.random() < 0.5:
            text += f"\n{{{{{rng.choice(names)}|{_piece(rng.choice(texts).text, rng, 60)}}}}}"
        pages.append(page("A page", text, number=1000 + number))
    return (HEAD + "".join(pages) + TAIL).encode()


def mutated(text: str, others: list[RealText], rng: Random) -> str:
    """The text after some mutations, without characters that XML does not allow."""
    for _ in range(rng.randint(1, _MOST_MUTATIONS)):
        begin, end = _span(text, rng)
        piece = text[begin:end]
        change = rng.randrange(8)
        if change == 0:
            piece = ""
        elif change == 1:
            piece += piece
        elif change == 2:
            piece = rng.choice(_MARKS)
        elif change == 3:
            piece += rng.choice(_MARKS)
        elif change == 4:
            piece = _piece(rng.choice(others).text, rng, 40)
        elif change == 5:
            piece = piece[::-1]
        elif change == 6:
            piece = Markup(rng, depth=2).inline(1)
        else:
            piece = rng.choice(_MARKS) + piece + rng.choice(_MARKS)
        text = text[:begin] + piece + text[end:]
    return text


def _span(text: str, rng: Random) -> tuple[int, int]:
    """A short range of the text, often around a mark."""
    begin = rng.randint(0, len(text))
    if rng.random() < 0.6:
        mark = re.compile(r"[][{}|<>='&#*\n]").search(text, begin)
        begin = mark.start() if mark else begin
    return begin, min(len(text), begin + rng.choice((0, 1, 1, 2, 2, 3, 5, 20)))


def _piece(text: str, rng: Random, size: int = _PIECE) -> str:
    begin = rng.randint(0, max(0, len(text) - size))
    return text[begin : begin + rng.randint(1, size)]


@lru_cache(maxsize=1)
def _real_texts(kit: Path) -> tuple[list[RealText], list[RealText]]:
    """The kit's articles and templates."""
    found = [text for name in REAL_DUMPS for text in _texts(read_dump(kit, name))]
    templates = {
        text.title: text for text in found if text.title.partition(":")[0] in ("Template", "Vorlage", "Taiss")
    }
    articles = [text for text in found if ":" not in text.title and text.text]
    return articles, [
        template._replace(title=f"Template:{title.partition(':')[2]}")
        for title, template in templates.items()
    ]


def _texts(dump: bytes) -> Iterator[RealText]:
    for title, text in _TEXT.findall(dump):
        yield RealText(html.unescape(title.decode()), html.unescape(text.decode()))
