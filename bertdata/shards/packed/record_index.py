"""Index of a TFRecord file's records, as Graphcore's loader wants it beside each file.

One line a record: the place of its first byte and the number of its bytes, frame included.
"""

from bertdata.shards.framing import FrameCounter

INDEX_ENDING = ".index"


def index_name(shard: str) -> str:
    """The name of a shard's index: its own with another ending."""
    if shard.endswith(".bin"):
        return shard.removesuffix(".bin") + ".idx"
    return shard.removesuffix(".tfrecord") + INDEX_ENDING


class RecordIndex(FrameCounter):
    """The index of a file, from its bytes as they are written."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._place = 0

    def open_record(self, size: int) -> None:
        super().open_record(size)
        self._lines.append(f"{self._place} {size}\n")
        self._place += size

    def dump(self) -> bytes:
        """The bytes of the index."""
        return "".join(self._lines).encode()
