"""Exceptions, and the exit status of a command that ends with one.

    BertDataError
    ├── UsageError            exit status 2: the call is wrong
    │   ├── SettingsError     a setting out of its range, or two that exclude each other
    │   │   └── SettingsFileError  the same of a file, with the line
    │   ├── MissingInputError a path that is not there, or is not a file
    │   ├── DatasetError      a dataset directory is not one that this run may write to or read
    │   └── MissingExtraError an optional package is not installed
    └── DataError             exit status 1: the data is at fault
        ├── InputError        text that cannot be read as the dialect reads it
        │   └── TooFewArticles  fewer articles than are to be withheld for evaluation
        ├── ChangedInputError an input that was changed while a run read it
        ├── VocabularyError   a vocabulary that lacks what the examples need
        ├── ShardError        a damaged shard; names the record
        ├── AssetError        a vocabulary or table that cannot be had, or has the wrong md5
        ├── ManifestError     a manifest or md5sum file that cannot be read
        └── StorageError      a file system that refuses: full, read-only, gone

Each message reads ``where: what was found, what was expected; remedy``.
"""


class BertDataError(Exception):
    """Every error that this package raises on purpose."""

    exit_status = 1


class UsageError(BertDataError):
    """The command or the call is wrong. Nothing was read or written."""

    exit_status = 2


class SettingsError(UsageError):
    """A setting is out of range, or two settings exclude each other."""


class SettingsFileError(SettingsError):
    """A setting in a file is at fault. The message begins with ``FILE:LINE`` and has the file's names."""


class MissingInputError(UsageError):
    """An input path does not exist or is not a file."""


class DatasetError(UsageError):
    """A directory holds something that this run may not touch, or no dataset that it can use."""


class MissingExtraError(UsageError):
    """An optional package that this feature needs is not installed."""


def install_extra(extra: str) -> str:
    """The command that installs an extra, for an error's remedy.

    It names the source tree: the package is on no public index, and ``bertdata`` there is another one.
    """
    return f"pip install '.[{extra}]' in bertdata's source tree"


class DataError(BertDataError):
    """The data is at fault."""


class InputError(DataError):
    """Input text cannot be read. The message names file and line."""

    @classmethod
    def not_utf8(cls, name: str, data: bytes, offset: int, remedy: str = "") -> "InputError":
        """The error for the byte at ``offset`` of the file's data, with its line."""
        line = data.count(b"\n", 0, offset) + 1
        found = f"{name}: line {line}: byte 0x{data[offset]:02x} at offset {offset} is not UTF-8"
        return cls(f"{found}; {remedy}" if remedy else found)

    def reason(self, path: str) -> str:
        """The message without the path, which differs between machines, and without the remedy."""
        return str(self).removeprefix(f"{path}: ").partition("; ")[0]


class TooFewArticles(InputError):
    """An extracted file has fewer articles than its share of the evaluation set."""


class ChangedInputError(DataError):
    """An input was changed while a run read it. No InputError, since no option leaves such a file out."""


class VocabularyError(DataError):
    """A vocabulary is empty or lacks a token that examples need."""


class ShardError(DataError):
    """A shard is damaged or not what its name says. The message names the record."""


class AssetError(DataError):
    """A named file that cannot be had from any source, or whose md5 does not fit."""


class ManifestError(DataError):
    """A manifest or md5sum file is malformed."""


class StorageError(DataError):
    """The file system refused to read or write."""
