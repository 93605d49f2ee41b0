"""Punkt in all languages of punkt_tab: both engines against nltk's own sentences."""

import json
import re
from functools import cache
from pathlib import Path

import nltk
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

from bertdata.errors import AssetError
from bertdata.io.punkt_assets import PUNKT_ASSETS, find_punkt_tables
from bertdata.text.languages import find_language
from bertdata.text.punkt.tables import TABLE_FILES, PunktTables, parse_tables
from bertdata.text.punkt.variants import VARIANTS
from bertdata.text.sentences import SentenceSplitter
from tests.bertdata.text.test_punkt import ENGINES, MARKS, SPACES, same_in_this_unicode
from tests.support.paths import GOLDEN
from tests.support.strategies import tries

FILES = sorted((GOLDEN / "sentences" / "languages").glob("*.json"))
NAMES = [path.stem for path in FILES]
XQUAD = ("de", "en")
VARIANT = "3.10.4" if tuple(map(int, nltk.__version__.split(".")[:3])) >= (3, 10, 4) else "3.10.0"


@cache
def golden(name: str) -> dict:
    return json.loads((GOLDEN / "sentences" / "languages" / f"{name}.json").read_text(encoding="utf-8"))


@cache
def small_tables(name: str) -> PunktTables:
    """The rows of the language's tables that its golden texts can meet."""
    return parse_tables({file: "\n".join(rows).encode() for file, rows in golden(name)["tables"].items()})


@cache
def splitter(name: str, variant: str, engine: str) -> SentenceSplitter:
    return SentenceSplitter(small_tables(name), variant, engine=engine)


def nltk_with(tables: PunktTables) -> PunktSentenceTokenizer:
    parameters = PunktParameters()
    parameters.abbrev_types |= tables.abbreviations
    parameters.collocations |= tables.collocations
    parameters.sent_starters |= tables.sentence_starters
    parameters.ortho_context.update(tables.contexts)
    return PunktSentenceTokenizer(parameters)


@cache
def whole_tables(name: str) -> PunktTables:
    try:
        return parse_tables(find_punkt_tables(None, name))
    except AssetError as error:
        pytest.skip(f"the tables of {name} cannot be had here: {error}")


def test_every_language_has_golden_texts():
    assert set(NAMES) == set(PUNKT_ASSETS)
    assert len(NAMES) == 19


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", NAMES)
def test_golden_sentences_of_the_language_are_those_of_the_release(name, variant, engine):
    split = splitter(name, variant, engine).split
    for case in golden(name)["cases"]:
        assert split(case["text"]) == case[variant], case["text"]


def test_the_tables_of_a_language_decide():
    """Else a splitter without any would pass."""
    empty = SentenceSplitter(parse_tables(dict.fromkeys(TABLE_FILES, b"")), "3.10.0")
    for name in NAMES:
        cases = golden(name)["cases"]
        assert any(empty.split(case["text"]) != case["3.10.0"] for case in cases), name


@cache
def texts_of(name: str) -> st.SearchStrategy[str]:
    """Words and abbreviations of the language's golden texts, in their case and others, among marks."""
    words = sorted({word for case in golden(name)["cases"] for word in case["text"].split()})
    letters = sorted({letter for word in words for letter in word if letter.isalpha()})
    bare = [word.strip(".,?!") for word in words]
    pieces = [*words, *map(str.title, bare), *map(str.lower, bare), *(f"{word}." for word in bare)]
    known = [piece for piece in pieces if all(map(same_in_this_unicode, piece))]
    piece = st.one_of(*map(st.sampled_from, (known, MARKS, SPACES, [" "], letters, ["3.", "1. ", "12"])))
    return st.lists(piece, max_size=30).map("".join)


NAMED_TEXTS = st.sampled_from(NAMES).flatmap(lambda name: st.tuples(st.just(name), texts_of(name)))


@tries(8)
@given(NAMED_TEXTS)
def test_generated_text_of_a_language_splits_as_by_the_installed_nltk(named_text):
    name, text = named_text
    assert splitter(name, VARIANT, "python").split(text) == nltk_with(small_tables(name)).tokenize(text)


@tries(8)
@given(NAMED_TEXTS)
def test_kernel_equals_specification_in_every_language(named_text):
    name, text = named_text
    for variant in VARIANTS:
        assert splitter(name, variant, "native").split(text) == splitter(name, variant, "python").split(text)


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_whole_tables_split_the_golden_texts_as_their_rows_do(name):
    """The rows in the golden files are all that count; and the published files can be read."""
    whole = SentenceSplitter(whole_tables(name), "3.10.0")
    for case in golden(name)["cases"]:
        assert whole.split(case["text"]) == case["3.10.0"], case["text"]


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("code", XQUAD)
def test_contexts_of_xquad_split_as_by_the_installed_nltk(kit: Path, code, engine):
    tables = whole_tables(str(find_language(code).tables))
    ours, theirs = SentenceSplitter(tables, VARIANT, engine=engine), nltk_with(tables)
    data = json.loads((kit / "squad" / f"xquad.{code}.json").read_text(encoding="utf-8"))["data"]
    contexts = [paragraph["context"] for article in data for paragraph in article["paragraphs"]]
    assert len(contexts) > 200
    for context in contexts:
        assert ours.split(context) == theirs.tokenize(context)


def test_russian_has_an_empty_abbreviation_which_no_period_alone_is():
    """It stands behind a last hyphen; a lone period still ends a sentence."""
    assert "" in small_tables("russian").abbreviations
    for engine in ENGINES:
        split = splitter("russian", "3.10.0", engine).split
        assert split("Он пришёл . Она ушла.") == ["Он пришёл .", "Она ушла."]
        assert split("Что-. Она ушла.") == ["Что-. Она ушла."]


def test_golden_programs_are_the_releases_themselves():
    for name in NAMES:
        programs = golden(name)["programs"]
        assert {variant: re.sub(",.*", "", programs[variant]) for variant in VARIANTS} == {
            variant: f"nltk {variant}" for variant in VARIANTS
        }
