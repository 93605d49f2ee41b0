"""Supported languages: how their text is split into sentences, and what is written between sentences.

Punkt has tables for 19 languages. Chinese, Japanese and Korean text is split at end marks, which do not occur
in these languages' abbreviations. For any other language, each line of text counts as one sentence.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
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
_MARKS = ("ja", "ko", "zh")
_WITHOUT_SPACES = ("bo", "dz", "ja", "km", "lo", "my", "th", "zh")
_ISO_639_1 = """
aa Afar; ab Abkhazian; ae Avestan; af Afrikaans; ak Akan; am Amharic; an Aragonese; ar Arabic; as Assamese;
av Avaric; ay Aymara; az Azerbaijani; ba Bashkir; be Belarusian; bg Bulgarian; bi Bislama; bm Bambara;
bn Bengali; bo Tibetan; br Breton; bs Bosnian; ca Catalan; ce Chechen; ch Chamorro; co Corsican; cr Cree;
cs Czech; cu Church Slavonic; cv Chuvash; cy Welsh; da Danish; de German; dv Divehi; dz Dzongkha; ee Ewe;
el Greek; en English; eo Esperanto; es Spanish; et Estonian; eu Basque; fa Persian; ff Fulah; fi Finnish;
fj Fijian; fo Faroese; fr French; fy Western Frisian; ga Irish; gd Scottish Gaelic; gl Galician; gn Guarani;
gu Gujarati; gv Manx; ha Hausa; he Hebrew; hi Hindi; ho Hiri Motu; hr Croatian; ht Haitian; hu Hungarian;
hy Armenian; hz Herero; ia Interlingua; id Indonesian; ie Interlingue; ig Igbo; ii Sichuan Yi; ik Inupiaq;
io Ido; is Icelandic; it Italian; iu Inuktitut; ja Japanese; jv Javanese; ka Georgian; kg Kongo; ki Kikuyu;
kj Kuanyama; kk Kazakh; kl Kalaallisut; km Khmer; kn Kannada; ko Korean; kr Kanuri; ks Kashmiri; ku Kurdish;
kv Komi; kw Cornish; ky Kyrgyz; la Latin; lb Luxembourgish; lg Ganda; li Limburgish; ln Lingala; lo Lao;
lt Lithuanian; lu Luba-Katanga; lv Latvian; mg Malagasy; mh Marshallese; mi Maori; mk Macedonian;
ml Malayalam; mn Mongolian; mr Marathi; ms Malay; mt Maltese; my Burmese; na Nauru; nb Norwegian Bokmal;
nd North Ndebele; ne Nepali; ng Ndonga; nl Dutch; nn Norwegian Nynorsk; no Norwegian; nr South Ndebele;
nv Navajo; ny Chichewa; oc Occitan; oj Ojibwa; om Oromo; or Oriya; os Ossetian; pa Punjabi; pi Pali;
pl Polish; ps Pashto; pt Portuguese; qu Quechua; rm Romansh; rn Rundi; ro Romanian; ru Russian;
rw Kinyarwanda; sa Sanskrit; sc Sardinian; sd Sindhi; se Northern Sami; sg Sango; si Sinhala; sk Slovak;
sl Slovenian; sm Samoan; sn Shona; so Somali; sq Albanian; sr Serbian; ss Swati; st Southern Sotho;
su Sundanese; sv Swedish; sw Swahili; ta Tamil; te Telugu; tg Tajik; th Thai; ti Tigrinya; tk Turkmen;
tl Tagalog; tn Tswana; to Tonga; tr Turkish; ts Tsonga; tt Tatar; tw Twi; ty Tahitian; ug Uyghur;
uk Ukrainian; ur Urdu; uz Uzbek; ve Venda; vi Vietnamese; vo Volapuk; wa Walloon; wo Wolof; xh Xhosa;
yi Yiddish; yo Yoruba; za Zhuang; zh Chinese; zu Zulu
"""
_ENGLISH_NAMES = {
    name.lower(): code for code, _, name in (item.strip().partition(" ") for item in _ISO_639_1.split(";"))
}
_CODES = frozenset(_ENGLISH_NAMES.values())
_WRITTEN_NORWEGIAN = ("nb", "nn", "norwegian bokmal", "norwegian bokmål", "norwegian nynorsk")
_OTHER_NAMES = (
    _ENGLISH_NAMES | {name: code for code, name in _PUNKT.items()} | dict.fromkeys(_WRITTEN_NORWEGIAN, "no")
)

EXPECTED_LANGUAGE = (
    "an ISO 639-1 code or English name, such as ar or arabic; with a sentence splitter: "
    f"{', '.join(sorted((*_PUNKT, *_MARKS)))}; lines of any other language are taken as sentences"
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
    """Return the language with this ISO 639-1 code or this English name, in upper or lower case.

    The names in NLTK's punkt_tab, such as "slovene", are known too. Raises SettingsError for an unknown name.
    The message lists the languages with a sentence splitter. German has Punkt tables, and Thai (th) has no
    sentence splitter:

    >>> find_language("german").code, find_language("Thai").code, find_language("th").splitting
    ('de', 'th', 'lines')
    """
    given = name.strip().lower()
    code = _OTHER_NAMES.get(given, given)
    if code not in _CODES:
        raise SettingsError(f"language is {name!r}, expected {EXPECTED_LANGUAGE}")
    return Language(
        code=code,
        splitting="punkt" if code in _PUNKT else "marks" if code in _MARKS else "lines",
        tables=_PUNKT.get(code),
        between="" if code in _WITHOUT_SPACES else " ",
    )


@lru_cache(maxsize=1024)  # it is called for every record
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


def list_unsplit_notes(records: Mapping[str, int]) -> tuple[str, ...]:
    """Return a message about the records that were not split into sentences, or an empty tuple if all were.

    records: number of records of each language without a sentence splitter, by ISO 639-1 code.

    >>> list_unsplit_notes({"th": 1, "ar": 2})
    ('3 records of languages without a sentence splitter (ar: 2, th: 1): each line is taken as one sentence',)
    """
    if not records:
        return ()
    told = ", ".join(f"{code}: {number}" for code, number in sorted(records.items()))
    total = sum(records.values())
    return (
        f"{total} record{'s' * (total > 1)} of languages without a sentence splitter ({told}): each line is "
        "taken as one sentence",
    )


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
