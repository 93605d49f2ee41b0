"""Which extracted articles hold escapes: as their manifest says, else as ``--escaped-articles`` tells.

``bertdata extract`` as wikiextractor 3.1.0 writes ``R&amp;D``, as that program does; the program that MLPerf
pins writes ``R&D``. The manifest of the articles names the program.
"""

from collections.abc import Iterator, Sequence

from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.sources.escapes import ESCAPED_AMPERSAND
from bertdata.sources.kinds import ARTICLES, ESCAPED_ARTICLES, are_articles, plain_name
from bertdata.text.reading import open_articles
from bertdata.wiki.articles.manifest import ARTICLES_KIND, ArticlesManifest, parse_articles_manifest
from bertdata.wiki.settings import writes_escapes

_LOOKED_AT_BYTES = 64 << 20
"""Text that is searched for an escape before a run: far more than English or German prose has without one."""

_READ_BYTES = 1 << 20


def with_escapes(files: Sequence[str], kinds: Sequence[str], told: str | None) -> list[str]:
    """Return the kinds, articles that hold escapes as ``ESCAPED_ARTICLES``.

    told: "yes" or "no", of articles without a manifest; None: they are taken as they are. SettingsError for
    a value that contradicts the manifest of all articles, and for one where there are no articles.
    """
    manifests = _ArticlesManifests()
    found: list[str] = []
    untold = False
    for path, kind in zip(files, kinds, strict=True):
        if not are_articles(kind):
            found.append(kind)
            continue
        manifest = manifests.of(path)
        untold |= manifest is None
        escaped = told == "yes" if manifest is None else writes_escapes(manifest.extractor)
        found.append(ESCAPED_ARTICLES if escaped else ARTICLES)
    if told is not None and not untold:
        _refuse_contradiction(files, found, told)
    return found


def _refuse_contradiction(files: Sequence[str], kinds: Sequence[str], told: str) -> None:
    """SettingsError where a manifest tells otherwise of an article, and where there are no articles."""
    if not any(map(are_articles, kinds)):
        raise SettingsError("--escaped-articles goes with extracted articles, of which there are none here")
    for path, kind in zip(files, kinds, strict=True):
        if are_articles(kind) and (kind == ESCAPED_ARTICLES) != (told == "yes"):
            truth = "escaped" if kind == ESCAPED_ARTICLES else "not escaped"
            raise SettingsError(
                f"--escaped-articles {told}: {path}: its {MANIFEST_NAME} names the extractor, whose text is "
                f"{truth}; leave the flag out"
            )


def escape_warnings(files: Sequence[str], kinds: Sequence[str], told: str | None) -> list[str]:
    """Return a warning where articles hold ``&amp;`` and nobody says whether their extractor wrote it.

    The first 64 MiB of articles without a manifest are looked at, up to the first escape.
    """
    if told is not None:
        return []
    manifests = _ArticlesManifests()
    left = _LOOKED_AT_BYTES
    for path, kind in zip(files, kinds, strict=True):
        if not are_articles(kind) or manifests.of(path) is not None:
            continue
        for size, holds_escape in _search(path, left):
            left -= size
            if holds_escape:
                return [
                    f"{path}: holds &amp;, and no {MANIFEST_NAME} says whether the extractor wrote it for &; "
                    "it is kept; --escaped-articles yes makes & of it, and no keeps it without this line"
                ]
        if left <= 0:
            break
    return []


def _search(path: str, most: int) -> Iterator[tuple[int, bool]]:
    """The sizes of the pieces of a file, and whether an escaped ampersand stands in each."""
    before = b""
    with open_articles(path) as file:
        while most > 0 and (data := file.read(_READ_BYTES)):
            most -= len(data)
            yield len(data), ESCAPED_AMPERSAND in before + data
            before = data[-len(ESCAPED_AMPERSAND) :]


class _ArticlesManifests:
    """The manifests beside extracted files. Each is read once."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[ArticlesManifest, frozenset[str]] | None] = {}

    def of(self, path: str) -> ArticlesManifest | None:
        """The manifest that lists the file: of ``DIR`` for ``DIR/AA/wiki_00``, or of the file's directory.

        A file that was compressed after its extraction is known by its name without that ending.
        """
        components = path.split("/")
        for depth in (2, 1):
            directory = _directory(components[:-depth]) if len(components) >= depth else None
            if directory is None:
                continue
            listing = self._listing(directory)
            if listing is not None and plain_name("/".join(components[-depth:])) in listing[1]:
                return listing[0]
        return None

    def _listing(self, directory: str) -> tuple[ArticlesManifest, frozenset[str]] | None:
        if directory not in self._read:
            self._read[directory] = _read_listing(storage.join(directory, MANIFEST_NAME))
        return self._read[directory]


def _directory(components: list[str]) -> str | None:
    """The directory of these components. None for one above a bucket."""
    if not components:
        return "."
    if components[0].endswith(":") and len(components) < 3:
        return None
    return "/".join(components) or "/"


def _read_listing(path: str) -> tuple[ArticlesManifest, frozenset[str]] | None:
    """The manifest at the path and the names in it. None where there is none, or one of something else."""
    try:
        data = storage.read_bytes(path)
    except MissingInputError:
        return None
    if parse_json(data, path).get("kind") != ARTICLES_KIND:
        return None
    manifest = parse_articles_manifest(data, path)
    return manifest, frozenset(entry.name for entry in manifest.files)
