"""Licences and languages of the text that an artefact was made from, as far as its lineage tells them.

A dump's file name names its wiki, such as ``dewiki-20240101-pages-articles.xml.bz2``. The text of all
Wikipedias is under the Creative Commons licence BY-SA, most of it under the GFDL too
(https://dumps.wikimedia.org/legal.html). Its version became 4.0 on 7 June 2023. Other texts do not tell their
licence.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from bertdata.lineages.step import EXTRACT, SEGMENT, Lineage
from bertdata.wiki.settings import parse_name_date


class Licence(NamedTuple):
    """A licence of text.

    name: name in the list of SPDX.
    hub_name: name in the cards of Hugging Face's hub.
    """

    name: str
    hub_name: str
    url: str


_BY_SA_3 = Licence("CC-BY-SA-3.0", "cc-by-sa-3.0", "https://creativecommons.org/licenses/by-sa/3.0/")
_BY_SA_4 = Licence("CC-BY-SA-4.0", "cc-by-sa-4.0", "https://creativecommons.org/licenses/by-sa/4.0/")
_GFDL = Licence("GFDL-1.3-or-later", "gfdl", "https://www.gnu.org/licenses/fdl-1.3.html")
_FIRST_DAY_OF_4 = "2023-06-07"

_WIKIPEDIA = re.compile(r"([a-z]{2,3}|simple)((?:_[a-z]+)*)wiki-")
"""Beginning of the file name of a Wikipedia's dump. Other wikis, such as wikidatawiki, do not match."""

_LANGUAGES = {"simple": "en", "zh_classical": "lzh", "zh_min_nan": "nan", "zh_yue": "yue"}
"""Languages of Wikipedias whose names do not begin with the code of the language."""


def find_licences(lineage: Lineage) -> list[Licence]:
    """Return the licences of the text, in the order of the dumps. The list is empty if they are not known."""
    found: list[Licence] = []
    for name, date in _list_dumps(lineage):
        if _WIKIPEDIA.match(name):
            found += [_BY_SA_4 if date >= _FIRST_DAY_OF_4 else _BY_SA_3, _GFDL]
    return list(dict.fromkeys(found))


def find_languages(lineage: Lineage) -> list[str]:
    """Return the languages of the text as ISO 639 codes. The list is empty if they are not known.

    They are the languages of the dumps, and languages that were named when text was split into sentences.
    """
    found = []
    for name, _ in _list_dumps(lineage):
        if (match := _WIKIPEDIA.match(name)) is not None:
            code, variant = match.groups()
            found.append(_LANGUAGES.get(f"{code}{variant}", code))
    for step in lineage.list_steps():
        settings = step.settings if step.name == SEGMENT else step.settings.get("text")
        if not isinstance(settings, Mapping):
            continue
        language = settings.get("language")
        found += [] if language is None else [language]
        found += settings.get("keep_languages") or []
    return list(dict.fromkeys(found))


def _list_dumps(lineage: Lineage) -> list[tuple[str, str]]:
    """Return the file name of each dump, and the dump's day (YYYY-MM-DD).

    It is the day in the file name. Without one, it is the day that counts as today in the articles.
    """
    return [
        (name := file.name.rpartition("/")[2], str(parse_name_date(name) or step.facts.get("date", "")))
        for step in lineage.list_steps()
        if step.name == EXTRACT
        for one in step.inputs
        if one.role == "dump"
        for file in one.files
    ]
