"""The index of a TFRecord file's records, which Graphcore's loader expects next to each file.

The index has a line per record: the record's byte offset and its size in bytes, including length and
checksums.
"""

from bertdata.shards.framing import FrameCounter

INDEX_ENDING = ".index"


def index_name(shard: str) -> str:
    """Return the name of a shard's index file."""
    if shard.endswith(".bin"):
        return shard.removesuffix(".bin") + ".idx"
    return shard.removesuffix(".tfrecord") + INDEX_ENDING


class RecordIndex(FrameCounter):
    """Index of a TFRecord file, built while ``feed`` is called with the file's bytes."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._place = 0

    def open_record(self, size: int) -> None:
        super().open_record(size)
        self._lines.append(f"{self._place} {size}\n")
        self._place += size

    def dump(self) -> bytes:
        """Return the contents of the index file."""
        return "".join(self._lines).encode()
