"""Manifests of all kinds, read by what they say of themselves."""

from bertdata.dataset.binarised_manifest import KIND as BINARISED
from bertdata.dataset.binarised_manifest import BinarisedManifest, parse_binarised_manifest
from bertdata.dataset.manifest import KIND, Manifest, parse_manifest
from bertdata.errors import ManifestError
from bertdata.io.manifest_file import check_version, parse_json
from bertdata.text.manifest import KIND as TEXT
from bertdata.text.manifest import TextManifest, parse_text_manifest
from bertdata.wiki.articles.manifest import KIND as ARTICLES
from bertdata.wiki.articles.manifest import ArticlesManifest, parse_articles_manifest

AnyManifest = Manifest | TextManifest | ArticlesManifest | BinarisedManifest


def parse_any_manifest(data: bytes, where: str) -> AnyManifest:
    """The manifest in ``data``. ManifestError says what does not fit."""
    value = parse_json(data, where)
    kind = value.get("kind", KIND)
    if kind == KIND:
        return parse_manifest(data, where)
    if "format_version" in value:
        check_version(value["format_version"], where)
    if kind == TEXT:
        return parse_text_manifest(data, where)
    if kind == ARTICLES:
        return parse_articles_manifest(data, where)
    if kind == BINARISED:
        return parse_binarised_manifest(data, where)
    raise ManifestError(f"{where}: kind {kind!r}, expected {KIND}, {TEXT}, {ARTICLES} or {BINARISED}")
