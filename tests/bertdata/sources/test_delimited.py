"""CSV and TSV: what a quote is, where a line is cut, and whether its first line is a record."""

import csv
import io
from pathlib import Path

import pytest

from bertdata.errors import InputError, SettingsError
from bertdata.text.selection.evaluation_texts import read_evaluation_texts
from tests.support.read_records import faults, texts
from trainer.tasks.classification.table import read_rows
from trainer.tasks.data_file import read_file

QUOTES = 'text\tid\n"I saw it once.\t1\nIt was far away."\t2\nThey slept.\t3\n'
"""Three records. A reader of CSV finds two: the first quote encloses all up to the second."""

LAMP = 'text\tid\n"Wait, he said.\t0\nShe ran.\t1\nThe "lamp" fell.\t2\n"lamp"\t3\n'


def write(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_quotes_of_a_tsv_are_text(tmp_path: Path) -> None:
    found = texts(write(tmp_path, "a.tsv", QUOTES), text_field="text")
    assert found == ['"I saw it once.', 'It was far away."', "They slept."]
    found = texts(write(tmp_path, "b.tsv", LAMP), text_field="text")
    assert found == ['"Wait, he said.', "She ran.", 'The "lamp" fell.', '"lamp"']


def test_an_evaluation_set_and_a_table_to_fine_tune_on_read_a_tsv_alike(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", QUOTES)
    rows = ['"I saw it once.', "1", 'It was far away."', "2", "They slept.", "3"]
    assert list(read_evaluation_texts(str(path))) == ["text", "id", *rows]
    assert [row["text"] for _, row in read_rows(read_file(str(path)))] == rows[::2]


def test_quoting_says_what_a_quote_is(tmp_path: Path) -> None:
    tsv = write(tmp_path, "a.tsv", 'text\tid\n"One\ttwo.\nThree."\t1\n')
    assert texts(tsv, text_field="text", quoting="csv") == ["One\ttwo.\nThree."]
    assert [row["text"] for _, row in read_rows(read_file(str(tsv)), quoting="csv")] == ["One\ttwo.\nThree."]
    cut = write(tmp_path, "a.csv", 'text,id\n"One,1\nTwo."",2\n')
    assert texts(cut, text_field="text", quoting="none") == ['"One', 'Two.""']
    (fault,) = faults(write(tmp_path, "b.csv", 'text,id\n"One,1\n'), text_field="text")
    assert fault[1].endswith("(--quoting none: quotes are text)")
    (fault, _) = faults(write(tmp_path, "b.tsv", 'text\n"One\ttwo."\nThree\tfour.\n'))
    assert fault[1] == (
        "has 2 fields, expected 1 (quotes are text here; --quoting csv lets them enclose a field)"
    )


def test_rows_equal_those_of_the_csv_module(tmp_path: Path) -> None:
    cells = [["a", 'say "so"', "one, two\nthree"], ["b", "", "x;y|z\tw"], ["c", '"', "\r\n"]]
    for separator in ",;|\t":
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=separator).writerows([["id", "note", "text"], *cells])
        path = write(tmp_path, "a.csv", file.getvalue())
        assert texts(path, text_field="text") == [row[2] for row in cells], separator
        assert texts(path, text_field="note") == [row[1] for row in cells], separator


def test_another_separator_is_recognised_by_all_first_lines(tmp_path: Path) -> None:
    for mark in (";", "|", "\t"):
        path = write(tmp_path, "a.csv", f"id{mark}text\n1{mark}Hello, world.\n2{mark}So, be it.\n")
        assert texts(path, text_field="text") == ["Hello, world.", "So, be it."]
    excel = write(tmp_path, "a.csv", "sep=;\nid;text\n1;Hello.\n")
    assert texts(excel, text_field="text") == ["Hello."]
    one = write(tmp_path, "a.csv", "text\nFirst; second.\nThird.\n")
    assert texts(one) == ["First; second.", "Third."]


def test_a_line_that_may_be_cut_or_not_is_asked_about(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "note; text\nFirst.\nSecond; third.\n")
    with pytest.raises(
        SettingsError, match="its first line is 'note; text'.*--separator ';'.*--separator ','"
    ):
        texts(path)
    assert texts(path, separator=",") == ["First.", "Second; third."]
    assert texts(write(tmp_path, "b.csv", "a/text\n1/One.\n"), separator="/", text_field="text") == ["One."]
    for wrong in ("", "ab", '"', "\n"):
        with pytest.raises(SettingsError, match="expected a single character, or tab"):
            texts(path, separator=wrong)
    tab = write(tmp_path, "c.csv", "a,b\ttext\n1,2\tOne.\n")
    assert texts(tab, separator="tab", text_field="text") == ["One."]


def test_a_table_without_a_heading_keeps_its_first_row(tmp_path: Path) -> None:
    two = write(tmp_path, "a.csv", "1,One.\n2,Two.\n")
    assert texts(two, no_heading=True, text_field="1") == ["One.", "Two."]
    one = write(tmp_path, "b.csv", "They slept.\nIt was late.\n")
    with pytest.raises(SettingsError, match="'They slept.', which reads like a record.*--no-heading"):
        texts(one)
    assert texts(one, no_heading=True) == ["They slept.", "It was late."]
    assert texts(one, text_field="They slept.") == ["It was late."]
    assert list(read_evaluation_texts(str(one))) == ["They slept.", "It was late."]


def test_a_mark_before_a_quoted_name_is_no_part_of_it(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", '\ufeff"text","id"\n"One.","1"\n')
    assert texts(path, text_field="text") == ["One."]


def test_a_column_of_text_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "text,text,n,n\nOne.,Two.,3,4\n")
    with pytest.raises(InputError, match="names the column 'text' twice"):
        texts(path, text_field="text")
    assert texts(write(tmp_path, "b.csv", "text,n,n\nOne.,3,4\n"), text_field="text") == ["One."]


def test_a_field_of_more_than_131_072_characters_is_read_to_fine_tune_on(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "text,label\n" + "word " * 30_000 + ",x\n")
    ((_, row),) = read_rows(read_file(str(path)))
    assert (len(row["text"]), row["label"]) == (150_000, "x")


def test_long_fields_of_two_files_are_read_in_turn(tmp_path: Path) -> None:
    """The csv module's limit of 131,072 characters is the process's: no file's end brings it back."""
    long = "word " * 30_000
    path = write(tmp_path, "a.csv", f'text,id\nfirst,1\n"{long}",2\n')
    short = write(tmp_path, "b.csv", "text,id\nfirst,1\n")
    rows, others = read_rows(read_file(str(path))), read_rows(read_file(str(short)))
    assert next(others)[1]["text"] == next(rows)[1]["text"] == "first"
    assert list(others) == []
    assert next(rows)[1]["text"] == long


def test_a_separator_is_found_before_a_field_that_is_longer_than_the_head(tmp_path: Path) -> None:
    long = "a word\n" * 10_000
    path = write(tmp_path, "a.csv", f'text;id\n"{long}";1\nlast;2\n')
    assert [row["text"] for _, row in read_rows(read_file(str(path)))] == [long, "last"]
