"""What is no text is not taken for text, whatever --input-kind says; plain text and empty files are known."""

import gzip
import io
import json
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest

from bertdata.errors import InputError
from bertdata.sources.find import find_sources
from bertdata.sources.recognise import recognise
from bertdata.text.selection.evaluation_texts import read_evaluation_texts
from tests.bertdata.io.test_file_kind import tfrecord
from tests.support.commands import Program, contents
from tests.support.read_records import texts

PROSE = b"The tree stood by the river.\nIt was old.\n\nShe saw it in spring.\n"
JSON_LINES = b'{"text": "One."}\n{"text": "Two."}\n'


def tar_of(data: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo("a.txt")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def zip_of(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", data)
    return file.getvalue()


def mds_of(data: bytes) -> bytes:
    form = json.dumps({"column_names": ["text"], "format": "mds"}).encode()
    start = 12 + len(form)
    return b"".join(n.to_bytes(4, "little") for n in (1, start, start + len(data))) + form + data


OTHERS = {
    "s.tar": (tar_of(PROSE), "a tar archive", "tar -xf s.tar -C s-files"),
    "s.xz": (lzma.compress(tar_of(PROSE)), "a tar archive within xz data", "tar -xf s.xz -C s-files"),
    "s.txt.gz": (gzip.compress(tar_of(PROSE)), "a tar archive within gzip data", "tar -xf s.txt.gz "),
    "s.zip": (zip_of(PROSE), "a zip archive", "unzip s.zip -d s-files"),
    "s.txt": (mds_of(PROSE), "an MDS shard", "bertdata show"),
    "s.tfrecord.gz": (
        gzip.compress(tfrecord()),
        "TFRecord within gzip data",
        "gzip -d s.tfrecord.gz; then give",
    ),
    "s.utf16": ("Bäume.\n".encode("utf-16") * 9, "UTF-16", "; name its encoding: --encoding utf-16"),
    "s.bin": (b"\x7fELF\x02\x01\x01" + bytes(90), "binary data (it holds NUL)", ""),
    "s.xml": (b'<mediawiki xmlns="x">\n<page>\n</page>\n', "a MediaWiki dump", "bertdata extract s.xml"),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("kind", [None, "blocks", "text", "jsonl", "csv"])
def test_what_is_no_text_is_named_with_what_helps(
    name: str, kind: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data, found, remedy = OTHERS[name]
    Path(name).write_bytes(data)
    if name == "s.bin" and kind in ("jsonl", "csv"):
        return  # their readers say what is wrong
    with pytest.raises(InputError) as error:
        find_sources([name], kind)
    assert str(error.value).startswith(f"{name}: looks like {found}, expected ")
    assert remedy in str(error.value)
    if kind is None:
        with pytest.raises(InputError, match="looks like "):
            list(read_evaluation_texts(name))


@pytest.mark.parametrize("kind", ["blocks", "text"])
@pytest.mark.parametrize(
    "data",
    [JSON_LINES, b'[{"text": "One."}]', b'<doc id="1" title="T">\nT\n\nOne.\n\n</doc>\n', b"PAR1\x15\x04"],
    ids=["JSON lines", "a list of JSON", "articles", "Parquet"],
)
def test_records_are_not_taken_for_plain_text_unless_as_is(kind: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(
        InputError, match="expected plain text; leave --input-kind out to read its texts, or .*--as-is"
    ):
        texts(tmp_path / "a.txt", kind=kind)
    found = texts(tmp_path / "a.txt", kind=kind, as_is=True)
    assert "\n".join(found).split() == data.decode().split()


def test_plain_text_named_txt_is_blocks_and_other_names_are_asked_about(tmp_path: Path) -> None:
    for name in ("a.txt", "a.txt.gz"):
        (tmp_path / name).write_bytes(gzip.compress(PROSE) if name.endswith(".gz") else PROSE)
        assert recognise(str(tmp_path / name)) == "blocks"
    (tmp_path / "a.md").write_bytes(PROSE)
    with pytest.raises(InputError, match="its bytes do not tell its kind; name it: --input-kind blocks"):
        find_sources([str(tmp_path / "a.md")], None)
    (tmp_path / "b.txt").write_bytes(b'\n<doc id="1" title="T">\nT\n\nOne.\n\n</doc>\n')
    assert recognise(str(tmp_path / "b.txt")) == "articles"


def test_segment_of_a_text_file_needs_no_flag(bertdata: Program, tmp_path: Path) -> None:
    """The first thing that a new user types."""
    folder = tmp_path / "notes"
    folder.mkdir()
    path = folder / "notes.txt"
    path.write_bytes(PROSE)
    outcome = bertdata("segment", path, "--output", tmp_path / "out", "--workers", 1)
    assert outcome.status == 0, outcome.err
    assert "1 files (1 of plain text with blank lines between documents), 2 documents, " in outcome.out
    expected = b"The tree stood by the river.\nIt was old.\n\nShe saw it in spring.\n\n"
    assert contents(tmp_path / "out")["part-00000.txt"] == expected
    path.write_bytes(PROSE.replace(b"\n\n", b"\n"))
    outcome = bertdata("segment", path, "--output", tmp_path / "whole", "--workers", 1)
    assert "1 documents" in outcome.out
    outcome = bertdata("segment", folder, "--output", tmp_path / "of_folder", "--workers", 1)
    assert outcome.status == 0, outcome.err


def test_a_recipe_of_articles_takes_a_text_file_for_a_document(bertdata: Program, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(PROSE)
    flags = ("--recipe", "mlperf", "--eval-articles", 0, "--workers", 1)
    for name, kind in (("out", ()), ("named", ("--input-kind", "text"))):
        outcome = bertdata("segment", tmp_path / "notes.txt", "--output", tmp_path / name, *flags, *kind)
        assert outcome.status == 0, outcome.err
    assert contents(tmp_path / "out") == contents(tmp_path / "named")


@pytest.mark.parametrize(
    "empty", [b"", b"\xef\xbb\xbf\n", gzip.compress(b"")], ids=["none", "a mark", "gzip"]
)
def test_an_empty_shard_among_others_holds_no_record(empty: bytes, bertdata: Program, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(empty)
    (tmp_path / "b.jsonl").write_bytes(JSON_LINES)
    flags = ("--output", tmp_path / "out", "--sentences", "none", "--workers", 1)
    outcome = bertdata("segment", tmp_path / "a.jsonl", tmp_path / "b.jsonl", *flags)
    assert outcome.status == 0, outcome.err
    assert "2 files (1 empty), 2 documents" in outcome.out
    assert contents(tmp_path / "out")["part-00000.txt"] == b"One.\n\nTwo.\n\n"
    outcome = bertdata("segment", tmp_path / "a.jsonl", "--output", tmp_path / "alone")
    assert (outcome.status, outcome.err.count("\n")) == (1, 1)
    assert "a.jsonl: is empty" in outcome.err
    assert "--input-kind jsonl" in outcome.err
    outcome = bertdata(
        "segment", tmp_path / "a.jsonl", "--input-kind", "jsonl", "--output", tmp_path / "alone"
    )
    assert (outcome.status, outcome.err.count("\n")) == (1, 1)
    assert "no record with text found" in outcome.err


def test_empty_tables_among_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"")
    (tmp_path / "b.csv").write_bytes(b"text\nOne.\n")
    assert texts(tmp_path / "a.csv", tmp_path / "b.csv") == ["One."]
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="a.parquet: is empty, expected parquet; fetch or make it again"):
        texts(tmp_path / "a.parquet", tmp_path / "b.csv")


def test_a_folder_of_other_files_says_what_it_holds(bertdata: Program, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.pdf", "b.pdf"):
        (tmp_path / "in" / name).write_bytes(b"%PDF-1.7\n")
    for flags in ((), ("--eval-articles", 1)):
        outcome = bertdata("segment", tmp_path / "in", "--output", tmp_path / "out", *flags)
        assert (outcome.status, outcome.err.count("\n")) == (2, 1)
        assert "it holds a.pdf and 1 others" in outcome.err
