"""The kernel of wikiextractor 3.1.0 writes the package's bytes, and no page makes it hang or break."""

import hashlib
import itertools
import json
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bertdata._native import kernels
from bertdata.wiki.articles.files import FILE_BYTES
from tests.soak.wiki_markup import random_dump
from tests.support.dumps import page as dump_page
from tests.support.paths import DUMP, GOLDEN
from tests.support.wiki_extraction import START, Extraction, template_file
from tests.support.wiki_kit import read_dump

pytestmark = pytest.mark.skipif(kernels is None, reason="the kernels are not built")

SITE = {
    "url_base": "https://x.org/wiki",
    "namespaces": [("", "0"), ("Template", "10")],
    "template_namespace": "Template",
    "module_namespace": "Module",
    "day": "2020-01-01",
}
KIT_DUMPS = ["torture-11", "torture-12", "enwiki-p10-p30302-shortened", "smallwiki"]
BOUNDED = ("", "limit", "unknown")
HUGE = 500_000
MARKS = [
    *(
        "{",
        "}",
        "{{",
        "{{{",
        "[",
        "[[",
        "]]",
        "'",
        "|",
        "_",
        "=",
        ".",
        "\n",
        "\n-",
        " ",
        "<",
        ">",
        "&",
        "&amp;",
    ),
    *("{{a|", "{|", "[[a|", "[[[a]] b", "[//a [[", "[//a]", "&lt;", "&lt;!--", "&lt;ref", "&lt;ref &quot;"),
    *(
        "&lt;br",
        "&lt;br '",
        "&lt;math ",
        "&lt;math&gt;a&lt;/math&gt;",
        "&lt;s",
        "&lt;div ",
        "&lt;/ref",
        "&lt; ",
    ),
    *(
        "&lt;nowiki",
        "<nowiki></nowiki>",
        "&lt;syntaxhighlight ",
        "&lt;p&gt;",
        "&amp;lt;b",
        "''\"",
        "__NOTOC__",
    ),
    *(
        "{{#if:",
        "{{#switch:a|",
        "{{lc:",
        "{{lc:a}}",
        "{{#expr:1+",
        "{{#expr:(",
        "\u3000",
        "é\n",
        "{{urldecode:%E9",
    ),
]


def make(**settings: Any) -> Any:
    limits = {"max_page_bytes": 1 << 30, "max_work": 1 << 28, "skip_pages": [], "templates": None}
    return kernels.Wikiextractor(**{**SITE, **limits, **settings})


def page(text: str, number: int = 1) -> bytes:
    return dump_page("A", "TEXT", number=number).replace("TEXT", text).encode()


def outcome(text: str, templates: dict[str, str] | None = None, **settings: Any) -> tuple[str, str]:
    definitions = [
        ("template", f"Template:{name}".encode(), body.encode()) for name, body in (templates or {}).items()
    ]
    extractor = make(templates=template_file(definitions), **settings)
    _, (found,), _, _ = extractor.extract(page(text), START)
    return found[:2]


def extraction(dump: bytes, **settings: Any) -> Extraction:
    return Extraction(kernels.Wikiextractor, dump, templates=True, extractor="3.1.0", **settings)


def count_articles_per_file(found: Extraction) -> list[bytes]:
    """The articles in files as the package cuts them."""
    files, behind = [b""], 0
    for _, _, size, _, _ in found.outcomes:
        if len(files[-1]) + size > FILE_BYTES:
            files.append(b"")
        files[-1] += found.articles[behind : behind + size]
        behind += size
    return files


def test_articles_of_the_golden_dump_are_the_packages():
    files = sorted((GOLDEN / "dump" / "extracted").rglob("wiki_*"))
    assert extraction(DUMP.read_bytes()).articles == b"".join(file.read_bytes() for file in files)


@pytest.mark.parametrize("name", KIT_DUMPS)
def test_articles_of_the_kits_dumps_are_the_packages_and_no_page_goes_to_it(kit: Path, name: str):
    sums = (kit / "wiki" / "MD5SUMS.wikiextractor-3.1.0").read_text().splitlines()
    expected = [line.split()[0] for line in sums if f" {name}/" in line]
    found = extraction(read_dump(kit, name))
    assert [hashlib.md5(file).hexdigest() for file in count_articles_per_file(found)] == expected
    assert not {"unknown", "limit"} & {reason for reason, *_ in found.outcomes}


def test_every_snippet_is_the_packages(kit: Path):
    snippets = json.loads((kit / "wiki" / "snippets.json").read_text(encoding="utf-8"))["snippets"]
    expected = "".join(snippet["v3_1_0"] for snippet in snippets if snippet["v3_1_0"])
    assert extraction((kit / "wiki" / "snippets.xml").read_bytes()).articles.decode() == expected


@pytest.mark.parametrize("seed", range(5))
def test_blocks_of_any_size_give_the_same(seed: int):
    dump = random_dump(seed, 30, odd=False)
    whole, pieces = (extraction(dump, block=size) for size in (1 << 30, 1))
    assert pieces.articles == whole.articles
    assert [found[:3] for found in pieces.outcomes] == [found[:3] for found in whole.outcomes]


def test_a_page_that_goes_to_the_package_counts_as_the_last_one():
    data = page("{{#expr:2**70}}") + page("a")
    articles, outcomes, first_id, state = make().extract(data, START)
    assert (articles, [found[0] for found in outcomes]) == (b"", ["unknown", "same id as the article before"])
    assert (first_id, state) == ("1", ("0", False, False, "1"))
    assert make().extract(page("a"), state)[1][0][0] == "same id as the article before"


def test_pages_are_left_out_by_id_and_by_size():
    data = page("a", 1) + page("b" * 1000, 2) + page("c", 3)
    _, outcomes, first_id, _ = make(skip_pages=["1"], max_page_bytes=1000).extract(data, START)
    assert [found[:2] for found in outcomes] == [
        ("left out by --skip-page", "1"),
        ("too large", ""),
        ("", "3"),
    ]
    assert first_id == "3"


def test_threads_share_an_extractor():
    block = b"".join(page(f"[[a|b]] {{{{T|{i}}}}} {{{{#expr:{i}+1}}}}", i) for i in range(300))
    extractor = make(templates=template_file([("template", b"Template:T", b"({{{1}}}{{T|x}})")]))
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


@pytest.mark.parametrize("mark", MARKS)
def test_a_huge_page_of_one_mark_ends(mark: str):
    assert outcome(mark * (HUGE // len(mark)))[0] in BOUNDED


@pytest.mark.parametrize("depth", [10, 300, 100_000])
@pytest.mark.parametrize(
    "opening", ["{{T|", "{{lc:", "{{#if:x|", "{{#switch:a|a=", "{{#ifeq:a|a|", "{{#expr:("]
)
@pytest.mark.thorough_after_first
def test_nesting_however_deep_ends(opening: str, depth: int):
    assert outcome(opening * depth + "a" + "}}" * depth, {"T": "{{{1}}}"})[0] in BOUNDED


@pytest.mark.parametrize(
    "templates",
    [
        {"T": "{{T|{{{1|}}}x}}{{T|{{{1|}}}y}}"},
        {**{f"D{i}": f"{{{{D{i + 1}}}}}" * 8 + "x" * 1000 for i in range(29)}, "T": "{{D0}}"},
        {"T": "{{U}}{{U}}", "U": "{{T|1}}{{T|2}}"},
        {"T": "{{U|{{{1|}}}{{{1|}}}xy}}", "U": "{{T|{{{1|}}}{{{1|}}}xy}}"},
        {"T": "{{{" * 2000 + "1" + "}}}" * 2000},
    ],
    ids=["two self-calls", "doubling bodies", "a cycle of pairs", "doubling arguments", "nested arguments"],
)
def test_templates_without_end_reach_a_limit_or_end(templates: dict[str, str]):
    assert outcome("{{T}}", templates)[0] in BOUNDED


def test_a_limit_finishes_a_sentence():
    assert outcome("a" * 1000, max_work=100) == ("limit", "took more than 100 bytes of work")


@pytest.mark.parametrize("seed", range(20))
def test_bytes_without_sense_do_no_harm(seed: int):
    rng = Random(seed)
    dump = bytearray(random_dump(seed, 20))
    head = len(dump.partition(b"</siteinfo>\n")[0]) + 12
    for _ in range(rng.randrange(1, 2000)):
        dump[rng.randrange(head, len(dump))] = rng.randrange(256)
    extractor = make()
    definitions, *_ = extractor.definitions(bytes(dump[head:]), START)
    _, outcomes, _, _ = make(templates=template_file(definitions)).extract(bytes(dump[head:]), START)
    assert all(begin <= end for *_, begin, end in outcomes)


def test_a_damaged_template_file_is_an_error():
    whole = template_file([("template", b"Template:T", b"body"), ("redirect", b"Template:U", b"Template:T")])
    for end in range(24 + 2 * 40):
        with pytest.raises(ValueError, match="template file"):
            make(templates=whole[:end])
    for size in range(24 + 2 * 40, len(whole)):
        with pytest.raises(ValueError, match="points beyond"):
            make(templates=whole[:size]).extract(page("{{U}}{{T}}{{A}}"), START)


@pytest.mark.parametrize(("names", "copies"), [*itertools.product([1, 2, 3, 7, 12], [2, 3])])
def test_of_equal_titles_that_is_called_which_the_package_meets(names: int, copies: int):
    from bertdata.wiki.wikiextractor.renderer import load_wikiextractor

    builder = load_wikiextractor().StreamingTemplateBlobBuilder()
    titles = [f"Template:{chr(65 + i)}" for i in range(names)]
    definitions = [(title, f"{title} {i}") for i in range(copies) for title in titles[i:]]
    for title, body in definitions:
        builder.add(title, body)
    blobs = builder.finish()
    package = load_wikiextractor().CompactedTemplates(*blobs, records_len=len(blobs[0]))
    file = template_file([("template", title.encode(), body.encode()) for title, body in definitions])
    for title in titles:
        articles, *_ = make(templates=file).extract(page(f"{{{{{title[9:]}}}}}"), START)
        assert package[title].encode() in articles
