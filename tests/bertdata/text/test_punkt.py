"""Punkt: both engines against the originals' results, nltk, each other, and sentences one can read."""

import json
import lzma
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nltk
import nltk.data
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer, load_punkt_params

from bertdata.errors import InputError
from bertdata.text.punkt.boundaries import split_sentences
from bertdata.text.punkt.tables import TABLE_FILES, PunktTables, parse_tables
from bertdata.text.punkt.variants import VARIANTS, Variant
from bertdata.text.sentences import SentenceSplitter
from bertdata.unicode import characters
from tests.support.paths import GOLDEN
from tests.support.strategies import tries

ENGINES = ("native", "python")
TEXTS = {
    "abbrev_types.txt": "dr\netc\nu.s\ne.g\nσας\n. . ",
    "collocations.tab": "j\twalter\n##number##\tedition\ndr\tno\n..\tyes",
    "ortho_context.tab": "σας\t34\nthe\t36\nhe\t34\nwalter\t4\nsmith\t2\napple\t46\nhouse\t32\nu.s\t4",
    "sent_starters.txt": "the\nhe\nsmith\nin\n##number##",
}
FILES = {name: text.encode() for name, text in TEXTS.items()}
TABLES = parse_tables(FILES)
SPLITTERS = {(v, e): SentenceSplitter(TABLES, v, engine=e) for v in VARIANTS for e in ENGINES}
GOLDEN_SENTENCES = json.loads((GOLDEN / "sentences" / "cases.json").read_text())


@pytest.fixture(scope="module")
def installed() -> Variant:
    """The variant that equals the installed nltk; 3.10.2 and 3.10.3 have none."""
    release = tuple(map(int, nltk.__version__.split(".")[:3]))
    if (3, 10, 2) <= release < (3, 10, 4):
        pytest.skip(f"no variant equals nltk {nltk.__version__}")
    return "3.10.4" if release >= (3, 10, 4) else "3.10.0"


def nltk_with(tables: PunktTables) -> PunktSentenceTokenizer:
    parameters = PunktParameters()
    parameters.abbrev_types |= tables.abbreviations
    parameters.collocations |= tables.collocations
    parameters.sent_starters |= tables.sentence_starters
    parameters.ortho_context.update(tables.contexts)
    return PunktSentenceTokenizer(parameters)


@pytest.fixture(scope="module")
def english(punkt_folder: Path) -> PunktTables:
    return parse_tables({name: (punkt_folder / name).read_bytes() for name in TABLE_FILES})


def read(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes())


# The originals' results.


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("file", ["wiki_00", "wiki_01"])
def test_mlperf_sentences_are_the_originals(kit, english, file, engine):
    splitter = SentenceSplitter(english, "3.4.5", engine=engine)
    segmented = splitter.segment_lines(read(kit / f"stages/{file}.2.xz"))
    assert segmented + b"\n" == read(kit / f"stages/{file}.3.xz")


@pytest.mark.parametrize("engine", ENGINES)
def test_nvidia_sentences_are_the_originals(kit, english, engine):
    splitter = SentenceSplitter(english, "3.4.5", engine=engine)
    segmented = splitter.segment_lines(read(kit / "nvidia/formatted.txt.xz"), keeps_indent=True)
    shards = b"".join(read(path) for path in sorted(kit.glob("nvidia/shard_*.xz")))
    assert sorted(segmented.split(b"\n\n")) == sorted(shards.split(b"\n\n"))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_installed_nltk_on_the_kit(kit, english, installed, engine):
    splitter, nltk = SentenceSplitter(english, installed, engine=engine), nltk_with(english)
    for name in ("stages/wiki_00.2.xz", "stages/wiki_01.2.xz", "nvidia/formatted.txt.xz"):
        for line in read(kit / name).decode().split("\n"):
            assert splitter.split(line) == nltk.tokenize(line)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_installed_nltk_on_the_golden_articles(english, installed, engine):
    splitter, nltk = SentenceSplitter(english, installed, engine=engine), nltk_with(english)
    for line in (GOLDEN / "dump/extracted/AA/wiki_00").read_text(encoding="utf-8").split("\n"):
        assert splitter.split(line) == nltk.tokenize(line)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_golden_sentences_are_those_of_the_release(variant, engine):
    tables = {name: "\n".join(rows).encode() for name, rows in GOLDEN_SENTENCES["tables"].items()}
    splitter = SentenceSplitter(parse_tables(tables), variant, engine=engine)
    for case in GOLDEN_SENTENCES["cases"]:
        assert splitter.split(case["text"]) == case[variant], ascii(case["text"])


def test_golden_sentences_hold_every_white_space_and_tell_the_releases_apart():
    assert {program.split(",")[0] for program in GOLDEN_SENTENCES["programs"].values()} == {
        f"nltk {variant}" for variant in VARIANTS
    }
    cases = GOLDEN_SENTENCES["cases"]
    spaces = {character for character in map(chr, range(0x110000)) if character.isspace()} - set("\r")
    for space in spaces - set("\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u200a"):
        assert any(space in case["text"] for case in cases), ascii(space)
    for one, other in (("3.4.5", "3.10.0"), ("3.10.0", "3.10.4")):
        assert sum(case[one] != case[other] for case in cases) > 30


# Generated text.


def same_in_this_unicode(character: str) -> bool:
    """The interpreter, the package ``regex``, and so their nltk, see the character as Unicode 11.0 does."""
    is_letter_like = (character.isalnum() or character == "_") and not character.isdecimal()
    around_sigma = (character, f"{character}Σ", f"A{character}Σ", f"AΣ{character}A")
    return (
        characters.is_upper(character) == character.isupper()
        and characters.is_lower(character) == character.islower()
        and characters.is_decimal(character) == character.isdecimal()
        and characters.is_decimal(character) == bool(regex.match(r"\d", character))
        and characters.is_letter_like(character) == is_letter_like
        and characters.is_letter_or_mark(character) == bool(regex.match(r"[^\W\d]", character))
        and all(characters.lower(text) == text.lower() for text in around_sigma)
    )


MARKS = [
    *""".?!,;:-'"()[]{}*@#&`_…。‘’“”«»‹""",
    *("...", "..", ". . .", ". . . .", ".\x1f.\x1f.", "--", "?!", ".)", '."', ".'", ".”", ".»"),
]
SPACES = [*"    \n\t\r\v\f\x1c\x1f\x1f\x85\xa0\u2007\u2009\u2028\u202f\u3000", "  ", "\n\n"]
WORDS = """
    Dr. dr etc. U.S. u.s e.g. pre-etc. J. j. É. ß. ². Walter walter The the He Smith smith Apple apple House
    house In No edition Edition 3. 1,000. -4.5 .5 3 ٣. ٣٤ 1.. ΣΑΣ. ΣΑΣ ǅ Ⅷ. İ. Ⓐ. \u0301.
"""


def texts(character: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    piece = st.one_of(*map(st.sampled_from, (MARKS, SPACES, WORDS.split(), [" "])), character)
    return st.lists(piece, max_size=30).map("".join)


ANY = texts(st.characters(exclude_categories=["Cs"]))
KNOWN = texts(st.characters(exclude_categories=["Cs"]).filter(same_in_this_unicode))


@tries(10)
@given(KNOWN)
def test_the_installed_nltk_on_generated_text(installed, text):
    assert split_sentences(text, TABLES, installed) == nltk_with(TABLES).tokenize(text)


@pytest.mark.parametrize("variant", VARIANTS)
@tries(7)
@given(text=ANY)
def test_kernel_equals_specification(variant, text):
    assert SPLITTERS[variant, "native"].split(text) == SPLITTERS[variant, "python"].split(text)


@pytest.mark.parametrize("keeps_indent", [False, True])
@pytest.mark.parametrize("variant", ["3.4.5", "3.10.4"])
@tries(2)
@given(lines=st.lists(ANY))
def test_kernel_equals_specification_on_lines(variant, keeps_indent, lines):
    data = "\n".join(lines).encode()
    native, python = (SPLITTERS[variant, e].segment_lines(data, keeps_indent=keeps_indent) for e in ENGINES)
    assert native == python


@given(ANY)
def test_sentences_lose_nothing_but_white_space(text):
    for variant in VARIANTS:
        assert "".join("".join(split_sentences(text, TABLES, variant)).split()) == "".join(text.split())


# Sentences one can read; "|" is a boundary.


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "marked",
    [
        "A cat.|A dog?|A bird!|A fish",
        "He saw Dr. Mabuse there.|In May.",  # abbreviation
        "Cats, dogs etc.|The house.",  # an abbreviation, then a word that is upper case only at a start
        "Cats, dogs etc.|In May.",  # or one that often is there
        "Cats, dogs, pre-etc. Mabuse.",  # abbreviation after a hyphen
        "By J. Bach.|By É. Zola.|By J. the boy.",  # initials
        "See J. Walter.|See Dr. No.",  # collocations
        "His 3. edition.|It has 3. house.|It has 3.|Bach",  # ordinals
        "Well ... house.|Well ...|The end.",  # ellipsis
        "Well .|.|.|The end.",  # not a spaced one: its first period ends a word
        "(He left.)|(He came.)|Yes.",  # closing marks go with their sentence
        '"He left."|He said.',
        "He left.)|-- Why?|Yes.",
        "Really?!|Yes.",
        "See example.com and 3.5 there.",
        "He wrote a.b.|The end.",
    ],
)
def test_boundaries(marked, variant, engine):
    sentences = SPLITTERS[variant, engine].split(" ".join(marked.split("|")))
    assert "|".join(sentences) == marked


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "as_3_4_5", "as_3_10_0"),
    [
        # 3.4.5 sees words where Unicode has white space, 3.10.0 where ASCII has.
        (
            "the Producer.\xa0... Bach was king.",
            ["the Producer.", "... Bach was king."],
            ["the Producer.\xa0...", "Bach was king."],
        ),
        ("Big Dog.\u2009A cat.) Yes", ["Big Dog.", "A cat.)", "Yes"], ["Big Dog.", "A cat.)", "Yes"]),
        ("No.\xa0Yes.) Oh", ["No.", "Yes.)", "Oh"], ["No.\xa0Yes.)", "Oh"]),
        # A mark that is its own word's first character counts for 3.10.0.
        ("?? A", ["??", "A"], ["?", "?", "A"]),
        ("Oh !! A", ["Oh !!", "A"], ["Oh !", "!", "A"]),
        # The same after all: the first character of a paragraph separates nothing.
        (" ?? A", [" ??", "A"], [" ??", "A"]),
    ],
)
def test_where_3_4_5_and_3_10_0_differ(text, as_3_4_5, as_3_10_0, engine):
    assert SPLITTERS["3.4.5", engine].split(text) == as_3_4_5
    assert SPLITTERS["3.10.0", engine].split(text) == as_3_10_0
    assert SPLITTERS["3.10.4", engine].split(text) == as_3_10_0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "as_3_10_0", "as_3_10_4"),
    [
        # Curly quotes and guillemets break words and close sentences, with no-break spaces within them too.
        ("“He left.” The end.", ["“He left.” The end."], ["“He left.”", "The end."]),
        ("«\xa0Oui.\xa0» The end.", ["«\xa0Oui.", "» The end."], ["«\xa0Oui.\xa0»", "The end."]),
        # The separators U+001C to U+001F are no white space,
        ("A cat.\x1fThe dog.", ["A cat.", "The dog."], ["A cat.\x1fThe dog."]),
        ("A cat. \x1f Yes. In", ["A cat.", "Yes.", "In"], ["A cat.", "\x1f Yes.", "In"]),
        # but a line of them has no word, and they are stripped at the end.
        ("A cat. \x1f\n\x1f", ["A cat."], ["A cat."]),
        # A number that is no digit is no letter, so no initial; an accent is one.
        ("An area of 5 ². Smith", ["An area of 5 ². Smith"], ["An area of 5 ².", "Smith"]),
        ("A \u0301. the cat", ["A \u0301.", "the cat"], ["A \u0301. the cat"]),
    ],
)
def test_where_3_10_0_and_3_10_4_differ(text, as_3_10_0, as_3_10_4, engine):
    assert SPLITTERS["3.10.0", engine].split(text) == as_3_10_0
    assert SPLITTERS["3.10.4", engine].split(text) == as_3_10_4


# Lines.


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "stripped", "indented"),
    [
        ("", "", ""),
        ("\n", "\n", "\n"),
        ("A cat. A dog.\n\n\nA bird.", "A cat.\nA dog.\n\n\nA bird.\n", "A cat.\nA dog.\n\n\nA bird.\n"),
        ("  A cat. \xa0\n", "A cat.\n", "  A cat.\n"),
        ("A cat.\n \t\u3000\nA dog.\n", "A cat.\nA dog.\n", "A cat.\nA dog.\n"),
    ],
)
def test_lines_become_sentences(text, stripped, indented, engine):
    splitter = SPLITTERS["3.4.5", engine]
    assert splitter.segment_lines(text.encode()).decode() == stripped
    assert splitter.segment_lines(text.encode(), keeps_indent=True).decode() == indented


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf"])
def test_bad_utf8_is_an_error_that_names_the_line(bad, engine):
    with pytest.raises(InputError, match=rf"wiki_07: line 2: byte 0x{bad[0]:02x} at offset 17 is not UTF-8"):
        SPLITTERS["3.4.5", engine].segment_lines(b"A cat sits.\nHere " + bad, "wiki_07")


@pytest.mark.parametrize(
    "text", ["?" * 100_000, ".) " * 50_000, ". " * 50_000, "a.)" * 50_000, "." + " " * 100_000]
)
def test_time_does_not_grow_faster_than_text(text):
    for variant in VARIANTS:  # quadratic work would take minutes
        data = (text * 20).encode()
        assert SPLITTERS[variant, "native"].segment_lines(data)


def test_threads_share_a_splitter():
    splitter = SPLITTERS["3.4.5", "native"]
    data = "ΑΣ. Dr. Who? J. Walter etc. The end.\n".encode() * 5000
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(splitter.segment_lines, [data] * 8))) == 1


# Tables.


def test_tables_are_those_that_nltk_reads(nltk_data, english, monkeypatch):
    monkeypatch.setattr(nltk.data, "path", [str(nltk_data)])
    parameters = load_punkt_params(nltk.data.find("tokenizers/punkt_tab/english/"))
    assert english.abbreviations == parameters.abbrev_types
    assert english.collocations == parameters.collocations
    assert english.sentence_starters == parameters.sent_starters
    assert english.contexts == parameters.ortho_context


def test_a_final_line_end_adds_no_row():
    assert parse_tables({name: data + b"\n" for name, data in FILES.items()}) == TABLES


@pytest.mark.parametrize(
    ("file", "row"),
    [
        ("sent_starters.txt", b""),
        ("abbrev_types.txt", b"dr\tno"),
        ("abbrev_types.txt", b"dr\r"),
        ("abbrev_types.txt", b"d\xff"),
        ("collocations.tab", b"j"),
        ("collocations.tab", b"j\t"),
        ("collocations.tab", b"j\twalter\tscott"),
        ("ortho_context.tab", b"the"),
        ("ortho_context.tab", b"the\tmany"),
        ("ortho_context.tab", b"the\t128"),
        ("ortho_context.tab", b"the\t-2"),
        ("ortho_context.tab", b"the\t3"),
        ("sent_starters.txt", b" "),
    ],
)
def test_a_malformed_row_is_an_error_that_names_file_and_line(file, row):
    first, _, rest = FILES[file].partition(b"\n")
    with pytest.raises(InputError, match=rf"{file}: line 2: found b.*, expected"):
        parse_tables({**FILES, file: first + b"\n" + row + b"\n" + rest})


def test_a_missing_table_is_an_error_that_names_it():
    with pytest.raises(InputError, match=r"ortho_context\.tab: not there"):
        parse_tables({name: data for name, data in FILES.items() if name != "ortho_context.tab"})
