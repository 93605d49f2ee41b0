"""The dumps in the reference kit, and the output of the pinned WikiExtractor for them."""

import bz2
import json
import lzma
from pathlib import Path

FOLDERS = {False: "pinned", True: "pinned-with-templates"}
"""Folders of the original output, by whether templates were expanded."""

PINNED = [
    *[(name, templates) for name in ("smallwiki", "torture-11", "torture-12") for templates in (False, True)],
    ("enwiki-p10-p30302-shortened", False),
]
"""Dumps with output of the pinned program, and whether templates were expanded."""


def read_dump(kit: Path, name: str) -> bytes:
    r"""Return the XML of a dump, with all line ends as \n."""
    if name.startswith("torture"):
        return lzma.decompress((kit / "wiki" / "dumps" / f"{name}.xml.xz").read_bytes())
    packed = {"smallwiki": "ltgwiki-smallwiki"}.get(name, name)
    return bz2.decompress((kit / "dump" / f"{packed}.xml.bz2").read_bytes()).replace(b"\r\n", b"\n")


def read_pinned(kit: Path, name: str, *, templates: bool) -> bytes:
    """Return all articles that the pinned WikiExtractor writes for the dump, one after another."""
    files = sorted((kit / "wiki" / FOLDERS[templates] / name).rglob("wiki_*.xz"))
    return b"".join(lzma.decompress(file.read_bytes()) for file in files)


def read_snippets(kit: Path, *, templates: bool) -> tuple[bytes, bytes]:
    """Return a dump that covers every construct, and the pinned WikiExtractor's output for it."""
    dump = (kit / "wiki" / "snippets.xml").read_bytes()
    snippets = json.loads((kit / "wiki" / "snippets.json").read_text(encoding="utf-8"))["snippets"]
    key = FOLDERS[templates].replace("-", "_")
    return dump, "".join(snippet[key] for snippet in snippets if snippet[key]).encode()
