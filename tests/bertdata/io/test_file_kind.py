"""Files that are no plain text are recognised by their bytes; prose never is."""

import bz2
import glob
import gzip
import json
import lzma
import shutil
import subprocess
from pathlib import Path

import pytest

from bertdata.errors import InputError
from bertdata.io.file_kind import (
    HEAD_BYTES,
    check_beginning,
    find_kind,
    looks_like_latin1,
    refuse_other_kinds,
)
from tests.support.paths import ROOT

PROSE = "The tree stood by the river.\nIt was old.\n\nShe saw it in spring.\nThe leaves were green.\n"
GERMAN = "Die Bäume stehen über dem Fluß.\nSie sind größer als früher.\n\nMöwen fliegen über die Häuser.\n"
RUSSIAN = "Дерево стояло у реки.\nОно было старым.\n\nОна видела его весной.\nЛистья были зелёными.\n"
JAPANESE = "木は川のそばに立っていた。\n" * 40

ARTICLES = [
    {"id": number, "url": "https://example.org", "text": f"Article {number} is short.\nIt has two lines."}
    for number in range(1, 9)
]
JSON_LINES = "".join(json.dumps(article) + "\n" for article in ARTICLES)


def kind_of(data: bytes) -> str | None:
    """The kind of a file that holds these bytes."""
    found = find_kind(data[:HEAD_BYTES], "part", whole=len(data) <= HEAD_BYTES)
    return found.name if found else None


def tfrecord() -> bytes:
    """The beginning of a TFRecord file: a record of 300 bytes."""
    features = b"\x0a\x10" + b"x" * 16
    payload = b"\x0a" + bytes([len(features)]) + features
    return len(payload).to_bytes(8, "little") + b"\x12\x34\x56\x78" + payload + b"\x12\x34\x56\x78"


OTHERS = {
    "gzip": (gzip.compress(PROSE.encode(), mtime=0), "gzip data"),
    "bzip2": (bz2.compress(PROSE.encode()), "bzip2 data"),
    "xz": (lzma.compress(PROSE.encode()), "xz data"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x58" + PROSE.encode(), "zstd data"),
    "Parquet": (b"PAR1\x15\x04\x15\x80\x01" + PROSE.encode() + b"PAR1", "Parquet"),
    "HDF5": (b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0", "HDF5"),
    "TFRecord": (tfrecord(), "TFRecord"),
    "UTF-16 with its mark": (GERMAN.encode("utf-16"), "UTF-16"),
    "UTF-16, little end first": (PROSE.encode("utf-16-le"), "UTF-16LE"),
    "UTF-16, big end first": (PROSE.encode("utf-16-be"), "UTF-16BE"),
    "UTF-16 of Russian": (RUSSIAN.encode("utf-16-le"), "UTF-16LE"),
    "UTF-16 of Japanese": (JAPANESE.encode("utf-16-be"), "UTF-16BE"),
    "UTF-32": (PROSE.encode("utf-32"), "UTF-32"),
    "JSON lines": (JSON_LINES.encode(), "JSON, one object a line"),
    "JSON lines, blank ones between": (
        JSON_LINES.replace("\n", "\n\n").encode(),
        "JSON, one object a line",
    ),
    "JSON lines after a mark": (b"\xef\xbb\xbf" + JSON_LINES.encode(), "JSON, one object a line"),
    "JSON lines, a few broken": (
        (JSON_LINES * 4 + '{"text": "cut\nplain\n').encode(),
        "JSON, one object a line",
    ),
    "one object": (b'{"text": "The tree."}', "JSON"),
    "JSON with line breaks": (json.dumps(ARTICLES, indent=2).encode(), "JSON"),
    "JSON in one long line": (json.dumps(ARTICLES * 900).encode(), "JSON"),
    "one object longer than the beginning": (json.dumps({"text": PROSE * 2000}).encode(), "JSON"),
    "JSON lines with NaN": (
        (JSON_LINES + '{"text": "a", "score": NaN}\n' * 9).encode(),
        "JSON, one object a line",
    ),
    "a list with NaN": (b'[{"text": "The tree.", "score": NaN}]', "JSON"),
    "Arrow": (b"ARROW1\0\0\xff\xff\xff\xff\x78\0\0\0" + PROSE.encode(), "Arrow"),
    "an Arrow stream": (b"\xff\xff\xff\xff\x78\0\0\0" + PROSE.encode(), "Arrow"),
    "lz4": (b"\x04\x22\x4d\x18" + PROSE.encode(), "lz4 data"),
    "PDF": (b"%PDF-1.7\n" + PROSE.encode(), "PDF"),
    "the index of MDS": (b'{"shards": [{"column_encodings": ["str"]}]}', "the index of MDS shards"),
    "lists of strings": (b'["The tree.", "It was old."]\n["She saw it."]\n', "JSON"),
}


@pytest.mark.parametrize(("data", "kind"), OTHERS.values(), ids=OTHERS)
def test_another_kind_of_file_is_recognised(data: bytes, kind: str) -> None:
    assert kind_of(data) == kind
    with pytest.raises(InputError, match="^part: looks like .*, expected plain text in UTF-8; "):
        refuse_other_kinds(data, "part")


ODD_PROSE = {
    "nothing": "",
    "a brace first": "{ is an opening brace.\n} closes it.\n\nNobody forgets it.\n",
    "a bracket first": "[1] The first note.\n[2] The second note.\n",
    "numbers in brackets": "[1]\n[2, 3]\n[4]\n",
    "special tokens": "[MASK] [SEP]\n[CLS]\n\n[UNK]\n",
    "quotations": '"Who is it?"\n"Nobody."\n\n"So be it."\n',
    "a quoted list": '["Ah," he said.\n["Oh," said she.\n',
    "one line of JSON among prose": PROSE * 3 + JSON_LINES.split("\n")[0] + "\n" + PROSE,
    "JSON first, then prose": JSON_LINES.split("\n")[0] + "\n" + PROSE,
    "half of the lines JSON": "".join(
        f"An example:\n{line}\n" for line in JSON_LINES.splitlines()
    ),
    "empty objects": "{}\n{}\n[]\n",
    "Python's form": "{'text': 'The tree.'}\n{'text': 'It was old.'}\n",
    "signatures as words": "PAR1 is a word.\nBZh91 is another.\n7zXZ too.\n",
    "Parquet's first word alone": "PAR1\nPAR1\n",
    "bzip2's first word": "BZh9 is how it begins.\n",
    "NUL bytes": PROSE.replace("river", "ri\0ver").replace("green", "\0green\0") + "\0",
    "every second character a tab": "1\t2\t3\t4\t5\t6\t7\t8\t9\t0\n" * 9,
    "a byte-order mark": "\ufeff" + PROSE,
    "German": GERMAN,
    "Russian": RUSSIAN,
    "Japanese": JAPANESE,
    "carriage returns": PROSE.replace("\n", "\r\n"),
    "a long line": "word " * 40000,
}  # fmt: skip


@pytest.mark.parametrize("text", ODD_PROSE.values(), ids=ODD_PROSE)
def test_odd_prose_is_text(text: str) -> None:
    assert kind_of(text.encode()) is None


GOLDEN_TEXTS = [
    path
    for folder in ("corpus", "text", "dump", "cleaning")
    for path in sorted((ROOT / "golden" / folder).rglob("*"))
    if path.is_file()
] + [ROOT / "golden" / name for name in ("odd.txt", "single.txt", "vocab.txt", "README.md")]


@pytest.mark.parametrize("path", GOLDEN_TEXTS, ids=lambda path: path.name)
def test_every_text_of_the_golden_files_is_text(path: Path) -> None:
    data = path.read_bytes()
    assert kind_of(data) is None
    for start in range(0, len(data), 977):  # any beginning that a cut could leave
        assert find_kind(data[start : start + 3000], path.name, whole=False) is None, start


@pytest.mark.parametrize("text", [GERMAN, "Le café était fermé.\n", "naïve\n"])
def test_single_letters_that_are_not_utf8_look_like_latin1(text: str) -> None:
    assert looks_like_latin1(text.encode("latin-1"))
    assert looks_like_latin1(text.encode("cp1252"))


@pytest.mark.parametrize(
    "data",
    [
        GERMAN.encode() + b"lea\xffves\n",
        GERMAN.encode() + b"caf\xe9\n",
        b"lea\xffves\n",
        RUSSIAN.encode("cp1251"),
        RUSSIAN.encode("koi8-r"),
        JAPANESE.encode("shift-jis"),
        JAPANESE.encode("euc-jp"),
        PROSE.encode(),
    ],
    ids=["stray byte", "stray letter", "stray byte alone", "1251", "KOI8", "Shift-JIS", "EUC", "ASCII"],
)
def test_damaged_utf8_and_other_encodings_do_not_look_like_latin1(data: bytes) -> None:
    assert not looks_like_latin1(data)


def test_the_command_for_json_names_the_field_of_the_longest_text() -> None:
    remedies = {
        JSON_LINES: "--text-field text;",
        json.dumps({"a": "x", "the body": PROSE}): "--text-field 'the body';",
        json.dumps(ARTICLES): "--text-field text;",
        json.dumps({"data": ARTICLES}): "jq -c '.. | objects | select(has(\"text\"))' part > part.jsonl;",
        '["One.", "Two."]': "bertdata segment part --output part.parts;",
        json.dumps({"id": 1, "body": PROSE * 2000}): "--text-field body;",
    }
    for text, remedy in remedies.items():
        found = find_kind(text.encode()[:HEAD_BYTES], "part", whole=len(text) <= HEAD_BYTES)
        assert found
        assert remedy in found.remedy


def command_of(path: Path) -> str:
    """The command that the error for a file offers."""
    with pytest.raises(InputError) as failure:
        check_beginning(str(path))
    command = str(failure.value).partition("; ")[2].partition(": ")[2].partition("; then ")[0]
    for program in command.replace("&& ", "").split(" ")[:1]:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    return command


@pytest.mark.parametrize(
    ("name", "data", "made"),
    [
        ("a part.gz", OTHERS["gzip"][0], "a part"),
        ("part.bz2", OTHERS["bzip2"][0], "part"),
        ("part.xz", OTHERS["xz"][0], "part"),
        ("part", OTHERS["gzip"][0], "part"),
        ("part.utf16", PROSE.encode("utf-16"), "part.utf16"),
        ("part.le", PROSE.encode("utf-16-le"), "part.le"),
        ("part.latin", PROSE.encode() + "Fünf Bäume.\n".encode("latin-1"), "part.latin"),
        ("part.bom", b"\xef\xbb\xbf" + PROSE.encode() + "Fünf Bäume.\n".encode("latin-1"), "part.bom"),
    ],
    ids=[
        "gzip",
        "bzip2",
        "xz",
        "gzip without an ending",
        "UTF-16",
        "UTF-16LE",
        "Latin-1",
        "Latin-1 after a mark",
    ],
)
def test_the_command_of_an_error_leaves_one_file_of_text_under_the_pattern(
    name: str, data: bytes, made: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    subprocess.run(command_of(tmp_path / name), shell=True, check=True, cwd=tmp_path)
    assert glob.glob(f"{tmp_path}/*") == [str(tmp_path / made)]
    text = PROSE + ("Fünf Bäume.\n" if name in ("part.latin", "part.bom") else "")
    assert (tmp_path / made).read_text(encoding="utf-8") == text


def test_what_a_command_replaces_is_kept_under_a_hidden_name(tmp_path: Path) -> None:
    path = tmp_path / "part.txt"
    path.write_bytes(PROSE.encode() + b"lea\xffves\n")
    subprocess.run(command_of(path), shell=True, check=True)
    assert path.read_text() == PROSE + "leaves\n"
    assert (tmp_path / ".part.txt.old").read_bytes() == PROSE.encode() + b"lea\xffves\n"


def test_the_command_of_jq_makes_records(tmp_path: Path) -> None:
    path = tmp_path / "part.json"
    path.write_text(json.dumps({"data": [{"rows": ARTICLES}]}))
    subprocess.run(command_of(path), shell=True, check=True)
    lines = (tmp_path / "part.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == ARTICLES


@pytest.mark.parametrize(("name", "kind"), [("s.tar", "a tar archive"), ("s.zip", "a zip archive")])
def test_the_command_for_an_archive_unpacks_its_files(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(PROSE)
    shutil.make_archive(str(tmp_path / "s"), name.removeprefix("s."), tmp_path, "in")
    assert kind_of((tmp_path / name).read_bytes()) == kind
    subprocess.run(command_of(tmp_path / name), shell=True, check=True)
    assert (tmp_path / "s-files" / "in" / "a.txt").read_text() == PROSE


def test_a_tar_without_the_mark_of_posix_is_known_by_its_checksum() -> None:
    """The archives of V7 Unix, laid out by hand: ten octal fields, no ``ustar``."""
    fields = (
        b"a.txt".ljust(100, b"\0"),
        b"0000644\0",
        b"0000000\0",
        b"0000000\0",
        b"00000000005\0",
        b"0" * 11 + b"\0",
    )
    rest = b"\0" * 356
    total = sum(b"".join(fields)) + 8 * 32
    block = b"".join(fields) + f"{total:06o}\0 ".encode() + rest
    assert len(block) == 512
    assert kind_of(block + b"text\n".ljust(512, b"\0")) == "a tar archive"
    assert kind_of(block.replace(b"a.txt", b"b.txt")) is None


def test_mds_is_known_by_its_offsets_and_its_description() -> None:
    """A shard as mosaicml-streaming lays it out: number, offsets, JSON, samples."""
    form = json.dumps({"column_names": ["text"], "format": "mds", "version": 2}).encode()
    for samples in (1, 3, 20_000):
        start = 4 * (samples + 2) + len(form)
        offsets = [start + 9 * number for number in range(samples + 1)]
        data = (
            b"".join(number.to_bytes(4, "little") for number in (samples, *offsets))
            + form
            + b"a" * 9 * samples
        )
        assert kind_of(data) == "an MDS shard", samples


def test_a_character_cut_at_the_end_of_the_beginning_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "part"
    for length in range(HEAD_BYTES - 4, HEAD_BYTES + 4):
        path.write_bytes(b"a" * length + "ä€𝄞".encode())
        check_beginning(str(path))
    path.write_bytes(b"a" * 9 + b"\xc3")
    with pytest.raises(InputError, match="byte 0xc3 at offset 9 is not UTF-8"):
        check_beginning(str(path))
    check_beginning(str(path), drops_bad_utf8=True)
