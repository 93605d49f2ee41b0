"""A person's own abbreviations beside Punkt's tables."""

import hashlib
import json
from pathlib import Path

import pytest
from nltk.tokenize.punkt import PunktSentenceTokenizer

from bertdata.errors import InputError, MissingInputError
from bertdata.text.abbreviations import read_abbreviations
from bertdata.text.punkt.tables import MIDDLE_LOWER, PunktTables, parse_tables
from bertdata.text.punkt.variants import VARIANTS
from bertdata.text.sentences import SentenceSplitter
from tests.bertdata.text.test_punkt import ENGINES, nltk_with
from tests.support.paths import GOLDEN


@pytest.fixture(scope="module")
def german() -> PunktTables:
    golden = json.loads((GOLDEN / "sentences/languages/german.json").read_text(encoding="utf-8"))
    return parse_tables({name: "\n".join(rows).encode() for name, rows in golden["tables"].items()})


def with_file(tmp_path: Path, tables: PunktTables, text: str) -> PunktTables:
    path = tmp_path / "own.txt"
    path.write_text(text, encoding="utf-8")
    return read_abbreviations(str(path)).add_to(tables)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("own", "before", "after"),
    [
        ("z. B.", "Er mag z.|B. Äpfel.|Ja.", "Er mag z. B. Äpfel.|Ja."),
        ("z. B", "Er mag z.|B. Äpfel.|Ja.", "Er mag z. B. Äpfel.|Ja."),
        ("Abb.", "Siehe Abb.|3 und mehr.|Ja.", "Siehe Abb. 3 und mehr.|Ja."),
        ("abb", "Siehe Abb.|3 und (Abb.|4) auch.", "Siehe Abb. 3 und (Abb. 4) auch."),
        ("Abt. Die", "In der Abt.|Die.|5 war es.", "In der Abt. Die. 5 war es."),
        ("Univ.-Prof.", "Die Univ.-Prof.|Dr. Kos kam.|Ja.", "Die Univ.-Prof. Dr. Kos kam.|Ja."),
    ],
)
def test_an_abbreviation_ends_no_sentence(
    tmp_path: Path, german: PunktTables, own: str, before: str, after: str, variant, engine
) -> None:
    text = " ".join(before.split("|"))
    tables = PunktTables(
        abbreviations=german.abbreviations - {"prof"},
        collocations=german.collocations,
        sentence_starters=german.sentence_starters,
        contexts={**german.contexts, "die.": MIDDLE_LOWER},  # so "Die." is upper case only at a start
    )
    ours = with_file(tmp_path, tables, f"# Eigene\n\n{own}  # so\n")
    assert "|".join(SentenceSplitter(tables, variant, engine=engine).split(text)) == before
    assert "|".join(SentenceSplitter(ours, variant, engine=engine).split(text)) == after


def test_nltk_splits_with_the_added_tables_as_ours(tmp_path: Path, german: PunktTables) -> None:
    tables = with_file(tmp_path, german, "z. B.\nNr.\nAbb\nu. Ä.\nÄq.\n")
    nltk: PunktSentenceTokenizer = nltk_with(tables)
    text = "Z. B. Nr. 7, Äq. 8 u. Ä. Dann Abb. 3. Oktober. Der Plan B. Dann z. Die. Äq. Öl u. a. m. Ende."
    assert SentenceSplitter(tables, "3.10.0").split(text) == nltk.tokenize(text)


def test_the_file_may_have_comments_blank_lines_a_mark_and_any_line_end(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    data = "\ufeff# alle\r\nNr.\r\n\r\n  z.  B. # Beispiel\nC#\nét al".encode()
    path.write_bytes(data)
    found = read_abbreviations(str(path))
    assert found.words == (("nr.",), ("z.", "b."), ("c#.",), ("ét", "al."))
    assert found.md5 == hashlib.md5(data).hexdigest()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", r"own: holds no abbreviation, expected one a line"),
        (b"# only this\n\n", r"own: holds no abbreviation"),
        (b"Nr.\nz\xff", r"own: line 2: byte 0xff at offset 5 is not UTF-8"),
        (b"\xef\xbb\xbfNr.\nz\xff", r"own: line 2: byte 0xff at offset 8 is not UTF-8"),
        (
            b"Nr.\n(bzw.)\n",
            r"own: line 2: found '\(bzw\.\)', expected an abbreviation such as Nr\. or z\. B\.",
        ),
        (b"what?\n", r"own: line 1: found 'what\?', expected an abbreviation"),
        (b"...\n", r"own: line 1: found '\.\.\.', expected an abbreviation"),
        (b"-.\n", r"own: line 1: found '-\.', expected an abbreviation"),
        (b'Nr., "Bd."\n', r"own: line 1: found 'Nr\., \"Bd\.\"', expected an abbreviation"),
    ],
)
def test_a_bad_file_is_an_error_that_names_the_line(tmp_path: Path, data: bytes, told: str) -> None:
    (tmp_path / "own").write_bytes(data)
    with pytest.raises(InputError, match=told):
        read_abbreviations(str(tmp_path / "own"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="own: no such file"):
        read_abbreviations(str(tmp_path / "own"))
