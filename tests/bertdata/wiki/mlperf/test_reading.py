"""Pages as the original's reader finds them, in blocks of any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.wiki.mlperf import MlperfExtractor
from tests.soak.wiki_markup import random_dump
from tests.support.dumps import HEAD, TAIL, page
from tests.support.wiki_extraction import LIMITS, START, Extraction, blocks, split_head


def extract(*pages: str | bytes, **settings) -> Extraction:
    data = b"".join(one if isinstance(one, bytes) else one.encode() for one in pages)
    return Extraction(MlperfExtractor, HEAD.encode() + data + TAIL.encode(), templates=False, **settings)


def reasons(*pages: str | bytes, **settings) -> list[tuple[str, str]]:
    return [outcome[:2] for outcome in extract(*pages, **settings).outcomes]


def simple(number: int, text: str = "Text.", **changes) -> str:
    return page(f"Page {number}", text, number=number, **changes)


@pytest.mark.parametrize("templates", [False, True])
@given(seed=st.integers(0, 2**32), size=st.integers(1, 5000))
def test_blocks_of_any_size_give_the_same_articles(seed, size, templates):
    dump = random_dump(seed, 10)
    whole = Extraction(MlperfExtractor, dump, templates=templates)
    cut = Extraction(MlperfExtractor, dump, templates=templates, block=size)
    assert (cut.articles, cut.definitions, cut.states[-1]) == (
        whole.articles,
        whole.definitions,
        whole.states[-1],
    )
    assert [outcome[:3] for outcome in cut.outcomes] == [outcome[:3] for outcome in whole.outcomes]


def test_an_outcome_says_where_its_page_lies():
    made = extract(
        simple(1), "stray\n", simple(2, namespace=1), simple(3).replace("\n  <revision>", "<revision>")
    )
    _, data = split_head(
        HEAD.encode()
        + b"".join([simple(1).encode(), b"stray\n", simple(2, namespace=1).encode(), simple(3).encode()])
    )
    for _, _, _, begin, end in made.outcomes:
        assert data[begin:end].startswith(b"<page>")
        assert data[begin:end].endswith(b"</page>")
    assert made.outcomes[0][2] == len(made.articles.partition(b"</doc>\n")[0] + b"</doc>\n")


def test_pages_that_are_no_articles_have_a_reason():
    found = reasons(
        simple(1),
        simple(1),
        simple(2, redirect="X"),
        simple(3, namespace=4),
        simple(4, namespace=None),
        simple(5).replace("title>", "heading>"),
        simple(6).replace("  <id>6</id>\n", "").replace("<id>1006</id>", "").replace("<id>77</id>", ""),
        simple(7).encode().replace(b"Text", b"\xff"),
        simple(8, "&#xD800;"),
        simple(9),
        "  <page>\n",
        skip_pages=["9"],
    )
    assert found == [
        ("", "1"),
        ("same id as the article before", ""),
        ("redirect", ""),
        ("namespace 4", ""),
        ("", "4"),
        ("extraction failed", "no title"),
        ("extraction failed", "no id"),
        ("invalid UTF-8", ""),
        ("extraction failed", "a lone surrogate in its text"),
        ("left out by --skip-page", "9"),
        ("cut off", ""),
    ]


def test_a_page_that_is_passed_over_leaves_its_namespace_to_the_next():
    assert reasons(simple(1, redirect="X", namespace=4), simple(2, namespace=None)) == [
        ("redirect", ""),
        ("namespace 4", ""),
    ]


def test_a_page_beyond_the_limit_of_size_is_too_large():
    size = len(simple(1).strip())
    assert reasons(simple(1), max_page_bytes=size) == [("", "1")]
    assert reasons(simple(1), max_page_bytes=size - 1) == [("too large", "")]


def test_only_the_first_tag_of_a_line_counts():
    text = simple(1).replace("Text.", "One\n<b>two</text>\nthree < four\n<five")
    made = extract(text, simple(2))
    assert b"One\n</doc>" not in made.articles
    assert b"three" not in made.articles
    assert made.outcomes[1][0] == ""


def test_a_block_that_begins_within_a_text_goes_on_with_it():
    site, _ = split_head(HEAD.encode())
    extractor = MlperfExtractor(**site, **LIMITS, day="2020-01-01", templates=None, skip_pages=[])
    data = b"  <page>\n<title>T</title>\n<id>5</id>\n  here\n</page>\n"
    assert extractor.extract(data, ("0", False, True, None))[0].endswith(b"\n here\n\n</doc>\n") is False
    assert extractor.extract(data, START)[1][0][0] == ""
    assert extractor.extract(data, ("0", False, True, "5"))[1:] == (
        [("same id as the article before", "", 0, 2, len(data) - 1)],
        "5",
        ("0", False, True, "5"),
    )


def test_blocks_cover_the_pages():
    _, pages = split_head(random_dump(1, 20))
    assert b"".join(blocks(pages, 1000)) == pages


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "does not begin with its mark"),
        (b"BDWIKI2\n", "ends within its head"),
        (b"BDWIKI2\n" + b"\xff" * 16, "has no room for its records"),
        (
            b"BDWIKI2\n" + (1).to_bytes(8, "little") + bytes(8) + b"\xff" * 40,
            "a record points beyond its end",
        ),
    ],
)
def test_a_file_that_holds_no_templates_is_refused(data, fault):
    site, _ = split_head(HEAD.encode())
    with pytest.raises(ValueError, match=f"template file: {fault}"):
        MlperfExtractor(**site, **LIMITS, day="2020-01-01", templates=data, skip_pages=[])
