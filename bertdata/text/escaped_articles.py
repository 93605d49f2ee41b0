"""Find out which extracted articles contain escapes such as ``&amp;`` for ``&``.

wikiextractor 3.1.0 writes ``R&amp;D``, and so does ``bertdata extract`` when it reproduces this version. The
version that MLPerf uses writes ``R&D``. The manifest of the articles names the version. For articles without
a manifest, the user can tell with ``--escaped-articles`` whether they are escaped.
"""

from collections.abc import Iterator, Sequence

from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.sources.escapes import ESCAPED_AMPERSAND
from bertdata.sources.kinds import ARTICLES, ESCAPED_ARTICLES, is_articles_kind, strip_packing_ending
from bertdata.text.reading import open_articles
from bertdata.wiki.articles.manifest import ARTICLES_KIND, ArticlesManifest, parse_articles_manifest
from bertdata.wiki.settings import writes_escapes

_SEARCHED_BYTES = 64 << 20
"""Number of bytes of text that are searched for an escape before a run.

Unescaped English or German prose of this size practically never contains ``&amp;``.
"""

_READ_BYTES = 1 << 20


def mark_escaped_articles(files: Sequence[str], kinds: Sequence[str], answer: str | None) -> list[str]:
    """Return each file's kind, with ``ARTICLES`` changed to ``ESCAPED_ARTICLES`` where the text is escaped.

    Raises SettingsError if the answer contradicts the manifests of all articles, or if there are no articles.

    answer: the user's answer "yes" or "no" to whether articles without a manifest are escaped. None: the user
        has not answered, and the text of these articles is not changed.
    """
    manifests = _ArticlesManifests()
    found: list[str] = []
    unanswered = False
    for path, kind in zip(files, kinds, strict=True):
        if not is_articles_kind(kind):
            found.append(kind)
            continue
        manifest = manifests.find(path)
        unanswered |= manifest is None
        escaped = answer == "yes" if manifest is None else writes_escapes(manifest.extractor)
        found.append(ESCAPED_ARTICLES if escaped else ARTICLES)
    if answer is not None and not unanswered:
        _refuse_contradiction(files, found, answer)
    return found


def _refuse_contradiction(files: Sequence[str], kinds: Sequence[str], answer: str) -> None:
    """Raise SettingsError if a manifest contradicts the user's answer, or if there are no articles.

    answer: the user's answer "yes" or "no" to whether the articles are escaped.
    """
    if not any(map(is_articles_kind, kinds)):
        raise SettingsError("--escaped-articles goes with extracted articles, of which there are none here")
    for path, kind in zip(files, kinds, strict=True):
        if is_articles_kind(kind) and (kind == ESCAPED_ARTICLES) != (answer == "yes"):
            truth = "escaped" if kind == ESCAPED_ARTICLES else "not escaped"
            raise SettingsError(
                f"--escaped-articles {answer}: {path}: its {MANIFEST_NAME} names the extractor, whose text "
                f"is {truth}; leave the flag out"
            )


def find_escape_warnings(files: Sequence[str], kinds: Sequence[str], answer: str | None) -> list[str]:
    """Return a warning if articles contain ``&amp;`` and it is unknown whether it is an escape.

    It is known if a manifest lists the articles, or if the user has answered. Of articles without a manifest,
    at most the first 64 MiB are searched.

    answer: the user's answer "yes" or "no", None if the user has not answered.
    """
    if answer is not None:
        return []
    manifests = _ArticlesManifests()
    left = _SEARCHED_BYTES
    for path, kind in zip(files, kinds, strict=True):
        if not is_articles_kind(kind) or manifests.find(path) is not None:
            continue
        for size, holds_escape in _search_escapes(path, left):
            left -= size
            if holds_escape:
                return [
                    f"{path}: holds &amp;, and no {MANIFEST_NAME} says whether the extractor wrote it for &; "
                    "it is kept; --escaped-articles yes makes & of it, and no keeps it without this line"
                ]
        if left <= 0:
            break
    return []


def _search_escapes(path: str, most: int) -> Iterator[tuple[int, bool]]:
    """Read up to ``most`` bytes of a file, and yield each block's size and whether it contains ``&amp;``."""
    before = b""
    with open_articles(path) as file:
        while most > 0 and (data := file.read(_READ_BYTES)):
            most -= len(data)
            yield len(data), ESCAPED_AMPERSAND in before + data
            before = data[-len(ESCAPED_AMPERSAND) :]


class _ArticlesManifests:
    """Cache of the manifests of extracted articles, so that each manifest is read only once."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[ArticlesManifest, frozenset[str]] | None] = {}

    def find(self, path: str) -> ArticlesManifest | None:
        """Return the manifest that lists the file. Returns None if there is no such manifest.

        For the file ``DIR/AA/wiki_00``, a manifest is first looked for in ``DIR`` and then in ``DIR/AA``. A
        manifest lists the uncompressed name, so an ending such as ``.gz`` is removed before.
        """
        # "out/AA/wiki_00": first look in "out" for a manifest that lists "AA/wiki_00", then in "out/AA" for a
        # manifest that lists "wiki_00".
        components = path.split("/")
        for depth in (2, 1):
            directory = _join_directory(components[:-depth]) if len(components) >= depth else None
            if directory is None:
                continue
            listing = self._load_listing(directory)
            if listing is not None and strip_packing_ending("/".join(components[-depth:])) in listing[1]:
                return listing[0]
        return None

    def _load_listing(self, directory: str) -> tuple[ArticlesManifest, frozenset[str]] | None:
        """Return the directory's manifest of articles and the file names that it lists, read only once."""
        if directory not in self._read:
            self._read[directory] = _read_listing(storage.join(directory, MANIFEST_NAME))
        return self._read[directory]


def _join_directory(components: list[str]) -> str | None:
    """Join path components into a directory's path. Returns None for a URL without a bucket."""
    if not components:
        return "."
    if components[0].endswith(":") and len(components) < 3:
        return None
    return "/".join(components) or "/"


def _read_listing(path: str) -> tuple[ArticlesManifest, frozenset[str]] | None:
    """Read a manifest of articles and the names of the files that it lists.

    Returns None if the file is missing or is the manifest of something else.
    """
    try:
        data = storage.read_bytes(path)
    except MissingInputError:
        return None
    if parse_json(data, path).get("kind") != ARTICLES_KIND:
        return None
    manifest = parse_articles_manifest(data, path)
    return manifest, frozenset(entry.name for entry in manifest.files)
