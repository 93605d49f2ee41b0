"""``--encoding``: sources that are not UTF-8 give the parts that the same text in UTF-8 gives."""

import bz2
import gzip
import io
import json
from pathlib import Path

import pytest

import bertdata as package
from bertdata.errors import SettingsError
from bertdata.sources import encoding, json_values, line_pieces, piece, plain_text
from bertdata.sources.encoding import normalise_encoding, open_decoded
from bertdata.sources.settings import RecordSettings
from tests.support.commands import Program, contents
from tests.support.read_records import faults, texts

TEXTS = ["Straße und Bäume.\nGrün.", "Il a été là – « déjà ».", "“Smart”, naïve €uro."]
"""Texts that cp1252, utf-16 and gb18030 can write."""


def as_blocks(given: list[str]) -> str:
    return "\n\n".join(given) + "\n"


def as_json_lines(given: list[str]) -> str:
    return "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in given)


def as_json(given: list[str]) -> str:
    return json.dumps([{"text": text} for text in given], ensure_ascii=False, indent=1)


def as_csv(given: list[str]) -> str:
    return "text\n" + "".join(f'"{text}"\n' for text in given)


def as_articles(given: list[str]) -> str:
    return "".join(
        f'<doc id="{number}" url="?" title="T">\nT\n\n{text}\n\n</doc>\n' for number, text in enumerate(given)
    )


FORMATS = {
    "a.txt": as_blocks,
    "a.jsonl": as_json_lines,
    "a.json": as_json,
    "a.csv": as_csv,
    "wiki_00": as_articles,
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters are cut by the ends of blocks, and files have several pieces."""
    monkeypatch.setattr(encoding, "BLOCK_BYTES", 7)
    for module in (json_values, line_pieces, piece, plain_text):
        monkeypatch.setattr(module, "PIECE_BYTES", 50)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("codec", ["cp1252", "utf-16", "utf-16-be", "utf-32", "gb18030", "utf-7"])
def test_every_format_is_read_in_every_encoding(name: str, codec: str, tmp_path: Path) -> None:
    data = FORMATS[name](TEXTS).encode(codec)
    (tmp_path / name).write_bytes(data)
    kind = "csv" if name.endswith("csv") else None
    assert texts(tmp_path / name, kind=kind, encoding=codec) == TEXTS


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_compressed_file_is_unpacked_before_it_is_decoded(pack, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.packed").write_bytes(pack(as_json_lines(TEXTS).encode("utf-16")))
    assert texts(tmp_path / "a.jsonl.packed", encoding="utf-16") == TEXTS


def test_parts_are_those_of_the_same_text_in_utf8_for_any_number_of_workers(tmp_path: Path) -> None:
    for codec in ("utf-8", "cp1252"):
        (tmp_path / codec).mkdir()
        for name in ("a.txt", "b.jsonl"):
            data = FORMATS[f"a{name[1:]}"](TEXTS * 20).encode(codec)
            (tmp_path / codec / name).write_bytes(data)
    made = {}
    for codec, workers in (("utf-8", 1), ("cp1252", 1), ("cp1252", 2)):
        out = tmp_path / f"out-{codec}-{workers}"
        package.segment(tmp_path / codec, out, sentences="none", encoding=codec, workers=workers)
        made[codec, workers] = contents(out)
    assert made["cp1252", 1] == made["cp1252", 2]
    part = "part-00000.txt"
    assert made["cp1252", 1][part] == made["utf-8", 1][part]
    assert made["utf-8", 1][part].count("Straße".encode()) == 40


def test_the_manifest_names_the_encoding_as_python_does(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(as_blocks(TEXTS).encode("cp1252"))
    for name in ("Windows-1252", "cp1252"):  # the second one finds the directory of the first
        package.segment(tmp_path / "a.txt", tmp_path / "out", sentences="none", encoding=name)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["settings"]["encoding"] == "cp1252"
    assert "encoding" not in RecordSettings(encoding="UTF8").as_json()


@pytest.mark.parametrize("name", FORMATS)
def test_a_byte_outside_the_encoding_makes_its_record_bad(name: str, tmp_path: Path) -> None:
    data = FORMATS[name](["Gut.", "Schl@cht.", "Gut."]).encode("cp1252").replace(b"@", b"\x81")
    (tmp_path / name).write_bytes(data)
    kind = "csv" if name.endswith("csv") else None
    if name != "a.csv":  # the rows of CSV are checked when their text is normalised
        found = faults(tmp_path / name, kind=kind, encoding="cp1252")
        assert found == [("malformed", "byte 0x81 is not cp1252")]
    counts = package.segment(
        tmp_path / name,
        tmp_path / "out",
        input_kind=kind,
        encoding="cp1252",
        sentences="none",
        skip_bad_records=True,
    )
    assert (counts.articles, counts.malformed) == (2, 1)


def test_bytes_outside_the_encoding_never_become_other_letters(tmp_path: Path) -> None:
    # "é" in UTF-8 is two bytes, neither of which is ASCII. Together they are not to become "é" again.
    (tmp_path / "a.txt").write_bytes("été\n".encode())
    assert faults(tmp_path / "a.txt", encoding="ascii") == [("malformed", "byte 0xc3 is not ascii")]


def test_an_error_names_file_record_and_byte(bertdata: Program, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(as_csv(["Gut.", "Schl@cht."]).encode("cp1252").replace(b"@", b"\x81"))
    flags = ("--text-field=text", "--sentences=none", "--encoding=cp1252")
    failed = bertdata("segment", path, "--output", tmp_path / "out", *flags)
    failed.assert_one_error(1, f"{path}: record 2: byte 0x81 is not cp1252; repair it", "--skip-bad-records")


def test_an_error_about_bytes_that_are_not_utf8_names_the_flag(bertdata: Program, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Bäume.\n".encode("cp1252"))
    failed = bertdata("segment", path, "--output", tmp_path / "out", "--sentences=none")
    failed.assert_one_error(
        1,
        f"{path}: record 1: byte 0xe4 is not UTF-8; name its encoding, such as ",
        "--encoding cp1252, gb18030 or cp1256, ",
    )
    done = bertdata("segment", path, "--output", tmp_path / "out", "--sentences=none", "--encoding=cp1252")
    assert done.status == 0, done.err
    assert (tmp_path / "out/part-00000.txt").read_text(encoding="utf-8") == "Bäume.\n\n"


@pytest.mark.parametrize(
    "ending", [b"\xed", b"\xed\xb1", b"\xed\xb1\xc6", b"\xed\xb1\x80", b"\xed\xb1A more"]
)
def test_half_a_surrogate_pair_at_the_end_of_a_file_is_one_line(
    bertdata: Program, tmp_path: Path, ending: bytes
) -> None:
    """These bytes begin like the marks of undecodable bytes in other encodings."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"Text.\n" + ending)
    failed = bertdata("segment", path, "--output", tmp_path / "out", "--sentences=none")
    failed.assert_one_error(1, f"{path}: record 1: byte 0xed is not UTF-8; name its encoding, such as ")


def test_a_file_that_is_already_utf8_is_told(bertdata: Program, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Bäume.\n", encoding="utf-8")
    (tmp_path / "b.txt").write_bytes("Bäume.\n".encode("cp1252"))
    flags = ("--sentences=none", "--encoding=cp1252")
    done = bertdata("segment", tmp_path / "a.txt", tmp_path / "b.txt", "--output", tmp_path / "out", *flags)
    assert done.status == 0
    told = done.out + done.err
    assert f"{tmp_path / 'a.txt'}: its beginning is valid UTF-8, but it is read as cp1252" in told
    assert "b.txt: its beginning" not in told


def test_binary_columns_are_decoded_and_strings_are_not(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for name, kind in (("bytes", pa.binary()), ("strings", pa.string())):
        column = [text.encode("cp1252") if name == "bytes" else text for text in TEXTS]
        parquet.write_table(pa.table({"text": pa.array(column, kind)}), tmp_path / f"{name}.parquet")
        assert texts(tmp_path / f"{name}.parquet", encoding="cp1252") == TEXTS


@pytest.mark.parametrize("name", ["klingon", "base64", "rot13", "idna", "undefined", ""])
def test_what_is_no_encoding_of_text_is_refused(name: str, bertdata: Program, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A.\n")
    done = bertdata("segment", tmp_path / "a.txt", "--output", tmp_path / "out", f"--encoding={name}")
    done.assert_one_error(2, f"encoding is {name!r}, expected an encoding of text that Python knows")
    assert not (tmp_path / "out").exists()


def test_names_of_one_encoding_are_normalised() -> None:
    found = [normalise_encoding(name) for name in ("UTF8", "utf-8-sig", "Latin-1", "windows-1252")]
    assert found == ["utf-8", "utf-8", "iso8859-1", "cp1252"]
    with pytest.raises(SettingsError):
        RecordSettings(encoding="utf-9")


@pytest.mark.parametrize("codec", ["cp1252", "utf-16-le", "shift_jis", "iso2022_jp", "gb18030", "utf-7"])
def test_any_bytes_decode_to_marks_and_letters_without_loss(codec: str, tmp_path: Path) -> None:
    """The specification: letters that Python decodes, and a mark for each byte that it cannot decode."""
    data = bytes(range(256)) + b"\xd8\x00\xff\xff\x81"
    (tmp_path / "a").write_bytes(data)
    with open_decoded(str(tmp_path / "a"), codec) as file:
        found = file.read().decode(errors="surrogatepass")
    marks = io.StringIO()
    encoding.codecs.register_error(
        "tests.marks", lambda e: ("".join(chr(0xDC00 + b) for b in e.object[e.start : e.end]), e.end)
    )
    marks.write(data.decode(codec, "tests.marks"))
    assert found == marks.getvalue()


def test_utf16_without_a_mark_needs_the_order_of_its_bytes(bertdata: Program, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Bäume.\n".encode("utf-16-be"))
    done = bertdata("segment", path, "--output", tmp_path / "out", "--sentences=none", "--encoding=UTF-16")
    done.assert_one_error(1, f"{path}: is not utf-16: ", "BOM", "--encoding utf-16-le, or utf-16-be")
    assert texts(path, encoding="utf-16-be") == ["Bäume."]


def test_an_evaluation_set_is_read_as_utf8_whatever_the_encoding_of_the_sources(tmp_path: Path) -> None:
    words = "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn"
    (tmp_path / "a.txt").write_bytes(f"{words}.\n\nGrün.\n".encode("cp1252"))
    (tmp_path / "set.txt").write_text(f"{words}\n", encoding="utf-8")
    counts = package.segment(
        tmp_path / "a.txt",
        tmp_path / "out",
        sentences="none",
        encoding="cp1252",
        exclude=[tmp_path / "set.txt"],
    )
    assert (counts.articles, counts.excluded) == (1, 1)


def test_a_vocabulary_is_trained_on_text_in_another_encoding(bertdata: Program, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(("größe " * 9 + "\n").encode("cp1252"))
    flags = ("--size=40", "--input-kind=blocks", "--encoding=cp1252", "--keep-accents")
    done = bertdata("train-vocab", tmp_path / "a.txt", "--output", tmp_path / "vocab.txt", *flags)
    assert done.status == 0, done.err
    assert "größe" in (tmp_path / "vocab.txt").read_text(encoding="utf-8").split()
