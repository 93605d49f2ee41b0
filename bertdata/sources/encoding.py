"""Read source files in an encoding other than UTF-8, such as Latin-1, as a stream of UTF-8.

All readers of this package expect UTF-8. So a file in another encoding is converted while it is read, after
it is unpacked. A byte that does not belong to the encoding is not dropped. It becomes a mark: a lone
surrogate, which is not valid UTF-8, so the record that contains it becomes a bad record. The mark stores the
value of the byte for the error message.
"""

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from bertdata.errors import InputError, SettingsError
from bertdata.sources.unpacking import BLOCK_BYTES, BlockFile, open_unpacked

UTF_8 = "utf-8"

_MARKS = "bertdata.marks"
"""Name under which Python knows the error handler that turns undecodable bytes into marks."""
_FIRST_MARK = 0xDC00
"""The mark of byte 0x00. That of byte 0xff is 255 code points later."""
_TRIAL = "A b.\n"


def normalise_encoding(name: str) -> str:
    """Return Python's own name of an encoding, for example ``cp1252`` for ``Windows-1252``.

    Raises SettingsError unless it is an encoding of text that Python can read as a stream.
    """
    try:
        found = codecs.lookup(name).name
        if found == "utf-8-sig":  # the readers of this package drop the byte-order mark themselves
            found = UTF_8
        # str.encode refuses codecs that do not encode text, such as base64. The decoder refuses those that
        # cannot be read block by block, or that know no error handlers.
        if _make_decoder(found).decode(_TRIAL.encode(found), True) == _TRIAL:
            return found
    except (LookupError, UnicodeError, TypeError, ValueError):
        pass
    raise SettingsError(
        f"encoding is {name!r}, expected an encoding of text that Python knows, such as cp1252, utf-16 or "
        "gb18030"
    )


@contextmanager
def open_decoded(path: str, encoding: str) -> Iterator[BinaryIO]:
    """Open the file for reading from start to end, unpacked if it is compressed, as UTF-8.

    encoding: encoding of the file, as ``normalise_encoding`` returns it. A file in UTF-8 is read as it is.
    """
    with open_unpacked(path) as file:
        if encoding == UTF_8:
            yield file
            return
        with io.BufferedReader(BlockFile(_convert(file, encoding, path)), BLOCK_BYTES) as reader:
            yield cast(BinaryIO, reader)


def describe_undecodable(data: bytes, at: int, encoding: str) -> str:
    """Return the words of an error message about a byte that does not belong to the encoding.

    data: bytes as ``open_decoded`` gave them.
    at: position of the first byte that is not valid UTF-8.
    """
    byte, mark = data[at], data[at : at + 3]
    if encoding != UTF_8 and _is_mark(mark):
        byte = ord(mark.decode(errors="surrogatepass")) - _FIRST_MARK
    return f"byte 0x{byte:02x} is not {'UTF-8' if encoding == UTF_8 else encoding}"


def looks_like_utf8(head: bytes) -> bool:
    """Return True if the first bytes of a file contain letters outside ASCII, all encoded in UTF-8.

    A text of some length in another encoding practically never does.
    """
    try:
        codecs.getincrementaldecoder(UTF_8)().decode(head)  # the last letter may be cut
    except UnicodeDecodeError:
        return False
    return not head.isascii()


def _convert(file: BinaryIO, encoding: str, path: str) -> Iterator[bytes]:
    """Yield the content of a file in blocks of UTF-8. Raises InputError if the decoder gives up.

    path: path of the file, for errors.
    """
    decoder = _make_decoder(encoding)
    try:
        while block := file.read(BLOCK_BYTES):
            yield decoder.decode(block).encode(UTF_8, "surrogatepass")
        yield decoder.decode(b"", True).encode(UTF_8, "surrogatepass")
    # Undecodable bytes do not lead here. The decoders utf-16 and utf-32 refuse a file without a byte-order
    # mark (BOM).
    except UnicodeError as error:
        order = f"; say the order of its bytes: --encoding {encoding}-le, or {encoding}-be"
        remedy = order if "BOM" in str(error) else ""
        raise InputError(f"{path}: is not {encoding}: {error}{remedy}") from None


def _make_decoder(encoding: str) -> codecs.IncrementalDecoder:
    """Return a decoder that turns undecodable bytes into marks."""
    codecs.register_error(_MARKS, _mark_undecodable)
    return codecs.getincrementaldecoder(encoding)(_MARKS)


def _mark_undecodable(error: UnicodeError) -> tuple[str, int]:
    """Return the marks of bytes that cannot be decoded, and the position after these bytes."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(chr(_FIRST_MARK + byte) for byte in wrong), error.end


def _is_mark(data: bytes) -> bool:
    """Return True if the bytes are a mark, which UTF-8 would write as ed b0 80 to ed b3 bf."""
    return len(data) == 3 and data[0] == 0xED and 0xB0 <= data[1] <= 0xB3 and 0x80 <= data[2] <= 0xBF
