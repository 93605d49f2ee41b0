"""The kernel of MLPerf's extractor writes the original's bytes, and no page makes it hang or break."""

import threading
from random import Random
from typing import Any

import pytest

from bertdata._native import kernels
from bertdata.wiki.mlperf.compute import compute
from tests.soak.wiki_markup import random_dump
from tests.support.dumps import HEAD
from tests.support.paths import DUMP, GOLDEN
from tests.support.wiki_extraction import START, Extraction
from tests.support.wiki_kit import PINNED, read_dump, read_pinned, read_snippets

pytestmark = pytest.mark.skipif(kernels is None, reason="the kernels are not built")

SITE = {
    "url_base": "https://x.org/wiki",
    "namespaces": [("", "0"), ("Template", "10")],
    "template_namespace": "Template",
    "module_namespace": "Module",
    "day": "2020-01-01",
}
HUGE = 2_000_000
MARKS = [
    *(
        "{",
        "}",
        "[",
        "[[",
        "'",
        "&lt;",
        "&amp;",
        "<",
        "|",
        "{{a|",
        "[[a|",
        "{{{",
        "{|",
        "[//a [[",
        "\n",
        "_",
        "=",
    ),
    *(
        ".",
        "&lt;!--",
        "&lt;ref",
        "&lt;br",
        "&lt;math ",
        "&lt;code&gt;",
        "&lt;s",
        "&lt;div ",
        "&amp;lt;b",
        "''\"",
    ),
    *(
        "{{#if:",
        "{{#switch:a|",
        "{{lc:",
        "&lt;/ref",
        "&lt;syntaxhighlight ",
        "&lt;nowiki",
        "{{#invoke:String|",
    ),
    *("\u3000", "é\n"),
]


def kernel(**settings: Any) -> Any:
    return kernels.MlperfExtractor(compute=compute, **settings)


def make(**settings: Any) -> Any:
    limits = {"max_page_bytes": 1 << 30, "max_work": 1 << 34, "skip_pages": [], "templates": None}
    return kernel(**{**SITE, **limits, **settings})


def page(text: str, number: int = 1, title: str = "A", namespace: str = "0") -> str:
    return (
        f"  <page>\n    <title>{title}</title>\n    <ns>{namespace}</ns>\n    <id>{number}</id>\n"
        f"      <text>{text}</text>\n  </page>\n"
    )


def with_templates(*bodies: tuple[str, str]) -> bytes:
    pages = [page(text, i + 1, f"Template:{name}", "10") for i, (name, text) in enumerate(bodies)]
    return f"{HEAD}{''.join(pages)}{page('{{' + bodies[0][0] + '}}', 1000)}</mediawiki>\n".encode()


def outcome(text: str, **settings: Any) -> tuple[str, str]:
    _, (found,), _, _ = make(**settings).extract(page(text).encode(), START)
    return found[:2]


@pytest.mark.parametrize(("folder", "templates"), [("mlperf", False), ("mlperf-with-templates", True)])
def test_articles_of_the_golden_dump_are_the_originals(folder, templates):
    expected = (GOLDEN / "dump" / folder / "AA" / "wiki_00").read_bytes()
    assert Extraction(kernel, DUMP.read_bytes(), templates=templates).articles == expected


@pytest.mark.parametrize(("name", "templates"), PINNED)
def test_articles_of_the_kits_dumps_are_the_originals(kit, name, templates):
    found = Extraction(kernel, read_dump(kit, name), templates=templates)
    assert found.articles == read_pinned(kit, name, templates=templates)


@pytest.mark.parametrize("templates", [False, True])
def test_every_snippet_is_the_originals(kit, templates):
    dump, expected = read_snippets(kit, templates=templates)
    assert Extraction(kernel, dump, templates=templates).articles == expected


@pytest.mark.parametrize("seed", range(5))
def test_blocks_of_any_size_give_the_same(seed):
    dump = random_dump(seed, 30)
    whole, pieces = (Extraction(kernel, dump, templates=True, block=size) for size in (1 << 30, 1))
    assert pieces.articles == whole.articles
    assert [found[:3] for found in pieces.outcomes] == [found[:3] for found in whole.outcomes]


def test_threads_share_an_extractor():
    block = "".join(page(f"[[a|b]] {{{{lc:X{i}}}}} {{{{#expr:{i}+1}}}}", i) for i in range(300)).encode()
    extractor = make()
    expected = extractor.extract(block, START)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(extractor.extract(block, START))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_an_error_of_the_python_function_is_passed_on():
    def fail(function: str, arguments: list[str]) -> str:
        raise LookupError(f"{function} of {arguments}")

    extractor = kernels.MlperfExtractor(
        compute=fail, **SITE, templates=None, skip_pages=[], max_page_bytes=1 << 20, max_work=1 << 30
    )
    with pytest.raises(LookupError, match=r"expr of \['1'\]"):
        extractor.extract(page("{{#if:x|{{#expr:1}}}}").encode(), START)


@pytest.mark.parametrize("mark", MARKS)
def test_a_huge_page_of_one_mark_is_an_article_or_beyond_a_limit(mark):
    reason, _ = outcome(mark * (HUGE // len(mark)), max_work=1 << 30)
    assert reason in ("", "limit", "extraction failed")


@pytest.mark.parametrize("depth", [10, 480, 500, 100_000])
@pytest.mark.parametrize(
    "opening", ["{{", "{{lc:", "{{#if:x|", "{{#switch:a|a=", "{{#ifeq:a|a|", "{{#invoke:String|len|"]
)
@pytest.mark.thorough_after_first
def test_nesting_however_deep_ends(opening, depth):
    reason, _ = outcome(opening * depth + "a" + "}}" * depth, max_work=1 << 30)
    assert reason in ("", "limit", "extraction failed")


def test_names_may_nest_as_deep_as_in_the_original():
    deep = [outcome("{{" * depth + "a" + "}}" * depth) for depth in (488, 489)]
    assert deep == [("", "1"), ("extraction failed", "calls are nested too deep")]


def test_branches_beyond_the_depth_are_empty():
    text = "".join(f"{'{{#if:x|' * depth}a{'}}' * depth}b\n" for depth in (244, 245))
    articles, _, _, _ = make().extract(page(text).encode(), START)
    assert articles.splitlines()[3:5] == [b"ab", b"b"]


@pytest.mark.parametrize(
    "templates",
    [
        [("D0", "{{D0}}{{D0}}")],
        [(f"D{i}", f"{{{{D{i + 1}}}}}" * 8 + "x" * 1000) for i in range(29)],
        [("P0", "{{P1}}{{P1}}"), ("P1", "{{P0}}{{P0}}")],
        [("A0", "{{A1|{{{1|}}}{{{1|}}}xy}}"), ("A1", "{{A0|{{{1|}}}{{{1|}}}xy}}")],
        [("N0", "{{{" * 2000 + "1" + "}}}" * 2000)],
        [("M0", "{{M1}}" * 1000), ("M1", "y" * 1_000_000)],
        [("W0", "{{{{W1}}" * 400 + "}}" * 400), ("W1", "y" * 1_000_000)],
    ],
    ids=[
        "two self-calls",
        "doubling bodies",
        "a cycle of pairs",
        "doubling arguments",
        "nested arguments",
        "a long text often",
        "long texts in names",
    ],
)
def test_templates_without_end_reach_a_limit_or_end(templates):
    found = Extraction(kernel, with_templates(*templates), templates=True, max_work=1 << 28)
    assert found.outcomes[-1][0] in ("", "limit")


def test_a_limit_finishes_a_sentence():
    assert outcome("a" * 1000, max_work=100) == ("limit", "took more than 100 bytes of work")


@pytest.mark.parametrize("seed", range(20))
def test_bytes_without_sense_do_no_harm(seed):
    rng = Random(seed)
    dump = bytearray(random_dump(seed, 20))
    for _ in range(rng.randrange(1, 2000)):
        dump[rng.randrange(len(dump))] = rng.choice(b"{}[]|<>&'\n= \xff\xed\xa0\xc3\x80")
    block = bytes(dump)
    for state in (START, ("10", True, True, "5")):
        articles, outcomes, _, _ = make(max_work=1 << 28).extract(block, state)
        assert sum(found[2] for found in outcomes) == len(articles)
        articles.decode()
        make().definitions(block, state)


@pytest.mark.parametrize("data", [b"", b"BDWIKI2", b"BDWIKI2\n" + b"\xff" * 16, b"x" * 100])
def test_a_file_that_holds_no_templates_is_refused(data):
    with pytest.raises(ValueError, match="template file"):
        make(templates=data)


def test_a_record_outside_the_template_file_is_refused():
    data = b"BDWIKI2\n" + (1).to_bytes(8, "little") + bytes(8) + b"\xff" * 40
    with pytest.raises(ValueError, match="points beyond its end"):
        make(templates=data).extract(page("{{a}}").encode(), START)
