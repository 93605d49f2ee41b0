"""The index of the records in a TFRecord file. Graphcore's loader expects it next to each file.

The index has a line for each record, with its byte offset and its size in bytes. The size includes the
record's length and checksums.
"""

from bertdata.shards.framing import FrameCounter

INDEX_ENDING = ".index"


def index_name(shard: str) -> str:
    """Return the name of the index file that belongs to a shard."""
    if shard.endswith(".bin"):
        return shard.removesuffix(".bin") + ".idx"
    return shard.removesuffix(".tfrecord") + INDEX_ENDING


class RecordIndex(FrameCounter):
    """The index of a TFRecord file. It is built by calls of ``feed`` with the file's bytes."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._place = 0

    def count_record(self, size: int) -> None:
        super().count_record(size)
        self._lines.append(f"{self._place} {size}\n")
        self._place += size

    def dump(self) -> bytes:
        """Return the contents of the index file."""
        return "".join(self._lines).encode()
