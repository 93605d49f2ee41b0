"""A record or a file that cannot be used ends the run in one line, or is counted."""

import bz2
import gzip
import io
import json
import random
from array import array
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import DataError, InputError, SettingsError
from bertdata.sources import article_records, json_lines, line_pieces, piece, plain_text
from bertdata.sources.settings import RecordSettings
from bertdata.text.part_settings import PartSettings
from bertdata.text.record_plan import plan_records
from bertdata.text.segment_records import segment_records
from bertdata.text.settings import SegmentCounts
from tests.support.commands import Program, files_below
from tests.support.fake_splitters import load_period_splitter
from tests.support.memory import peak_bytes
from tests.support.record_files import (
    FILES,
    as_arrow,
    as_delimited,
    as_parquet,
    as_xz,
    as_zstd,
    kind_of,
    make_documents,
    write,
)

DOCUMENTS = make_documents(60)
GOOD = b'{"text": "It was here.", "lang": "en"}'
"""A line of JSON."""

ARTICLE = b'<doc id="7" url="?" title="T">\nT\n\nText.\n\n</doc>\n'

BAD_LINES = {
    "no JSON": (b'{"text": "cut', "malformed", "is not JSON"),
    "no object": (b'["text"]', "malformed", "is JSON, but no object"),
    "no field": (b'{"tixt": "a", "lang": "en"}', "malformed", "has no field 'text'"),
    "a number": (b'{"text": 7, "lang": "en"}', "malformed", "field 'text' is 7, expected a text"),
    "half a pair": (b'{"text": "\\ud83d", "lang": "en"}', "malformed", "half of a pair"),
    "Latin-1": ('{"text": "Bäume", "lang": "en"}'.encode("latin-1"), "malformed", "byte 0xe4 is not UTF-8"),
    "brackets": (b'{"text": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", "malformed", "nested more than 500"),
    "open brackets": (b'{"text": ' + b'{"a":' * 10_000, "malformed", "nested more than 500"),
    "NaN": (b'{"text": NaN, "lang": "en"}', "malformed", "field 'text' is NaN, expected a text"),
    "a number that parsers round": (
        b'{"text": 18446744073709551617, "lang": "en"}',
        "malformed",
        "field 'text' is 18446744073709551617, expected a text",
    ),
    "null": (b'{"text": null, "lang": "en"}', "empty", "field 'text' is null"),
    "blank": (b'{"text": " \\n\\u3000", "lang": "en"}', "empty", "has no text"),
    "long": (
        b'{"text": "' + b"a" * 2000 + b'", "lang": "en"}',
        "too_long",
        "2001 bytes, expected at most 1000",
    ),
    "longer": (b'{"text": "' + b"a" * 99_000 + b'", "lang": "en"}', "too_long", "a line of more than"),
    "unknown language": (
        b'{"text": "Da.", "lang": "qq-AT"}',
        "malformed",
        "its language 'qq-AT' is unknown, expected an ISO 639-1 code or English name, such as ar",
    ),
    "no language": (b'{"text": "Da."}', "malformed", "its field 'lang' is missing, null or empty"),
    "a number as language": (
        b'{"text": "Da.", "lang": 7}',
        "malformed",
        "field 'lang' is 7, expected a language",
    ),
}
TEXTS = ("a.txt", "a.csv")
SETTINGS = {"text_field": "text", "language_field": "lang", "max_record_bytes": 1000}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (line_pieces, piece, plain_text):
        monkeypatch.setattr(module, "PIECE_BYTES", 500)


def make(path: Path, output: Path, kind: str | None = None, **records: object) -> SegmentCounts:
    settings = PartSettings(part_size=0.001, records=RecordSettings(**records))
    return segment_records(plan_records([str(path)], kind, settings), str(output), load_period_splitter)


def fault_of(run: Callable[[], object]) -> str | None:
    """The message of the error that ends the run."""
    try:
        run()
    except DataError as error:
        return str(error)
    return None


@pytest.fixture(params=["orjson", "json"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "json":
        monkeypatch.setattr(json_lines, "orjson", None)
    else:
        pytest.importorskip("orjson")


@pytest.mark.parametrize(("line", "reason", "fault"), BAD_LINES.values(), ids=BAD_LINES)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "zstd"])
@pytest.mark.usefixtures("parser")
def test_a_bad_record_is_named_by_file_and_record_or_counted(
    packed: bool, line: bytes, reason: str, fault: str, tmp_path: Path
) -> None:
    data = b"\n".join([*[GOOD] * 60, b"", line, *[GOOD] * 60])
    path = tmp_path / "a.jsonl"
    path.write_bytes(as_zstd(data) if packed else data)
    with pytest.raises(InputError) as error:
        make(path, tmp_path / "out", "jsonl", **SETTINGS)
    assert str(error.value).startswith(f"{path}: record 62: ")
    assert fault in str(error.value)
    assert "--skip-bad-records" in str(error.value)
    assert len(str(error.value)) < 450
    counts = make(path, tmp_path / "out", "jsonl", skip_bad_records=True, **SETTINGS)
    assert counts.articles == 120
    found = {name: getattr(counts, name) for name in ("malformed", "empty", "too_long", "other_language")}
    assert found == {**dict.fromkeys(found, 0), reason: 1}
    entry = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert entry["inputs"][0][reason] == entry["totals"][reason] == 1


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "9" * 5000, "-" + "9" * 5000])
def test_a_number_that_python_does_not_hold_is_no_fault_of_the_text(number: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"text": "It was here.", "score": [{number}]}}\n')
    counts = make(tmp_path / "a.jsonl", tmp_path / "out", text_field="text", skip_bad_records=True)
    assert (counts.articles, counts.malformed) == (1, 0)


@pytest.mark.usefixtures("parser")
def test_an_id_of_5_000_digits_is_the_files_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "", "doc": ' + b"12345" * 1000 + b"}\n")
    with pytest.raises(InputError, match=rf"record 1: has no text \(id {'12345' * 1000}\)"):
        make(tmp_path / "a.jsonl", tmp_path / "out", id_field="doc")


@pytest.mark.usefixtures("parser")
def test_100_000_nested_brackets_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(GOOD + b'\n{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
    with pytest.raises(InputError, match="record 2: is not JSON: its values are nested more than 500 deep"):
        make(tmp_path / "a.jsonl", tmp_path / "out", text_field="text")


def two_texts(kind: str) -> bytes:
    """A table with two columns of one name."""
    pa = pytest.importorskip("pyarrow")
    columns = [pa.array(["A."]), pa.array(["B."])]
    table = pa.Table.from_arrays(columns, names=["text", "text"])
    file = io.BytesIO()
    if kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(table, file)
    else:
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "arrow"])
def test_two_columns_of_the_texts_name_are_refused(kind: str, tmp_path: Path) -> None:
    mark = b"\t" if kind == "tsv" else b","
    plain = b"text" + mark + b"text\nA." + mark + b"B.\n"
    (tmp_path / f"a.{kind}").write_bytes(two_texts(kind) if kind in ("parquet", "arrow") else plain)
    with pytest.raises(InputError, match="the column 'text' twice; rename one of the two"):
        make(tmp_path / f"a.{kind}", tmp_path / "out", kind, text_field="text")


def test_two_columns_of_another_name_are_no_fault(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"text,x,x,,\nIt was here.,1,2,,\n")
    assert make(tmp_path / "a.csv", tmp_path / "out", "csv", text_field="text").articles == 1


def test_an_error_names_the_id(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "A.", "doc": "x1"}\n{"text": "", "doc": "x2"}\n')
    with pytest.raises(InputError, match=r"record 2: has no text \(id x2\)"):
        make(tmp_path / "a.jsonl", tmp_path / "out", id_field="doc")


def test_a_field_that_is_missing_far_behind_is_named_with_its_record(tmp_path: Path) -> None:
    lines = [GOOD] * 4321
    lines[4000] = b'{"body": "x"}'
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match="record 4001: has no field 'text'"):
        make(tmp_path / "a.jsonl", tmp_path / "out", text_field="text")


@pytest.mark.thorough
def test_a_field_that_is_missing_in_the_millionth_record_is_named(tmp_path: Path) -> None:
    path, lines = tmp_path / "a.jsonl.zst", [b'{"text": "A b.", "lang": "en"}'] * 1_000_000
    lines[999_999] = b'{"body": "x"}'
    path.write_bytes(as_zstd(b"\n".join(lines)))
    with pytest.raises(InputError, match="record 1000000: has no field 'text'"):
        make(path, tmp_path / "out", text_field="text")
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_rows_of_csv_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    rows = ["id,text", '1,"One, two."', "2", '3,"a"b', '4,"Four.\nFive."', "5,", '6,"open', "7,Seven."]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    counts = make(tmp_path / "a.csv", tmp_path / "out", text_field="text", skip_bad_records=True)
    assert (counts.articles, counts.malformed, counts.empty) == (2, 3, 1)
    with pytest.raises(InputError, match="record 2: has 1 fields, expected 2"):
        make(tmp_path / "a.csv", tmp_path / "other", text_field="text")


def test_bytes_that_are_not_utf8_are_a_bad_record_of_every_kind_that_may_hold_them(tmp_path: Path) -> None:
    for name, data in {
        "a.csv": as_delimited(DOCUMENTS[:5]).replace(b"The ", b"\xffhe ", 1),
        "a.txt": b"One.\n\n\xffwo.\n\nThree.",
    }.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match="byte 0xff is not UTF-8"):
            make(tmp_path / name, tmp_path / "out", kind_of(name))
        counts = make(tmp_path / name, tmp_path / f"{name}.out", kind_of(name), skip_bad_records=True)
        assert counts.malformed == 1


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied"])
def test_damaged_files_are_one_error_and_never_another_text(name: str, damage: str, tmp_path: Path) -> None:
    whole = write(tmp_path, name, DOCUMENTS)
    data = whole.read_bytes()
    make(whole, tmp_path / "whole", kind_of(name))
    if damage == "cut":
        whole.write_bytes(data[: len(data) * 2 // 3])
    elif damage == "emptied":
        whole.write_bytes(b"")
    else:
        middle = len(data) // 2
        whole.write_bytes(data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :])
    fault = fault_of(lambda: make(whole, tmp_path / "out", kind_of(name)))
    if fault is None:  # a cut or changed text is a text, and most Arrow files hold no digests
        assert name in (TEXTS if damage == "cut" else (*TEXTS, "a.parquet", "a.arrow", "a.file.arrow"))
    else:
        assert fault.startswith(f"{whole}: ")
        assert "\n" not in fault
        assert not (tmp_path / "out" / "manifest.json").exists()


# The pieces of each file, as a text and how often it is repeated: a file has up to 200 MB.
BOMB = (b"a", 3 << 26)
BOMBS: dict[str, tuple[tuple[bytes, int], ...]] = {
    "a.jsonl": ((b'{"text": "A b."}\n{"text": "', 1), BOMB, (b'"}\n{"text": "Good."}\n', 1)),
    "b.jsonl": ((b'{"text": "A b."}\n{"text": "', 1), BOMB),
    "a.csv": ((b'text\nA b.\n"', 1), BOMB, (b'"\nGood.\n', 1)),
    "b.csv": ((b'text\nA b.\n"', 1), (b"a good row\n", 1 << 17), (b'"\nGood.\n', 1)),
    "c.csv": ((b"text\nA b.\n", 1), BOMB, (b"\nGood.\n", 1)),
    "a.txt": ((b"A b.\n\n", 1), BOMB, (b"\n\nGood.\n", 1)),
    "b.txt": ((b"A b.\n\n", 1), (b"a b\n", 1 << 20), (b"\n\nGood.\n", 1)),
}


QUICK_BOMBS = ("a.jsonl", "b.csv", "b.txt")


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        *(
            pytest.param(name, as_zstd, id=name, marks=() if name in QUICK_BOMBS else pytest.mark.thorough)
            for name in BOMBS
        ),
        pytest.param("a.jsonl", gzip.compress, id="gzip"),
        pytest.param("a.jsonl", bz2.compress, id="bzip2", marks=pytest.mark.thorough),
        pytest.param("a.jsonl", as_xz, id="xz", marks=pytest.mark.thorough),
    ],
)
def test_a_compressed_bomb_fills_no_memory(
    name: str, pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("zstandard")
    monkeypatch.setattr(plain_text, "PIECE_BYTES", 1 << 16)
    data = pack(b"".join(piece * count for piece, count in BOMBS[name]))
    assert len(data) < 1 << 18
    path, kind = tmp_path / name, "blocks" if name.endswith(".txt") else None
    path.write_bytes(data)
    own = {"max_record_bytes": 1 << 16} | ({} if kind else {"text_field": "text"})
    found: list[SegmentCounts] = []

    def run() -> None:
        found.append(make(path, tmp_path / "out", kind, skip_bad_records=True, **own))

    assert peak_bytes(run) < (1 << 27 if pack is as_zstd else 1 << 24)
    whole = 1 if name == "b.jsonl" else 2
    assert (found[0].articles, found[0].too_long) == (whole, 1)
    with pytest.raises(InputError, match=rf"{name}: record 2: "):
        make(path, tmp_path / "other", kind, **own)
    assert not (tmp_path / "other").exists()


def test_texts_that_are_no_utf8_in_a_table_with_a_long_text_are_named(tmp_path: Path) -> None:
    data = as_arrow(["One. Two.", "a" * (1 << 20), "Good."]).replace(b"Two", b"T\xffo")
    (tmp_path / "a.arrow").write_bytes(data)
    own = {"text_field": "text", "max_record_bytes": 1 << 10, "skip_bad_records": True}
    counts = make(tmp_path / "a.arrow", tmp_path / "out", **own)
    assert (counts.articles, counts.too_long, counts.malformed) == (1, 1, 1)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("flags", [{}, {"text_field": "text"}], ids=["found", "given"])
def test_a_column_whose_name_is_no_utf8_is_damage(name: str, flags: dict[str, str], tmp_path: Path) -> None:
    data = as_arrow(["A b.", "Good."]) if "arrow" in name else as_parquet(["A b.", "Good."])
    (tmp_path / name).write_bytes(data.replace(b"text", b"t\xf4xt"))
    with pytest.raises(InputError, match=rf"{name}: .*is damaged "):
        make(tmp_path / name, tmp_path / "out", **flags)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.parquet.gz"])
def test_a_long_row_is_left_out_of_tables(name: str, tmp_path: Path) -> None:
    documents = ["A b.", "a" * (1 << 20), "Good."]
    data = as_arrow(documents) if "arrow" in name else as_parquet(documents)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    own = {"text_field": "text", "max_record_bytes": 1 << 10}
    counts = make(tmp_path / name, tmp_path / "out", skip_bad_records=True, **own)
    assert (counts.articles, counts.too_long) == (2, 1)
    with pytest.raises(InputError, match=f"{name}: record 2: a text of more than 73728 bytes"):
        make(tmp_path / name, tmp_path / "other", **own)


@given(st.text("a \n\r\t\u3000\x1c\u0085ä", max_size=30))
def test_bytes_of_a_long_text_are_those_of_its_lines(text: str) -> None:
    lines = "".join(f"{line}\n" for line in plain_text.split_text_lines(text))
    assert plain_text.measure_text_lines(text) == len(lines.encode())


def test_texts_outside_of_their_buffer_are_damage(tmp_path: Path) -> None:
    data = bytearray(as_arrow(DOCUMENTS[:20]))
    ends = array("i", accumulate(len(text.encode()) for text in DOCUMENTS[:20])).tobytes()
    at = data.index(ends)
    for value in (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff"):
        data[at + 20 : at + 24] = value
        (tmp_path / "a.arrow").write_bytes(data)
        with pytest.raises(InputError, match=r"a.arrow: is damaged Arrow data: .*fetch or make it again"):
            make(tmp_path / "a.arrow", tmp_path / "out")
        assert not (tmp_path / "out").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("name", FILES)
def test_bytes_damaged_anywhere_are_one_error_in_words_and_never_a_crash(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, DOCUMENTS)
    whole = path.read_bytes()
    rng = random.Random(name)
    for number in range(20):
        data = bytearray(whole)
        at = rng.randrange(len(data))
        if number % 4 == 3:
            del data[at:]
        else:
            data[at] ^= 1 << rng.randrange(8) if number % 2 else 0xFF
        path.write_bytes(data)
        out, own = tmp_path / f"out{number}", {} if kind_of(name) else {"text_field": "text"}
        kind = kind_of(name) or name.removeprefix("a.").removeprefix("file.").split(".")[0]
        fault = fault_of(partial(make, path, out, kind, skip_bad_records=bool(number % 3), **own))
        assert fault is None or (fault.startswith(f"{path}: ") and "\n" not in fault)
        assert fault is None or not (out / "manifest.json").exists()


@pytest.mark.parametrize("before", range(3))
def test_an_article_that_is_cut_within_a_character_is_too_long(
    before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end stands in the first bytes of what is read next."""
    monkeypatch.setattr(article_records, "PIECE_BYTES", 5000)
    text = b"x" * before + "麦".encode() * 60_000
    text += b"x" * (-(2 * ARTICLE.index(b"Text") + len(ARTICLE[ARTICLE.index(b"Text") :]) + len(text)) % 5000)
    (tmp_path / "wiki_00").write_bytes(ARTICLE + ARTICLE.replace(b"Text", text) + ARTICLE)
    counts = make(tmp_path / "wiki_00", tmp_path / "out", max_record_bytes=1000, skip_bad_records=True)
    assert (counts.articles, counts.too_long, counts.malformed) == (2, 1, 0)


def test_several_fields_of_text_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"url": "u", "body": "A b.", "score": 1}\n')
    with pytest.raises(SettingsError, match="several fields of texts: url, body; name one: --text-field url"):
        make(tmp_path / "a.jsonl", tmp_path / "out")
    assert make(tmp_path / "a.jsonl", tmp_path / "out", id_field="url").articles == 1
    with pytest.raises(SettingsError, match="no field 'txt' of texts, expected one of 'url', 'body'"):
        make(tmp_path / "a.jsonl", tmp_path / "other", text_field="txt")


def test_no_text_at_all_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n \n")
    with pytest.raises(InputError, match="no record with text found"):
        make(tmp_path / "a.txt", tmp_path / "out", "blocks")
    assert not (tmp_path / "out").exists()


def test_the_command_says_what_it_left_out(bertdata: Program, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "A b."}\n{"text": ""}\n{"text": 5}\n')
    outcome = bertdata("segment", tmp_path / "a.jsonl", "--output", tmp_path / "out", "--workers=1")
    outcome.assert_one_error(1, f"{tmp_path / 'a.jsonl'}: record 2: has no text; ", "--skip-bad-records")
    flags = ("--workers=1", "--skip-bad-records", "--sentences", "lines")
    outcome = bertdata("segment", tmp_path / "a.jsonl", "--output", tmp_path / "out", *flags)
    assert outcome.status == 0
    assert "1 documents, 1 malformed, 1 empty left out, 1 lines" in outcome.out
    assert outcome.out.endswith(f"; {tmp_path / 'out/removed.jsonl'} lists what was left out\n")
    assert files_below(tmp_path / "out") == ["MD5SUMS", "manifest.json", "part-00000.txt", "removed.jsonl"]
    assert bertdata("verify-md5", tmp_path / "out", "--chain").status == 0


def test_if_no_record_is_left_the_error_names_the_first_fault(bertdata: Program, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('\n{"text": ""}\n{"text": 5}\n')
    flags = ("--workers=1", "--skip-bad-records", "--text-field=text")
    outcome = bertdata("segment", path, "--output", tmp_path / "out", *flags)
    told = "no record is left to train on, here or in other files: 1 malformed, 1 empty; the first bad one is"
    outcome.assert_one_error(1, f"{path}: {told} {path}: record 2: has no text; repair it")
    assert "--skip-bad-records" not in outcome.err


def test_settings_of_articles_and_of_records_exclude_each_other(bertdata: Program, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "A b."}\n')
    common = ("segment", tmp_path / "a.jsonl", "--output", tmp_path / "out")
    outcome = bertdata(*common, "--input-kind", "jsonl", "--eval-articles", 5)
    outcome.assert_one_error(2, "--eval-articles goes with articles and books")
    outcome = bertdata(*common, "--input-kind", "articles", "--part-size", 5)
    outcome.assert_one_error(1, f'{tmp_path / "a.jsonl"}: record 1: begins with no <doc id="...">')


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"Before.\n" + ARTICLE, 'record 1: begins with no <doc id="...">'),
        (
            ARTICLE + b'<doc id="9">\nT\n\nText.\n',
            "record 2: is not closed by </doc> before the file ends (id 9)",
        ),
        (
            ARTICLE + b'<doc id="9">\nT\nText.\n' + ARTICLE,
            "record 2: is not closed by </doc> before the next one opens (id 9)",
        ),
        (ARTICLE.replace(b"Text", b"\xe4"), "record 1: byte 0xe4 is not UTF-8 (id 7)"),
        (ARTICLE.replace(b"Text", b"x" * 200_000), "record 1"),
        (ARTICLE.replace(b"Text.", b""), "record 1: has no text (id 7)"),
    ],
)
def test_a_bad_article_is_named_or_counted(data: bytes, fault: str, tmp_path: Path) -> None:
    (tmp_path / "wiki_00").write_bytes(data)
    with pytest.raises(InputError) as error:
        make(tmp_path / "wiki_00", tmp_path / "out", "articles", max_record_bytes=1000)
    assert fault in str(error.value)
