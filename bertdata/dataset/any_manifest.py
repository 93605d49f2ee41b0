"""Parser of the manifests of all types of directories, such as datasets, parts (text files) and articles.

The manifest's field ``kind`` names the type.
"""

from bertdata.dataset.binarised_manifest import BINARISED_KIND, BinarisedManifest, parse_binarised_manifest
from bertdata.dataset.manifest import DATASET_KIND, Manifest, parse_manifest
from bertdata.errors import ManifestError
from bertdata.io.manifest_file import check_version, parse_json
from bertdata.text.manifest import TEXT_KIND, TextManifest, parse_text_manifest
from bertdata.wiki.articles.manifest import ARTICLES_KIND, ArticlesManifest, parse_articles_manifest

AnyManifest = Manifest | TextManifest | ArticlesManifest | BinarisedManifest


def parse_any_manifest(data: bytes, where: str) -> AnyManifest:
    """Parse a manifest of any type.

    where: path of the manifest, for error messages.

    Raises ManifestError, which says what does not fit.
    """
    value = parse_json(data, where)
    kind = value.get("kind", DATASET_KIND)
    if kind == DATASET_KIND:
        return parse_manifest(data, where)
    if "format_version" in value:
        check_version(value["format_version"], where)
    if kind == TEXT_KIND:
        return parse_text_manifest(data, where)
    if kind == ARTICLES_KIND:
        return parse_articles_manifest(data, where)
    if kind == BINARISED_KIND:
        return parse_binarised_manifest(data, where)
    raise ManifestError(
        f"{where}: kind {kind!r}, expected {DATASET_KIND}, {TEXT_KIND}, {ARTICLES_KIND} or {BINARISED_KIND}"
    )
