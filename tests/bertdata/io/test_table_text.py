"""Tables that are read whole: headings, rows and their lines."""

import csv

import pytest

from bertdata.errors import InputError
from bertdata.io.table_text import check_heading, decode_table, name_row_fields, parse_table


def rows_of(text: str, **settings: bool) -> list[tuple[int, dict[str, str]]]:
    return list(name_row_fields(parse_table(text, "t.csv"), "t.csv", **settings))


def test_rows_have_the_lines_where_they_end():
    assert rows_of('a,b\n1,"x\ny"\n\n2,z\n') == [(3, {"a": "1", "b": "x\ny"}), (5, {"a": "2", "b": "z"})]


def test_without_quoting_a_quote_is_a_character():
    found = parse_table('a\tb\r\n"\t5" nails\n', "t.tsv", delimiter="\t", quoted=False)
    assert found == [(1, ["a", "b"]), (2, ['"', '5" nails'])]


def test_a_field_may_be_longer_than_pythons_limit_which_stays():
    limit = csv.field_size_limit()
    assert parse_table("a\n" + "x" * 200_000, "t.csv")[1] == (2, ["x" * 200_000])
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b,a\n1,2,3\n", "line 1: names the column 'a' twice; rename one of them"),
        ("a,b\n1,2\n1,2,3\n", "line 3: has 3 values, expected 2"),
        ("a,b\n1\n", "line 2: has 1 values, expected 2"),
        ('a,b\n1,"2\n', "line 2: is not CSV: unexpected end of data"),
    ],
    ids=["twice", "more", "fewer", "open quote"],
)
def test_what_is_no_table_is_one_line(text, told):
    with pytest.raises(InputError, match=rf"^t\.csv: {told}"):
        rows_of(text)


def test_a_short_row_is_left_out_where_a_crash_may_have_cut_it():
    assert rows_of("a,b\n1,2\n3", skips_short=True) == [(2, {"a": "1", "b": "2"})]


def test_columns_without_a_name_may_be_several():
    check_heading(["a", "", ""], "t.csv")


def test_a_byte_that_is_not_utf8_is_named():
    with pytest.raises(InputError, match=r"^t\.csv: line 2: byte 0xff at offset 4 is not UTF-8$"):
        decode_table(b"a,b\n\xff,1\n", "t.csv")
