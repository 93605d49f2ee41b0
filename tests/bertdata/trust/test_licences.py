"""Licences and languages that the name of a dump tells."""

import pytest

from bertdata.lineages.step import EXTRACT, Input, Lineage, LineageFile, Step
from bertdata.trust.licences import find_languages, find_licences


def make_lineage(dump: str, date: str) -> Lineage:
    files = (LineageFile(name=dump),)
    step = Step(
        name=EXTRACT,
        record="0",
        settings={},
        inputs=(Input(role="dump", files=files, source=True),),
        facts={"date": date},
    )
    return Lineage(path="", results=(step,))


@pytest.mark.parametrize(
    ("dump", "date", "licences", "languages"),
    [
        (
            "enwiki-20200101-pages-articles.xml.bz2",
            "2020-01-01",
            ["CC-BY-SA-3.0", "GFDL-1.3-or-later"],
            ["en"],
        ),
        # extracted with --date, which says what {{CURRENTDAY}} is and not when the text was published
        (
            "dewiki-20240101-pages.xml",
            "2020-01-01",
            ["CC-BY-SA-4.0", "GFDL-1.3-or-later"],
            ["de"],
        ),
        ("dumps/dewiki-latest-pages.xml", "2023-06-06", ["CC-BY-SA-3.0", "GFDL-1.3-or-later"], ["de"]),
        ("dewiki-latest-pages.xml", "2023-06-07", ["CC-BY-SA-4.0", "GFDL-1.3-or-later"], ["de"]),
        ("simplewiki-20240101-pages.xml", "2024-01-01", ["CC-BY-SA-4.0", "GFDL-1.3-or-later"], ["en"]),
        ("zh_yuewiki-20240101-pages.xml", "2024-01-01", ["CC-BY-SA-4.0", "GFDL-1.3-or-later"], ["yue"]),
        ("nds_nlwiki-20240101-pages.xml", "2024-01-01", ["CC-BY-SA-4.0", "GFDL-1.3-or-later"], ["nds"]),
        ("wikidatawiki-20240101-pages.xml", "2024-01-01", [], []),
        ("commonswiki-20240101-pages.xml", "2024-01-01", [], []),
        ("dewiktionary-20240101-pages.xml", "2024-01-01", [], []),
        ("pages.xml", "2024-01-01", [], []),
    ],
)
def test_a_dumps_name_and_day_tell_licence_and_language(
    dump: str, date: str, licences: list[str], languages: list[str]
) -> None:
    lineage = make_lineage(dump, date)
    assert [licence.name for licence in find_licences(lineage)] == licences
    assert find_languages(lineage) == languages
