"""Recognition of binary files by their first bytes: compressed files, archives, tables, shards, documents."""

import re
from dataclasses import dataclass
from itertools import pairwise

from bertdata.io.remedies import suggest_archive_unpacking, suggest_segment_command, suggest_unpacking


@dataclass(frozen=True, kw_only=True, slots=True)
class FileKind:
    """A file format that is not plain text.

    remedy: advice to the user, as a shell command if possible.
    """

    name: str
    remedy: str


_COMPRESSED = (
    (re.compile(rb"\x1f\x8b\x08"), "gzip", ".gz"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd", ".zst"),
    (re.compile(rb"BZh[1-9]1AY&SY"), "bzip2", ".bz2"),
    (re.compile(rb"\xfd7zXZ\x00"), "xz", ".xz"),
    (re.compile(rb"\x04\x22\x4d\x18"), "lz4", ".lz4"),
)
"""The compression formats, each with its signature, the program that unpacks it, and the file name ending."""

_PARQUET = re.compile(rb"PAR1[\x00-\x08\x0e-\x1f]")
_ARROW = re.compile(rb"ARROW1\0\0|\xff\xff\xff\xff[\x01-\xff]|\xff\xff\xff\xff\0[\x01-\xff]")
_SHARD_REMEDY = "give the text that it was made from; bertdata show prints the examples of a shard"
_EXPORT_REMEDY = "export its text from the program that it is from"

_OTHER_FORMATS: tuple[tuple[re.Pattern[bytes], str, str], ...] = (
    (re.compile(rb"\x89HDF\r\n\x1a\n"), "HDF5", _SHARD_REMEDY),
    (re.compile(rb"%PDF-\d"), "PDF", "take its text out: pdftotext"),
    (re.compile(rb"SQLite format 3\0"), "an SQLite database", "write its text as CSV: sqlite3 -csv -header"),
    (re.compile(rb"Obj\x01"), "Avro", "write it as JSON lines or Parquet"),
    (re.compile(rb"ORC[\x00-\x1f\x80-\xff]"), "ORC", "write it as Parquet"),
    (re.compile(rb"\x93NUMPY[\x01-\x03]"), "a NumPy array", "give the text that it was made from"),
    (
        re.compile(rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
        "a document of an older office program",
        _EXPORT_REMEDY,
    ),
    (re.compile(rb"\{\\rtf1"), "RTF", _EXPORT_REMEDY),
)
"""The other formats, each with its signature, its name and the remedy that error messages suggest."""

_TAR_BLOCK = 512
_TAR_ENDINGS = (
    ".tar.gz",
    ".tgz",
    ".tar.bz2",
    ".tbz2",
    ".tar.xz",
    ".txz",
    ".tar.zst",
    ".tzst",
    ".tar",
    ".gz",
    ".bz2",
    ".xz",
    ".zst",
)
_OFFICE = re.compile(rb"word/|xl/|ppt/|\[Content_Types\]\.xml|application/(?:vnd\.oasis|epub)")
_WORD = 4


def find_signature(head: bytes, path: str) -> FileKind | None:
    """Return the format of a file whose first bytes are ``head``, or None if no signature matches."""
    for pattern, program, ending in _COMPRESSED:
        if pattern.match(head):
            return FileKind(name=f"{program} data", remedy=suggest_unpacking(program, ending, path))
    if _PARQUET.match(head):
        return FileKind(name="Parquet", remedy=suggest_segment_command(path))
    if _ARROW.match(head):
        return FileKind(name="Arrow", remedy=suggest_segment_command(path))
    for pattern, name, remedy in _OTHER_FORMATS:
        if pattern.match(head):
            return FileKind(name=name, remedy=remedy)
    return _find_archive(head, path) or _find_shard(head)


def _find_archive(head: bytes, path: str) -> FileKind | None:
    """Return the format of an archive or office document. Returns None if the file is neither."""
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"):
        if _OFFICE.search(head[:4096]):
            return FileKind(name="a document of an office program", remedy=_EXPORT_REMEDY)
        return FileKind(
            name="a zip archive",
            remedy=suggest_archive_unpacking("unzip ARCHIVE -d DIR", path, (".zip", ".gz")),
        )
    if head.startswith(b"7z\xbc\xaf\x27\x1c"):
        return FileKind(
            name="a 7z archive", remedy=suggest_archive_unpacking("7z x ARCHIVE -oDIR", path, (".7z",))
        )
    if head.startswith(b"Rar!\x1a\x07"):
        return FileKind(
            name="a rar archive", remedy=suggest_archive_unpacking("unrar x ARCHIVE DIR/", path, (".rar",))
        )
    if _is_tar(head):
        return FileKind(
            name="a tar archive",
            remedy=suggest_archive_unpacking("tar -xf ARCHIVE -C DIR", path, _TAR_ENDINGS),
        )
    return None


def _is_tar(head: bytes) -> bool:
    """Return True if the bytes begin with a tar header whose checksum is right.

    Old tar archives have no other mark. The checksum is the sum of the header's bytes, in which its own eight
    bytes count as spaces. The header's fields and their widths in bytes, 512 in all::

        name 100, mode 8, uid 8, gid 8, size 12, time 12, checksum 8 ...
    """
    block = head[:_TAR_BLOCK]
    if len(block) < _TAR_BLOCK or not block[0]:
        return False
    written = block[148:156].strip(b" \0")
    if not re.fullmatch(rb"[0-7]{1,7}", written):
        return False
    return int(written, 8) == sum(block[:148]) + 8 * ord(" ") + sum(block[156:])


def _find_shard(head: bytes) -> FileKind | None:
    """Return the format of a shard of training examples. Returns None if the file is no shard."""
    if _is_tfrecord(head):
        return FileKind(name="TFRecord", remedy=_SHARD_REMEDY)
    if _is_mds(head):
        return FileKind(name="an MDS shard", remedy=_SHARD_REMEDY)
    if re.match(rb'\{"shards": \[\{"column_encodings": ', head):
        return FileKind(name="the index of MDS shards", remedy=_SHARD_REMEDY)
    return None


def _is_tfrecord(head: bytes) -> bool:
    """Return True if the bytes begin like a TFRecord file of examples.

    Such a file begins with the length of its first record. The record is a tf.train.Example of exactly that
    length.
    """
    size = int.from_bytes(head[:8], "little")
    if len(head) < 14 or size >= 1 << 32 or head[12] != 0x0A:
        return False
    # The record begins with 8 bytes of length and 4 bytes of CRC. Then comes the Example: the tag 0x0a, and
    # the length of its content as a varint (7 bits per byte, low bits first). ``width`` is the number of
    # bytes of the tag and the varint.
    features = shift = 0
    for width, byte in enumerate(head[13:18], 2):
        features |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return size == width + features
    return False


def _is_mds(head: bytes) -> bool:
    """Return True if the bytes look like an MDS shard: the number of samples, rising offsets, then JSON.

    If there are so many samples that the JSON lies beyond ``head``, only the offsets are checked.
    """
    samples = int.from_bytes(head[:_WORD], "little")
    start = _WORD * (samples + 2)  # the JSON comes after the number and samples + 1 offsets
    if len(head) < 4 * _WORD or not samples:
        return False
    if start < len(head):
        return head[start : start + 1] == b"{" and b'"mds"' in head[start : start + 4096]
    first = int.from_bytes(head[_WORD : 2 * _WORD], "little")
    if not start < first < start + 4096:
        return False
    offsets = [int.from_bytes(head[at : at + _WORD], "little") for at in range(_WORD, len(head) - 3, _WORD)]
    return all(a < b for a, b in pairwise(offsets))
