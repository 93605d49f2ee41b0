"""The files of a model's directory in Hugging Face's form."""

from functools import cached_property
from typing import Any

from bertdata.errors import VocabularyError
from bertdata.io import storage
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME
from bertdata.tokens.json_document import parse_object, parse_tokenizer_json

CONFIG_NAME = "config.json"
TOKENIZER_CONFIG_NAME = "tokenizer_config.json"
SPECIAL_TOKENS_NAME = "special_tokens_map.json"
ADDED_TOKENS_NAME = "added_tokens.json"
BPE_VOCABULARY_NAME = "vocab.json"
MERGES_NAME = "merges.txt"

VOCABULARY_NAMES = (TOKENIZER_NAME, VOCABULARY_NAME, BPE_VOCABULARY_NAME)
"""The files of which one at least is there where the directory holds a tokeniser."""

NAMES = (
    *VOCABULARY_NAMES,
    MERGES_NAME,
    TOKENIZER_CONFIG_NAME,
    SPECIAL_TOKENS_NAME,
    ADDED_TOKENS_NAME,
    CONFIG_NAME,
)
"""All files that decide how a text is read."""

LARGEST_BYTES = 1 << 27
"""A larger file is refused unread. The tokenizer.json of a vocabulary of 256,000 tokens has some 35 MB."""


class ModelFiles:
    """A model's directory, each of its files read once, when it is asked for."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._objects: dict[str, dict[str, Any] | None] = {}

    def path(self, name: str) -> str | None:
        """Return the path of a file, or None where there is none of that name."""
        path = storage.join(self.directory, name)
        return path if storage.exists(path) else None

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file, or None where there is none. VocabularyError for a huge one."""
        path = self.path(name)
        return None if path is None else read_limited(path)

    def object(self, name: str) -> dict[str, Any] | None:
        """Return the object in a JSON file, or None where there is none. VocabularyError for another text."""
        if name not in self._objects:
            data = self.read(name)
            path = storage.join(self.directory, name)
            self._objects[name] = None if data is None else parse_object(data, path, "expected an object")
        return self._objects[name]

    def replace(self, name: str, value: dict[str, Any]) -> None:
        """Take this object for a file's from now on."""
        self._objects[name] = value

    @property
    def config(self) -> dict[str, Any]:
        """The model's config.json; empty where there is none."""
        return self.object(CONFIG_NAME) or {}

    @property
    def tokenizer_config(self) -> dict[str, Any]:
        """The tokeniser's tokenizer_config.json; empty where there is none."""
        return self.object(TOKENIZER_CONFIG_NAME) or {}

    @cached_property
    def tokenizer_json(self) -> dict[str, Any] | None:
        """The parsed tokenizer.json, or None where there is none."""
        data = self.read(TOKENIZER_NAME)
        return None if data is None else parse_tokenizer_json(data, self.name(TOKENIZER_NAME))

    def name(self, name: str) -> str:
        """Return the path of a file for a message, whether it is there or not."""
        return storage.join(self.directory, name)


def read_limited(path: str) -> bytes:
    """Return the bytes of a file. VocabularyError for one that is too large for a tokeniser's."""
    size = storage.size(path)
    if size > LARGEST_BYTES:
        raise VocabularyError(
            f"{path}: has {size} bytes, at most {LARGEST_BYTES} are read; expected a tokeniser's file as "
            "Hugging Face's libraries save it, without anything else"
        )
    return storage.read_bytes(path)


def version_of(directory: str) -> tuple[int, ...]:
    """Return numbers that differ once one of the directory's local files was changed or replaced."""
    if storage.is_remote(directory):
        return ()
    found: list[int] = []
    for number, name in enumerate(NAMES):
        path = storage.join(directory, name)
        if storage.exists(path):
            found += [number, *storage.version(path)]
    return tuple(found)
