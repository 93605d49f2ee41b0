"""A small sound file of each form that ``tests.soak.corpus_fuzz`` damages."""

import bz2
import gzip
import io
import json
import lzma
from functools import lru_cache

import pyarrow
import zstandard
from pyarrow import feather, parquet

from tests.soak.hostile import SHARDS

_RECORDS = [{"id": number, "text": f"Water runs down {number} steps.\nIt is cold."} for number in range(4)]
_TEXT = "\n\n".join(record["text"] for record in _RECORDS).encode()
_PAGE = (
    "<page><title>Page {0}</title><ns>0</ns><id>{0}</id><revision><text>'''Page''' is [[a|{0}]]. "
    "{{{{T|x}}}} It is cold.\n\n== Head ==\n* one\n* two</text></revision></page>\n"
)


SHARD_FORMS = {name.replace(" ", "-"): given for name, given in SHARDS.items()}
"""The forms of shards: for each the function that makes a sound file, and its readers."""


def make_sound_file(form: str) -> bytes:
    """Return the sound file of a form: a shard, or a source of text."""
    return SHARD_FORMS[form][0]() if form in SHARD_FORMS else _make_sources()[form]


@lru_cache
def _make_sources() -> dict[str, bytes]:
    """Return the sources of text by the names of their forms."""
    table = pyarrow.Table.from_pylist(_RECORDS)
    in_parquet, in_arrow = io.BytesIO(), io.BytesIO()
    parquet.write_table(table, in_parquet, compression="snappy")
    feather.write_feather(table, in_arrow, compression="uncompressed")
    rows = [f'{record["id"]},"{record["text"]}"' for record in _RECORDS]
    pages = "".join(_PAGE.format(number) for number in range(1, 4))
    dump = f"<mediawiki><siteinfo><base>https://x.org/wiki/Main</base></siteinfo>\n{pages}</mediawiki>\n"
    article = '<doc id="{0}" url="x" title="T{0}">\nT{0}\n\nWater runs down. It is cold.\n\n</doc>\n'
    return {
        "jsonl": "".join(f"{json.dumps(record)}\n" for record in _RECORDS).encode(),
        "csv": "\n".join(["id,text", *rows, ""]).encode(),
        "tsv": "".join(f"{a}\t{b}\n" for a, b in (("id", "text"), (1, "water runs"), (2, "cold"))).encode(),
        "records.parquet": in_parquet.getvalue(),
        "records.arrow": in_arrow.getvalue(),
        "text.gz": gzip.compress(_TEXT, mtime=0),
        "text.bz2": bz2.compress(_TEXT),
        "text.xz": lzma.compress(_TEXT),
        "text.zst": zstandard.compress(_TEXT),
        "articles": "".join(article.format(number) for number in range(3)).encode(),
        "dump.xml": dump.encode(),
        "dump.xml.bz2": bz2.compress(dump.encode()),
    }
