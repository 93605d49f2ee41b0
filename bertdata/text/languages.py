"""Supported languages: how their text is split into sentences, and what is written between sentences.

Punkt has tables for 19 languages. Chinese, Japanese and Korean text is split at end marks, which do not occur
in these languages' abbreviations. For any other language, each line of text counts as one sentence.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bertdata.errors import SettingsError
from bertdata.io.punkt_assets import PUNKT_ASSETS

Splitting = Literal["punkt", "marks", "lines"]

ENGLISH = "en"

_PUNKT = {
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "fi": "finnish",
    "fr": "french",
    "it": "italian",
    "ml": "malayalam",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ru": "russian",
    "sl": "slovene",
    "sv": "swedish",
    "tr": "turkish",
}
_OTHER_NAMES = {"nb": "no", "nn": "no"} | {name: code for code, name in _PUNKT.items()}
_MARKS = ("ja", "ko", "zh")
_WITHOUT_SPACES = ("bo", "dz", "ja", "km", "lo", "my", "th", "zh")
_ISO_639_1 = """
aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee
el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io
is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn
mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se
sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo
wa wo xh yi yo za zh zu
"""
_CODES = frozenset(_ISO_639_1.split())

EXPECTED_LANGUAGE = (
    f"an ISO 639-1 code: {', '.join(sorted((*_PUNKT, *_MARKS)))}; of any other one each line of text is a "
    "sentence"
)
"""The end of an error message about a language that is not known."""

PUNKT_LANGUAGES = tuple(_PUNKT)
"""The ISO 639-1 codes of the languages that Punkt has tables for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    """Language of the text.

    code: ISO 639-1 code.
    splitting: how sentences are found: "punkt" (with Punkt's tables), "marks" (at end marks such as periods),
        or "lines" (each line is a sentence).
    tables: NLTK's name of the language's Punkt tables. None if Punkt has no tables for it.
    between: text between two sentences of a paragraph: a space, or nothing.
    """

    code: str
    splitting: Splitting
    tables: str | None
    between: str


def find_language(name: str) -> Language:
    """Return the language with this ISO 639-1 code, or with this name in NLTK's punkt_tab.

    Raises SettingsError for an unknown name. The message lists the languages with a sentence splitter. German
    has Punkt tables, and Thai (th) has no sentence splitter:

    >>> find_language("german").code, find_language("th").splitting
    ('de', 'lines')
    """
    code = _OTHER_NAMES.get(name, name)
    if code not in _CODES:
        raise SettingsError(f"language is {name!r}, expected {EXPECTED_LANGUAGE}")
    return Language(
        code=code,
        splitting="punkt" if code in _PUNKT else "marks" if code in _MARKS else "lines",
        tables=_PUNKT.get(code),
        between="" if code in _WITHOUT_SPACES else " ",
    )


def find_tagged_language(tag: str) -> str | None:
    """Return the ISO 639-1 code of the language that a language tag names, or None for an unknown language.

    A tag is what a record's language field holds: a code, a name, or a code with a region or a script after
    it:

    >>> find_tagged_language("de-AT"), find_tagged_language("ZH_Hans"), find_tagged_language("und")
    ('de', 'zh', None)
    """
    given = tag.strip().lower().replace("_", "-").partition("-")[0]
    try:
        return find_language(given).code
    except SettingsError:
        return None


def list_language_notes(code: str) -> tuple[str, ...]:
    """Return a message if the language has no sentence splitter, otherwise an empty tuple."""
    if find_language(code).splitting != "lines":
        return ()
    return (f"language {code}: Punkt has no tables of it, so each line of text is taken as one sentence",)


def list_tables_by_language(codes: Iterable[str]) -> dict[str, str]:
    """Return the md5 of each file of the Punkt tables of several languages, by path such as
    ``german/ortho_context.tab``.

    Languages without Punkt tables are left out.
    """
    languages = sorted((find_language(code) for code in set(codes)), key=lambda one: one.tables or "")
    return {
        f"{language.tables}/{name}": md5
        for language in languages
        for name, md5 in list_table_md5s(language).items()
    }


def list_table_md5s(language: Language) -> dict[str, str]:
    """Return the md5 of each file of the language's Punkt tables, sorted by file name.

    The result is empty for a language without tables.
    """
    return {} if language.tables is None else dict(sorted(PUNKT_ASSETS[language.tables].files.items()))
