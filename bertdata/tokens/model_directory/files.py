"""Reads the files of a model's directory in Hugging Face's form."""

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
"""Names of the files that may contain the vocabulary.

A directory with a tokeniser has at least one of them.
"""

NAMES = (
    *VOCABULARY_NAMES,
    MERGES_NAME,
    TOKENIZER_CONFIG_NAME,
    SPECIAL_TOKENS_NAME,
    ADDED_TOKENS_NAME,
    CONFIG_NAME,
)
"""Names of all files that influence how a text is tokenised."""

LARGEST_BYTES = 1 << 27
"""Largest file in bytes that is read. A larger file is refused.

The tokenizer.json of a vocabulary of 256,000 tokens has about 35 MB.
"""


class ModelFiles:
    """Files of a model's directory. A JSON file is read when it is first needed, and then cached."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._objects: dict[str, dict[str, Any] | None] = {}

    def find_path(self, name: str) -> str | None:
        """Return the path of a file in the model's directory, or None if there is no such file."""
        path = storage.join(self.directory, name)
        return path if storage.exists(path) else None

    def read(self, name: str) -> bytes | None:
        """Return the content of a file in the model's directory, or None if there is no such file.

        Raises VocabularyError if the file is too large.
        """
        path = self.find_path(name)
        return None if path is None else read_bounded_file(path)

    def read_object(self, name: str) -> dict[str, Any] | None:
        """Return the content of a JSON file in the model's directory, or None if there is no such file.

        Raises VocabularyError if the file contains anything other than a JSON object.
        """
        if name not in self._objects:
            data = self.read(name)
            path = storage.join(self.directory, name)
            self._objects[name] = None if data is None else parse_object(data, path, "expected an object")
        return self._objects[name]

    def replace_object(self, name: str, value: dict[str, Any]) -> None:
        """Use ``value`` from now on as the content of a JSON file. The file itself is not changed."""
        self._objects[name] = value

    @property
    def config(self) -> dict[str, Any]:
        """Content of config.json, or an empty dict if there is no such file."""
        return self.read_object(CONFIG_NAME) or {}

    @property
    def tokenizer_config(self) -> dict[str, Any]:
        """Content of tokenizer_config.json, or an empty dict if there is no such file."""
        return self.read_object(TOKENIZER_CONFIG_NAME) or {}

    @cached_property
    def tokenizer_json(self) -> dict[str, Any] | None:
        """Parsed content of tokenizer.json, or None if there is no such file."""
        data = self.read(TOKENIZER_NAME)
        return None if data is None else parse_tokenizer_json(data, self.make_path(TOKENIZER_NAME))

    def make_path(self, name: str) -> str:
        """Return the full path of a file for an error message. The file need not exist."""
        return storage.join(self.directory, name)


def read_bounded_file(path: str) -> bytes:
    """Return the content of a file.

    Raises VocabularyError if the file has more than LARGEST_BYTES.
    """
    size = storage.read_size(path)
    if size > LARGEST_BYTES:
        raise VocabularyError(
            f"{path}: has {size} bytes, at most {LARGEST_BYTES} are read; expected a tokeniser's file as "
            "Hugging Face's libraries save it, without anything else"
        )
    return storage.read_bytes(path)


def read_directory_version(directory: str) -> tuple[int, ...]:
    """Return numbers that change when one of the tokeniser's files in a local directory is changed or
    replaced.

    The result is empty for a remote directory.
    """
    if storage.is_remote(directory):
        return ()
    found: list[int] = []
    for number, name in enumerate(NAMES):
        path = storage.join(directory, name)
        if storage.exists(path):
            found += [number, *storage.read_version(path)]
    return tuple(found)
