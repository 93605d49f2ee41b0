"""A compressed shard is decompressed up to the bytes that it may have, and no further."""

import bz2
import gzip
from pathlib import Path
from typing import Any

import pytest

from bertdata.errors import ShardError
from bertdata.shards.mds import container
from bertdata.shards.mds.compression import decompress, find_compression
from tests.support.memory import peak_bytes

ENDINGS = ["gz", "bz2", "zstd", "br", "snappy"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_data_of_just_the_limit_are_whole_and_one_byte_more_is_refused(ending: str) -> None:
    pytest.importorskip("cramjam")
    data = bytes(range(256)) * 40
    packed = find_compression(ending).compress(data)
    assert decompress(packed, ending, "a.mds", len(data)) == data
    with pytest.raises(ShardError, match=f"a.mds: holds more than {len(data) - 1} bytes"):
        decompress(packed, ending, "a.mds", len(data) - 1)


@pytest.mark.parametrize("ending", ENDINGS)
def test_damage_is_told_from_too_much(ending: str) -> None:
    pytest.importorskip("cramjam")
    packed = find_compression(ending).compress(bytes(range(256)) * 40)
    with pytest.raises(ShardError, match="cannot be decompressed"):
        decompress(b"\xff" + packed[1:-9], ending, "a.mds", 1 << 20)


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_zeros_without_end_take_no_memory(
    bertdata: Any, ending: str, pack: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "MAX_UNLISTED_BYTES", 1_000_000)
    path = tmp_path / f"shard.00000.mds.{ending}"
    path.write_bytes(pack((1).to_bytes(4, "little") + b"\0" * 100_000_000))
    outcomes: list[Any] = []
    assert peak_bytes(lambda: outcomes.append(bertdata("show", path))) < 30_000_000
    outcomes[0].assert_one_error(1, "holds more than 1000000 bytes when it is decompressed")
