"""Recognise the format of a source file from its first bytes, unpacked if the file is compressed.

JSON, Parquet, Arrow and articles have recognisable bytes. CSV and TSV have none, so their names decide. A
file without recognisable bytes whose name ends in ``.txt`` is plain text. An archive, a table or a shard is
never mistaken for text: the error names its format and says what to do.
"""

import re
import shlex
from dataclasses import dataclass

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.file_kind import BOM, HEAD_BYTES, find_kind
from bertdata.io.remedies import suggest_unpacking
from bertdata.io.signatures import FileKind, find_signature
from bertdata.sources.arrow_records import FILE_MAGIC, STREAM_MARK
from bertdata.sources.article_records import ARTICLE_START
from bertdata.sources.encoding import UTF_8, open_decoded
from bertdata.sources.json_lines import parse_line
from bertdata.sources.kinds import ARTICLES, BLOCKS, TEXT, strip_packing_ending
from bertdata.sources.unpacking import detect_packing, open_unpacked

_PLAIN = (TEXT, BLOCKS)
_TABLES = ("parquet", "arrow")
_DUMP = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<mediawiki[\s>]")
_NUL_BYTES = 8000  # number of bytes searched for a NUL, which shows a binary file (git uses the same number)
_ENDINGS = {"gzip": ".gz", "bzip2": ".bz2", "xz": ".xz", "zstd": ".zst"}
_ENCODINGS = {"UTF-16": "utf-16", "UTF-16LE": "utf-16-le", "UTF-16BE": "utf-16-be", "UTF-32": "utf-32"}
"""Python's name of each encoding that a file's first bytes show, by the name that ``find_kind`` gives it."""
_NAMES = {
    "jsonl": "JSON, one object a line",
    "json": "JSON",
    "parquet": "Parquet",
    "arrow": "Arrow",
    ARTICLES: "extracted articles",
}


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first bytes of a file, unpacked if the file is compressed.

    packing: name of the compression. None: the file is not compressed.
    """

    path: str
    head: bytes
    packing: str | None

    @property
    def text(self) -> bytes:
        """The first bytes without a byte-order mark."""
        return self.head.removeprefix(BOM)

    @property
    def is_whole(self) -> bool:
        """True if ``head`` holds the whole file."""
        return len(self.head) < HEAD_BYTES

    @property
    def is_empty(self) -> bool:
        """True if the file holds only white space."""
        return self.is_whole and not self.text.strip()


def read_beginning(path: str, encoding: str = UTF_8) -> Beginning:
    """Read the first bytes of the file, unpacked if the file is compressed.

    encoding: encoding of the file, as ``normalise_encoding`` returns it. The bytes of text are converted from
        it to UTF-8. Those of a file that its signature shows to be no text, such as Parquet, are not.
    """
    with storage.open_input(path) as file:
        packing = detect_packing(file.read(6))
    with open_unpacked(path) as unpacked:
        head = unpacked.read(HEAD_BYTES)
    if encoding != UTF_8 and find_signature(head, path) is None:
        with open_decoded(path, encoding) as text:
            head = text.read(HEAD_BYTES)
    return Beginning(path, head, packing)


def recognise(path: str) -> str | None:
    """Return the kind of the file, or None if neither its bytes nor its name determine a supported kind."""
    return recognise_kind(read_beginning(path))


def recognise_kind(begin: Beginning) -> str | None:
    """Return the kind (a key of SOURCE_KINDS) that a file's first bytes and its name show, or None."""
    # Go from the most certain sign to the least: first magic numbers, then text that starts like articles or
    # JSON, then other known formats, and finally the file's name.
    head = begin.head
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(FILE_MAGIC) or (head.startswith(STREAM_MARK) and head[4:8] != b"\0\0\0\0"):
        return "arrow"
    if begin.text.lstrip().startswith(ARTICLE_START):
        return ARTICLES
    if _is_json_lines(begin.text):
        return "jsonl"
    other = recognise_other_kind(begin)
    if other is not None:
        return {"JSON": "json", "JSON, one object a line": "jsonl"}.get(other.name)
    name = strip_packing_ending(begin.path)
    if name.endswith((".csv", ".tsv")):
        return name[-3:]
    is_plain = not is_binary(head) and not begin.is_empty and not has_article_start(begin)
    return BLOCKS if name.endswith(".txt") and is_plain else None


def has_article_start(begin: Beginning) -> bool:
    """Return True if a line in the first bytes starts like an article of WikiExtractor."""
    return begin.text.startswith(ARTICLE_START) or b"\n" + ARTICLE_START in begin.text


def recognise_other_kind(begin: Beginning) -> FileKind | None:
    """Return the name of a format that is not plain text, with advice for the user.

    Returns None if no such format is recognised.
    """
    if _DUMP.match(begin.text):
        remedy = f"extract its articles: bertdata extract {shlex.quote(begin.path)} --output articles"
        return FileKind(name="a MediaWiki dump", remedy=remedy)
    return find_kind(begin.head, begin.path, whole=begin.is_whole)


def is_binary(head: bytes) -> bool:
    """Return True if the first bytes contain a NUL, which text never contains."""
    return b"\0" in head[:_NUL_BYTES]


def _is_json_lines(head: bytes) -> bool:
    """Return True if the first non-blank line is a JSON object, or the start of a long JSON object."""
    lines = head.split(b"\n")
    first = next((line.strip() for line in lines if line.strip()), b"")
    if not first.startswith(b"{"):
        return False
    try:
        return isinstance(parse_line(first), dict) and first != b"{}"
    except ValueError:
        pass
    if len(head) >= HEAD_BYTES - len(BOM) and len(lines) == 1:
        return find_kind(head, "", whole=False) is not None
    # The first line is damaged, but later lines can still show that the file is JSON lines.
    others = [line for line in lines[1:-1] if line.strip().startswith(b'{"')]
    return len(others) > 1 and any(map(_is_object, others))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(parse_line(line), dict)
    except ValueError:
        return False


def make_unknown_kind_error(begin: Beginning) -> InputError:
    """Return the error for a file whose kind is unknown."""
    other = recognise_other_kind(begin)
    if other is not None:
        return _make_kind_error(begin, other.name, "text or records", _suggest_remedy(begin, other))
    if is_binary(begin.head):
        return _make_kind_error(begin, "binary data (it holds NUL)", "text or records", "")
    return InputError(
        f"{begin.path}: its bytes do not tell its kind; name it: --input-kind {BLOCKS} (plain text, blank "
        f"lines between documents), {TEXT} (a file a document), or another"
    )


def check_kind(begin: Beginning, kind: str, *, as_is: bool) -> None:
    """Raise InputError if a file's first bytes clearly do not fit the kind that the user chose.

    as_is: accept any bytes as plain text.
    """
    if begin.is_empty:
        return
    found = recognise_kind(begin)
    if kind in _PLAIN:
        if not as_is:
            _check_plain_text(begin, found)
        return
    if found == kind or (found is None and kind not in _TABLES and recognise_other_kind(begin) is None):
        return
    if found in _TABLES or kind in _TABLES or (found, kind) == ("json", "jsonl"):
        what = "no file of that kind" if found is None else found
        raise InputError(f"{begin.path}: looks like {what}, expected {kind}")
    if found is None and (other := recognise_other_kind(begin)) is not None:
        raise _make_kind_error(begin, other.name, kind, _suggest_remedy(begin, other))
    if kind in ("csv", "tsv") and found in ("json", "jsonl", ARTICLES):
        raise InputError(f"{begin.path}: looks like {found}, expected {kind}")


def _check_plain_text(begin: Beginning, found: str | None) -> None:
    """Raise InputError if a file that should be plain text has another kind or is binary.

    found: kind that was recognised. None: no kind was recognised.
    """
    as_is = "or take it for text as it is: --as-is"
    if found in _NAMES:
        remedy = f"leave --input-kind out to read its texts, {as_is}"
        raise _make_kind_error(begin, _NAMES[found], "plain text", remedy)
    if (other := recognise_other_kind(begin)) is not None:
        raise _make_kind_error(begin, other.name, "plain text", _suggest_remedy(begin, other))
    if is_binary(begin.head):
        raise _make_kind_error(begin, "binary data (it holds NUL)", "plain text", as_is.removeprefix("or "))


def _make_kind_error(begin: Beginning, found: str, expected: str, remedy: str) -> InputError:
    """Return the error for a file that is of another kind than the user chose."""
    packed = "" if begin.packing is None else f" within {begin.packing} data"
    return InputError(
        f"{begin.path}: looks like {found}{packed}, expected {expected}{f'; {remedy}' if remedy else ''}"
    )


def _suggest_remedy(begin: Beginning, kind: FileKind) -> str:
    """Return advice for the user on what to do with a file of this format.

    For a compressed file, the advice starts with unpacking. It does not for tar archives, since tar unpacks
    them itself, nor for dumps, since ``bertdata extract`` reads compressed dumps. A file in UTF-16 or UTF-32
    is not to be converted, since the readers of records do that.
    """
    if kind.name in _ENCODINGS:
        return f"name its encoding: --encoding {_ENCODINGS[kind.name]}"
    if begin.packing is None or kind.name == "a tar archive" or kind.name == "a MediaWiki dump":
        return kind.remedy
    unpacked = suggest_unpacking(begin.packing, _ENDINGS[begin.packing], begin.path)
    plain = find_kind(begin.head, strip_packing_ending(begin.path), whole=begin.is_whole)
    return unpacked if plain is None else f"{unpacked}; then {plain.remedy}"
