r"""Parser of lists of md5s and file names, in the formats of several programs.

An entry of such a list has one of these forms::

    d41d8cd98f00b204e9800998ecf8427e  a.txt        md5sum; " *a.txt" with --binary, " a.txt" of md5 -r
    \d41d8cd98f00b204e9800998ecf8427e  a\nb.txt    md5sum, for a name with a line end or a backslash
    MD5 (a.txt) = d41d8cd98f00b204e9800998ecf8427e md5 of BSD and macOS, md5sum --tag, openssl md5
    # a comment                                    ; a comment of programs for Windows

In a list that md5sum --zero wrote, each entry ends with a NUL and names are not escaped.
"""

import re
from collections.abc import Iterator

from bertdata.errors import ManifestError

_LINE = re.compile(r"[ \t]*(\\?)([0-9a-fA-F]{32})(?: [ *]|[ \t](?![ *]))(.+)", re.DOTALL)
_TAGGED = re.compile(r"[ \t]*(\\?)MD5 ?\((.+)\)[ \t]*=[ \t]*([0-9a-fA-F]{32})", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "\\": "\\"}


def parse_md5_list(data: bytes, where: str) -> list[tuple[str, str]]:
    """Parse a list of md5s and return the pair (md5, file name) of each entry.

    A ``./`` at the beginning of a name is removed. Names need not be valid UTF-8.

    where: path of the list, for error messages.

    Raises ManifestError for a line that is not an entry, and for a list without entries.
    """
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    try:
        entries = list(_parse_entries(text, where))
    except ManifestError:
        if not _has_invalid_utf8(text):
            raise
        raise ManifestError(
            f"{where}: is not text; expected a dataset directory, a manifest.json or an md5sum file"
        ) from None
    if not entries:
        raise ManifestError(f"{where}: lists no file")
    return entries


def _has_invalid_utf8(text: str) -> bool:
    """Return True if the text was decoded from bytes that are not UTF-8."""
    return any("\udc80" <= character <= "\udcff" for character in text)


def _parse_entries(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield the pair (md5, name) of each entry.

    If the text contains a NUL, each entry ends with a NUL instead of a line end, as md5sum --zero writes it.
    """
    zero = "\0" in text
    for number, line in enumerate(text.split("\0" if zero else "\n"), 1):
        line = line if zero else line.removesuffix("\r")
        if not line.strip() or line.startswith(("#", ";")):
            continue
        if match := _LINE.fullmatch(line):
            escaped, md5, name = match.groups()
        elif match := _TAGGED.fullmatch(line):
            escaped, name, md5 = match.groups()
        else:
            raise ManifestError(
                f"{where}: line {number}: found {line[:60]!r}, expected an md5, two spaces, a name, "
                "or MD5 (NAME) = an md5"
            )
        if escaped and not zero:
            name = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[0]), name)
        yield md5.lower(), _strip_dots(name)


def _strip_dots(name: str) -> str:
    """Return the name without a ``./`` at its beginning, which the program find prints, and without repeated
    slashes.
    """
    if "://" in name or name.startswith("/"):
        return name
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return "/".join(parts) or name
