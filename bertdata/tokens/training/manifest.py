"""Manifest of a trained vocabulary: a JSON file with settings, versions of packages, and the vocabulary's
md5.

The manifest lies next to the vocabulary, because the formats of vocabularies have no room for such data. It
contains no time, host or path. Training again with the same settings therefore gives the same manifest. Its
fields are described in ``schemas/vocabulary_manifest.json``. No other record cites it, so it ends with the
md5 of its other fields, by which a changed value is found.
"""

from importlib import import_module
from typing import Any, NamedTuple

from bertdata.errors import ManifestError
from bertdata.io.file_check import FileEntry, compute_md5, dump_entries, parse_entries
from bertdata.io.manifest_file import FORMAT_VERSION, dump_json, parse_checked
from bertdata.tokens.training.special_tokens import Kind
from bertdata.tokens.training.word_counts import WordCounts

KIND = "vocabulary"


class VocabularyManifest(NamedTuple):
    """Manifest that ``bertdata train-vocab`` writes next to a vocabulary.

    settings: settings of the training.
    versions: versions of the packages that trained the vocabulary, by package.
    text: numbers of words in the training text, by name.
    file: name, size and md5 of the vocabulary file.
    inputs: name, size and md5 of each text file, sorted by name. The order of the texts does not change the
        vocabulary. Empty in manifests of earlier versions.
    is_sealed: whether the manifest has the md5 of its other fields. False for earlier versions.
    """

    settings: dict[str, Any]
    versions: dict[str, str]
    text: dict[str, int]
    file: FileEntry
    inputs: tuple[FileEntry, ...] = ()
    is_sealed: bool = True

    def dump(self) -> bytes:
        """Return the manifest as JSON."""
        values = {
            "format_version": FORMAT_VERSION,
            "kind": KIND,
            "settings": self.settings,
            "versions": self.versions,
            "text": self.text,
            **({"inputs": dump_entries(self.inputs)} if self.inputs else {}),
            "file": self.file._asdict(),
        }
        return dump_json({**values, "md5": _compute_own_md5(values)} if self.is_sealed else values)


def make_manifest_path(vocabulary: str) -> str:
    """Return the path of the manifest that belongs to a vocabulary file."""
    return f"{vocabulary}.manifest.json"


def find_package_versions(kind: Kind) -> dict[str, str]:
    """Return the installed version of each package that trains vocabularies of this kind."""
    packages = ("tokenizers", "sentencepiece") if kind == "unigram" else ("tokenizers",)
    return {package: str(import_module(package).__version__) for package in packages}


def describe_text(words: WordCounts) -> dict[str, int]:
    """Return the manifest's section about the training text: several numbers of words, by name."""
    facts = {
        "words": words.words,
        "distinct_words": len(words.counts),
        "one_word_in": words.divisor,
    }
    if words.limit is not None:
        facts |= {"longest_word": words.limit, "left_out": words.left_out}
    return facts


def parse_vocabulary_manifest(data: bytes, where: str) -> VocabularyManifest:
    """Parse the manifest of a vocabulary.

    where: name of the file, for error messages.

    Raises ManifestError, which says what is wrong with the manifest.
    """
    value = parse_checked(data, where, "vocabulary_manifest")
    found = _compute_own_md5({name: item for name, item in value.items() if name != "md5"})
    if value.get("md5", found) != found:
        raise ManifestError(f"{where}: was changed: found md5 {found} of its fields, expected {value['md5']}")
    (file,) = parse_entries([value["file"]], where)
    inputs = parse_entries(value.get("inputs", ()), where)
    return VocabularyManifest(
        value["settings"], value["versions"], value["text"], file, inputs, is_sealed="md5" in value
    )


def _compute_own_md5(values: dict[str, Any]) -> str:
    """Return the md5 of a manifest without its own md5."""
    return compute_md5(dump_json(values))
