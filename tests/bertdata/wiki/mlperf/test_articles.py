"""The twin of MLPerf's extractor writes the original's bytes: golden dump, the kit's dumps, snippets."""

import json

import pytest

from bertdata.wiki.mlperf import MlperfExtractor
from tests.support.paths import DUMP, GOLDEN
from tests.support.wiki_extraction import Extraction
from tests.support.wiki_kit import FOLDERS, read_dump, read_pinned

KIT_DUMPS = [
    *[(name, templates) for name in ("torture-11", "torture-12") for templates in (False, True)],
    ("enwiki-p10-p30302-shortened", False),
]


def articles(dump: bytes, *, templates: bool) -> bytes:
    return Extraction(MlperfExtractor, dump, templates=templates).articles


@pytest.mark.parametrize(("folder", "templates"), [("mlperf", False), ("mlperf-with-templates", True)])
def test_articles_of_the_golden_dump_are_the_originals(folder, templates):
    expected = (GOLDEN / "dump" / folder / "AA" / "wiki_00").read_bytes()
    assert articles(DUMP.read_bytes(), templates=templates) == expected


@pytest.mark.parametrize("templates", [False, True])
def test_every_snippet_is_the_originals(kit, templates):
    snippets = json.loads((kit / "wiki" / "snippets.json").read_text(encoding="utf-8"))["snippets"]
    key = FOLDERS[templates].replace("-", "_")
    made = articles((kit / "wiki" / "snippets.xml").read_bytes(), templates=templates).decode()
    found = {page.split('"', 2)[1]: page for page in made.split("\n</doc>\n")[:-1]}
    expected = {str(snippet["id"]): snippet[key] for snippet in snippets if snippet[key]}
    assert {number: f"{page}\n</doc>\n".lstrip() for number, page in found.items()} == expected


@pytest.mark.parametrize(("name", "templates"), KIT_DUMPS)
def test_articles_of_the_kits_dumps_are_the_originals(kit, name, templates):
    expected = read_pinned(kit, name, templates=templates)
    assert articles(read_dump(kit, name), templates=templates) == expected


@pytest.mark.thorough
@pytest.mark.parametrize("templates", [False, True])
def test_articles_of_a_whole_wikipedia_are_the_originals(kit, templates):
    assert articles(read_dump(kit, "smallwiki"), templates=templates) == read_pinned(
        kit, "smallwiki", templates=templates
    )
