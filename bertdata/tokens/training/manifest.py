"""Manifest of a trained vocabulary: settings, versions of the packages that trained it, and its md5.

It is a file next to the vocabulary, because vocabulary formats have no room for it. It contains no time, host
or path, so training again gives the same manifest. ``schemas/vocabulary_manifest.json`` describes it.
"""

from importlib import import_module
from typing import Any, NamedTuple

from bertdata.io.file_check import FileEntry, parse_entries
from bertdata.io.manifest_file import FORMAT_VERSION, dump_json, parse_checked
from bertdata.tokens.training.special_tokens import Kind
from bertdata.tokens.training.word_counts import WordCounts

KIND = "vocabulary"


class VocabularyManifest(NamedTuple):
    """The manifest that ``train-vocab`` writes next to a vocabulary. Its fields are described in the
    schema.
    """

    settings: dict[str, Any]
    versions: dict[str, str]
    text: dict[str, int]
    file: FileEntry

    def dump(self) -> bytes:
        """Return the JSON text of the manifest as bytes."""
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


def make_manifest_path(vocabulary: str) -> str:
    """Return the path of the manifest that belongs to a vocabulary file."""
    return f"{vocabulary}.manifest.json"


def find_package_versions(kind: Kind) -> dict[str, str]:
    """Return the versions of the packages that train a vocabulary of this kind, as installed."""
    packages = ("tokenizers", "sentencepiece") if kind == "unigram" else ("tokenizers",)
    return {package: str(import_module(package).__version__) for package in packages}


def describe_text(words: WordCounts) -> dict[str, int]:
    """Return the manifest's section about the training text: its numbers of words, by name."""
    facts = {
        "words": words.words,
        "distinct_words": len(words.counts),
        "one_word_in": words.divisor,
    }
    if words.limit is not None:
        facts |= {"longest_word": words.limit, "left_out": words.left_out}
    return facts


def parse_vocabulary_manifest(data: bytes, where: str) -> VocabularyManifest:
    """Parse a manifest. ManifestError says what is wrong. where: the file's name, for messages."""
    value = parse_checked(data, where, "vocabulary_manifest")
    (file,) = parse_entries([value["file"]], where)
    return VocabularyManifest(value["settings"], value["versions"], value["text"], file)
