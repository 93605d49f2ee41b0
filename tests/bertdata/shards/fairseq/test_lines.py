"""fairseq's lines of ids beside the kit's files, and files that do not fit each other."""

import io
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bertdata as face
from bertdata.errors import ShardError, VocabularyError
from bertdata.examples.columns import compute_lengths
from bertdata.shards.fairseq.lines import TYPES, LinesWriter, choose_id_type, open_lines, read_lines
from bertdata.tokens.fairseq_dictionary import parse_dictionary

END = 2


@pytest.fixture(scope="session")
def data_bin(kit: Path) -> Path:
    folder = kit / "encoders" / "fairseq" / "mmap"
    if not folder.is_dir():
        pytest.skip("the kit has no oracles for encoders")
    return folder


def write(folder: Path, rows: list[list[int]], kind: str = "u2") -> Path:
    """A .bin and its .idx of the rows."""
    sink = io.BytesIO()
    writer = LinesWriter(sink=sink, kind=kind)
    for row in rows:
        writer.write(np.array(row, np.int64), np.array([len(row)]))
    (folder / "train.bin").write_bytes(sink.getvalue())
    (folder / "train.idx").write_bytes(writer.index())
    return folder / "train.bin"


def rows_of(path: Path) -> list[list[int]]:
    with path.open("rb") as file:
        lines = read_lines(file, str(path))
    return [row.tolist() for row in np.split(lines.ids, lines.ends[:-1])] if len(lines) else []


def test_the_kits_files_are_written_again(data_bin, tmp_path):
    write(tmp_path, rows_of(data_bin / "train.bin"))
    for name in ("train.bin", "train.idx"):
        assert (tmp_path / name).read_bytes() == (data_bin / name).read_bytes()
    dictionary = parse_dictionary((data_bin / "dict.txt").read_bytes(), "dict.txt")
    assert dictionary.dump() == (data_bin / "dict.txt").read_bytes()
    assert len(dictionary.words) == 3072


@given(
    st.sampled_from(sorted(TYPES.values())), st.lists(st.lists(st.integers(0, 127), max_size=5), max_size=20)
)
def test_lines_of_any_type_come_back(tmp_path_factory, kind, rows):
    folder = tmp_path_factory.mktemp("lines")
    path = write(folder, rows, kind)
    assert rows_of(path) == rows
    size = np.dtype(kind).itemsize
    assert path.stat().st_size == size * sum(map(len, rows))
    head = struct.pack("<QBQ", 1, {name: code for code, name in TYPES.items()}[kind], len(rows))
    assert (folder / "train.idx").read_bytes().startswith(b"MMIDIDX\0\0" + head)


def test_pieces_are_the_lines_in_order(data_bin):
    with (data_bin / "train.bin").open("rb") as file:
        opened = open_lines(file, str(data_bin / "train.bin"))
        lines, pieces = opened.read_all(), list(opened.read_pieces(7))
    assert sum(map(len, pieces)) == 120
    assert np.concatenate([piece.ids for piece in pieces]).tolist() == lines.ids.tolist()
    assert (
        np.concatenate([compute_lengths(piece.ends) for piece in pieces]).tolist()
        == compute_lengths(lines.ends).tolist()
    )


def test_a_file_that_is_cut_while_it_is_read_is_one_error(tmp_path):
    path = write(tmp_path, [[5, END], [END], [6, 7, END], [8, 9, END]])
    with path.open("rb", buffering=0) as file:
        pieces = open_lines(file, str(path)).read_pieces(2)
        assert next(pieces).ids.tolist() == [5, END, END]
        os.truncate(path, 8)
        # The second piece has 6 ids, 12 bytes from byte 6 on.
        with pytest.raises(ShardError, match=f"^{path}: ends at byte 8, expected 10 more: it was cut while"):
            next(pieces)


def test_ids_are_wide_from_65500_words_on():
    assert [choose_id_type(size) for size in (3072, 65_499, 65_500, 250_000)] == ["u2", "u2", "u4", "u4"]


def test_a_directory_is_read_as_blocks_of_one_line(data_bin, tmp_path):
    data = face.open_dataset(data_bin, unverified=True)
    expected = [[0, *row] for row in rows_of(data_bin / "train.bin") if row != [END]]
    assert [example.ids for example in data] == expected
    assert data.layout.objective == "mlm"
    assert data.layout.max_seq_length == max(map(len, expected))


def test_files_to_train_on_are_taken_of_a_directory(tmp_path):
    write(tmp_path, [[5, END], [END], [6, 7, END]])
    for ending in (".bin", ".idx"):
        (tmp_path / f"valid{ending}").write_bytes((tmp_path / f"train{ending}").read_bytes())
    (tmp_path / "dict.txt").write_text("a 3\nb 2\nc 1\nd 1\n")
    assert [example.ids for example in face.open_dataset(tmp_path, unverified=True)] == [
        [0, 5, END],
        [0, 6, 7, END],
    ]
    assert len(face.open_dataset(tmp_path / "valid.bin", unverified=True)) == 2


def changed(data: bytes, place: int, value: bytes) -> bytes:
    return data[:place] + value + data[place + len(value) :]


FAULTS = {
    "magic": (lambda data: changed(data, 0, b"TNTIDX"), "train.idx: begins with b'TNTIDX"),
    "short": (lambda data: data[:12], "train.idx: holds 12 bytes, expected 26 or more"),
    "version": (lambda data: changed(data, 9, b"\2"), "train.idx: its version is 2, expected 1"),
    "floats": (
        lambda data: changed(data, 17, b"\6"),
        "train.idx: the type of its ids is 6, floats; expected one of 1,",
    ),
    "type": (
        lambda data: changed(data, 17, b"\x63"),
        "train.idx: the type of its ids is 99, a type that is not known",
    ),
    "count": (lambda data: changed(data, 18, b"\4"), "train.idx: holds 62 bytes, expected 74 for 4 lines"),
    "cut": (lambda data: data[:-1], "train.idx: holds 61 bytes, expected 62 for 3 lines"),
    "size": (
        lambda data: changed(data, 26, b"\3"),
        "train.bin: holds 12 bytes, expected 14: .*train.idx tells 7 ids of 2 bytes in 3 lines",
    ),
    "negative": (
        lambda data: changed(data, 26, b"\xff" * 4),
        "train.idx: line 0 has -1 ids, expected 0 or more",
    ),
    "place": (lambda data: changed(data, 46, b"\6"), "train.idx: line 1 begins at byte 6, expected 4"),
    "wide": (lambda data: changed(data, 17, b"\4"), "train.bin: holds 12 bytes, expected 24"),
}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_an_index_that_does_not_fit_is_one_error(fault, tmp_path):
    change, told = FAULTS[fault]
    path = write(tmp_path, [[5, END], [END], [6, 7, END]])
    index = tmp_path / "train.idx"
    index.write_bytes(change(index.read_bytes()))
    with pytest.raises(ShardError, match=told):
        list(face.open_dataset(path, unverified=True))


def test_a_missing_file_is_one_error(bertdata, tmp_path):
    path = write(tmp_path, [[5, END]])
    (tmp_path / "train.idx").unlink()
    bertdata("show", path).assert_one_error(
        1, "train.idx is missing, which tells the lines of a .bin of fairseq's"
    )
    (tmp_path / "dict.txt").write_text("a 3\n")
    bertdata("stats", tmp_path).assert_one_error(2, "holds no .bin with its .idx beside")
    path.unlink()
    bertdata("show", path).assert_one_error(2, "train.bin: no such file")


def test_a_line_without_an_end_token_alone_is_refused(tmp_path):
    path = write(tmp_path, [[5, END], [], [6, END]])
    with pytest.raises(ShardError, match="line 1 has no ids, expected an end token at least"):
        list(face.open_dataset(path, unverified=True))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "is empty, expected a symbol and its count a line"),
        (b"a 3\nb\n", "line 2: 'b', expected a symbol, a blank and a count"),
        (b"a x\n", "line 1: 'a x', expected a symbol, a blank and a count"),
        (b"a 3\nb 1\na 2\n", "line 3: the symbol 'a' has an id already"),
        (b"<unk> 3\n", "line 1: the symbol '<unk>' has an id already; fairseq takes another"),
        (b"<mask> 3\na 1\n", "line 1: <mask> stands before other symbols"),
        (b"a " + b"9" * 5000, "line 1: 'a 999.*, expected a symbol, a blank and a count"),
        (b"a 3\n\xff 2\n", "line 2: byte 0xff at offset 4 is not UTF-8"),
    ],
)
def test_a_broken_dictionary_is_named(text, told):
    with pytest.raises(VocabularyError, match=f"^dict.txt: {told}"):
        parse_dictionary(text, "dict.txt")
