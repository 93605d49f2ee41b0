"""Small dumps for tests, and runs of the original wikiextractor at a fixed time."""

import bz2
import itertools
import subprocess
import sys
from pathlib import Path

from tests.support.dump_pages import HEAD, TAIL, page

_PINNED = """
import sys, time
strftime, moment = time.strftime, time.strptime(sys.argv.pop(1), "%Y-%m-%d")
time.strftime = lambda form, when=moment: strftime(form, when)
from wikiextractor.WikiExtractor import main
main()
"""


def write_dump(path: Path, *pages: str | bytes, head: str = HEAD, tail: str = TAIL) -> Path:
    """Write an uncompressed dump with these pages."""
    parts = [head, *pages, tail]
    path.write_bytes(b"".join(part if isinstance(part, bytes) else part.encode() for part in parts))
    return path


MANY = 100_000
HOSTILE_MARKUP = {
    "one page of many template titles": "<page>{}</page>".format("<title>Template:" * MANY),
    "pages that never end": "<page><title>Template:" * MANY,
    "text in text": page("Nested", "here", number=1).replace("here", "<text>" * MANY),
}
"""XML of dumps, by name, on which a backtracking parser would take hours."""


HOSTILE_ID = "5"
HOSTILE_PAGES = {
    "a power and comments": page("Power", "{{#expr: 2**70 }}" + "<!--" * MANY, number=5),
    "padding without end": page("Padding", "{{padleft:a|100000000}}", number=5),
    "templates that double": "".join(
        [
            *(
                page(f"Template:D{n}", f"{{{{D{n + 1}}}}}" * 4, number=100 + n, namespace=10)
                for n in range(25)
            ),
            page("Template:D25", "doubled", number=125, namespace=10),
            page("Doubling", "{{D0}}", number=5),
        ]
    ),
    "comments that never end": page("Comments", "<!--" * MANY, number=5),
    "references that never end": page("References", "<ref" * MANY, number=5),
    "formulas that never end": page("Formulas", "<math>" * MANY, number=5),
    "links that never end": page("Links", "[http://a" * MANY, number=5),
    "a template's comments": page("Template:Comments", "<!--" * MANY * 3, number=5, namespace=10),
}
"""Pages of HOSTILE_ID, by name, that wikiextractor needs hours for, some with the templates that they use."""


def multistream(xml: bytes, cuts: list[int]) -> bytes:
    """Compress the bytes as several bzip2 streams, divided at the positions ``cuts``."""
    places = [0, *cuts, len(xml)]
    return b"".join(bz2.compress(xml[start:stop]) for start, stop in itertools.pairwise(places))


def wikiextractor_files(dump: Path, directory: Path, day: str, *options: str) -> dict[str, bytes]:
    """Run the original wikiextractor with the clock at midnight of this day. Returns its files."""
    command = [sys.executable, "-c", _PINNED, day, str(dump), "-o", str(directory), "--processes", "1", "-q"]
    subprocess.run([*command, *options], check=True, timeout=300)
    return files(directory)


def files(directory: Path) -> dict[str, bytes]:
    """Return every file below the directory by relative path, except the manifest and MD5SUMS."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in ("manifest.json", "MD5SUMS")
    }
