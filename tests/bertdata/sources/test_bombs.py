"""Small files that hold very much: what is read of them is bounded by the bytes that it takes in memory."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from bertdata.errors import InputError
from bertdata.sources import arrow_records, parquet_records, table_records
from bertdata.sources.kinds import SOURCE_KINDS
from bertdata.sources.records import Record
from bertdata.sources.settings import RecordSettings
from bertdata.text.selection import evaluation_texts
from tests.support.memory import peak_bytes

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

SETTINGS = RecordSettings(text_field="text", id_field="id")
LONG = 200_000


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_records, "BATCH_BYTES", 1_000_000)
    monkeypatch.setattr(parquet_records, "_SHARED_BYTES", 50_000)
    for module in (arrow_records, parquet_records):
        monkeypatch.setattr(module, "PIECE_BYTES", 1_000_000)


def repeated(rows: int) -> Any:
    """Rows of three texts, one of them long, and one row without a text."""
    indices = pa.array([number % 3 for number in range(rows - 1)] + [None], pa.int32())
    texts = pa.array(["short", "x" * LONG, "ä" * LONG])
    numbers = [str(number) for number in range(rows)]
    return pa.table({"text": pa.DictionaryArray.from_arrays(indices, texts), "id": numbers})


def write_arrow(table: Any, path: Path) -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema, options=options) as stream:
        stream.write_table(table)


def write_shared(table: Any, path: Path) -> None:
    """Parquet whose dictionary is as long as it likes, read as plain texts."""
    plain = table.set_column(0, "text", table.column(0).cast(pa.string()))
    parquet.write_table(plain, path, compression="zstd", dictionary_pagesize_limit=1 << 30)


def write_dictionary(table: Any, path: Path) -> None:
    parquet.write_table(table, path, compression="zstd")


def write_differences(table: Any, path: Path) -> None:
    plain = table.set_column(0, "text", table.column(0).cast(pa.string()))
    encoding = {"text": "DELTA_BYTE_ARRAY"}
    parquet.write_table(plain, path, compression="zstd", use_dictionary=False, column_encoding=encoding)


WRITERS = {
    "a.arrow": write_arrow,
    "shared.parquet": write_shared,
    "dictionary.parquet": write_dictionary,
    "differences.parquet": write_differences,
}


def texts_of(path: Path) -> list[tuple[str, str | None]]:
    """The id and the text of each record, shortened to its length and ends."""
    found: list[tuple[str, str | None]] = []
    kind = path.suffix.removeprefix(".")
    for piece in SOURCE_KINDS[kind].pieces(str(path), SETTINGS):
        for record in piece.read(SETTINGS).records:
            text = record.text if isinstance(record, Record) else ""
            found.append((str(record.id), f"{len(text)}{text[:1]}{text[-1:]}"))
    return found


@pytest.mark.parametrize("name", WRITERS)
def test_a_text_that_many_rows_share_takes_memory_for_a_few_rows_only(name: str, tmp_path: Path) -> None:
    """300 rows of 30 MB together in a file of a few kilobytes."""
    path = tmp_path / name
    WRITERS[name](repeated(300), path)
    assert path.stat().st_size < 20_000
    found: list[tuple[str, str | None]] = []
    held = peak_bytes(lambda: found.extend(texts_of(path)))
    assert held < 8_000_000
    texts = ["5st", f"{LONG}xx", f"{LONG}ää"]
    assert found == [*((str(n), texts[n % 3]) for n in range(299)), ("299", "0")]


def test_a_row_group_of_too_many_characters_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_records, "_SHARED_BYTES", 1 << 21)
    monkeypatch.setattr(parquet_records, "_MOST_GROUP_CHARACTERS", 5_000_000)
    path = tmp_path / "a.parquet"
    write_shared(repeated(300), path)
    with pytest.raises(
        InputError, match="row group 0: its texts have more than 5000000 characters, .* fewer"
    ):
        texts_of(path)


@pytest.mark.parametrize("name", ["a.json.gz", "a.jsonl.gz"])
def test_a_json_value_that_is_too_large_is_refused_before_it_is_parsed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation_texts, "MOST_JSON_BYTES", 100_000)
    path = tmp_path / name
    begin, end = (b"[", b"1]") if name == "a.json.gz" else (b'{"text": [', b"1]}\n")
    path.write_bytes(gzip.compress(begin + b'["a"],' * 2_000_000 + end))
    refused: list[str] = []

    def read() -> None:
        try:
            list(evaluation_texts.read_evaluation_texts(str(path)))
        except InputError as error:
            refused.append(str(error))

    assert peak_bytes(read) < 16_000_000
    assert "more than 100000 bytes" in refused[0]
