"""The same documents in every supported file format."""

import bz2
import csv
import gzip
import io
import json
import lzma
import random
from collections.abc import Callable, Sequence
from pathlib import Path

WORDS = ["river", "stone", "Bäume", "light", "harbour", "gate", "麦田", "letter", "window", "orchard"]


def make_documents(number: int, seed: int = 5) -> list[str]:
    """Return documents with several lines of several sentences.

    Some words contain quotes, commas and tabs.
    """
    rng = random.Random(seed)

    def sentence() -> str:
        words = [rng.choice(WORDS) for _ in range(rng.randrange(2, 9))]
        return f'The {" ".join(words)} said "so", and\tleft.'

    return [
        "\n".join(
            " ".join(sentence() for _ in range(rng.randrange(1, 6))) for _ in range(rng.randrange(1, 4))
        )
        for _ in range(number)
    ]


def as_blocks(documents: Sequence[str]) -> bytes:
    return "\n\n".join(documents).encode()


def as_articles(documents: Sequence[str]) -> bytes:
    """Return the documents in WikiExtractor's format."""
    frames = (
        f'<doc id="{number}" url="?curid={number}" title="T {number}">\nT {number}\n\n{text}\n\n</doc>\n'
        for number, text in enumerate(documents)
    )
    return "".join(frames).encode()


def as_json_lines(documents: Sequence[str]) -> bytes:
    lines = [json.dumps({"id": n, "text": text}, ensure_ascii=n % 2 == 0) for n, text in enumerate(documents)]
    return "\n".join(lines).encode()


def as_delimited(documents: Sequence[str]) -> bytes:
    file = io.StringIO(newline="")
    rows = csv.writer(file)
    rows.writerow(["text"])
    rows.writerows([text] for text in documents)
    return file.getvalue().encode()


def as_zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def as_xz(data: bytes) -> bytes:
    return lzma.compress(data, preset=0)


def as_parquet(documents: Sequence[str], group: int = 40) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    file = io.BytesIO()
    table = pa.table({"id": list(range(len(documents))), "text": list(documents)})
    parquet.write_table(table, file, row_group_size=group)
    return file.getvalue()


def as_arrow(documents: Sequence[str], *, stream: bool = True) -> bytes:
    import pyarrow as pa

    file, table = io.BytesIO(), pa.table({"text": list(documents)})
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(file, table.schema) as writer:
        writer.write_table(table, 30)
    return file.getvalue()


FILES: dict[str, Callable[[Sequence[str]], bytes]] = {
    "a.jsonl": as_json_lines,
    "a.jsonl.gz": lambda documents: gzip.compress(as_json_lines(documents)),
    "a.jsonl.zst": lambda documents: as_zstd(as_json_lines(documents)),
    "a.jsonl.bz2": lambda documents: bz2.compress(as_json_lines(documents)),
    "a.jsonl.xz": lambda documents: lzma.compress(as_json_lines(documents)),
    "wiki_00": as_articles,
    "wiki_00.bz2": lambda documents: bz2.compress(as_articles(documents)),
    "a.txt": as_blocks,
    "a.txt.zst": lambda documents: as_zstd(as_blocks(documents)),
    "a.csv": as_delimited,
    "a.csv.gz": lambda documents: gzip.compress(as_delimited(documents)),
    "a.parquet": as_parquet,
    "a.parquet.zst": lambda documents: as_zstd(as_parquet(documents)),
    "a.arrow": as_arrow,
    "a.file.arrow": lambda documents: as_arrow(documents, stream=False),
    "a.arrow.gz": lambda documents: gzip.compress(as_arrow(documents)),
}
"""Files by name. Those of plain text and of articles need ``--input-kind``."""


def write(directory: Path, name: str, documents: Sequence[str]) -> Path:
    """Write the documents to a file. The file name determines the format."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_bytes(FILES[name](documents))
    return path


def kind_of(name: str) -> str | None:
    """Return the value of ``--input-kind`` that a file of this name needs, or None."""
    if "wiki_" in name:
        return "articles"
    return "blocks" if ".txt" in name else None
