"""The manifest of a trained vocabulary: settings, releases of the packages that learned it, its md5.

It lies beside the vocabulary, whose formats have no room for it. Deterministic: no clock, no host, no path.
Declared in ``schemas/vocabulary_manifest.json``.
"""

from importlib import import_module
from typing import Any, NamedTuple

from bertdata.io.file_check import FileEntry, parse_entries
from bertdata.io.manifest_file import FORMAT_VERSION, dump_json, parse_checked
from bertdata.tokens.training.special_tokens import Kind
from bertdata.tokens.training.word_counts import WordCounts

KIND = "vocabulary"


class VocabularyManifest(NamedTuple):
    """A trained vocabulary. Each field is that of the schema."""

    settings: dict[str, Any]
    versions: dict[str, str]
    text: dict[str, int]
    file: FileEntry

    def dump(self) -> bytes:
        return dump_json(
            {
                "format_version": FORMAT_VERSION,
                "kind": KIND,
                "settings": self.settings,
                "versions": self.versions,
                "text": self.text,
                "file": self.file._asdict(),
            }
        )


def manifest_path(vocabulary: str) -> str:
    """Return the path of a vocabulary's manifest."""
    return f"{vocabulary}.manifest.json"


def versions_of(kind: Kind) -> dict[str, str]:
    """Return the releases of the packages that learn a vocabulary of this kind, as they are imported."""
    packages = ("tokenizers", "sentencepiece") if kind == "unigram" else ("tokenizers",)
    return {package: str(import_module(package).__version__) for package in packages}


def text_facts(words: WordCounts) -> dict[str, int]:
    """Return what the manifest says of the text."""
    facts = {
        "words": words.words,
        "distinct_words": len(words.counts),
        "one_word_in": words.divisor,
    }
    if words.limit is not None:
        facts |= {"longest_word": words.limit, "left_out": words.left_out}
    return facts


def parse_vocabulary_manifest(data: bytes, where: str) -> VocabularyManifest:
    """Return the manifest in ``data``. ManifestError says what does not fit."""
    value = parse_checked(data, where, "vocabulary_manifest")
    (file,) = parse_entries([value["file"]], where)
    return VocabularyManifest(value["settings"], value["versions"], value["text"], file)
