"""Exceptions of this package, and the exit status that a command returns for each.

    BertDataError
    ├── UsageError            exit status 2: the command or call is wrong
    │   ├── SettingsError     a setting is out of range, or two settings exclude each other
    │   │   └── SettingsFileError  a SettingsError in a file; the message gives the line
    │   ├── MissingInputError an input path does not exist, or is not a file
    │   ├── DatasetError      a dataset directory that this run may not write to or cannot read
    │   └── MissingExtraError an optional package is not installed
    └── DataError             exit status 1: the data is at fault
        ├── InputError        input text cannot be read
        │   └── TooFewArticles  a file has fewer articles than must be set aside for evaluation
        ├── ChangedInputError an input file was changed while a run read it
        ├── VocabularyError   a vocabulary lacks a token that the examples need
        ├── ShardError        a shard is damaged; the message names the record
        ├── AssetError        a vocabulary or table cannot be downloaded, or has the wrong md5
        ├── ManifestError     a manifest or md5sum file cannot be read
        └── StorageError      the file system refuses to read or write: full, read-only, unmounted

Each message reads ``where: what was found, what was expected; remedy``.
"""


class BertDataError(Exception):
    """Base class of every error that this package raises on purpose."""

    exit_status = 1


class UsageError(BertDataError):
    """The command or call is wrong. Nothing was read or written."""

    exit_status = 2


class SettingsError(UsageError):
    """A setting is out of range, or two settings exclude each other."""


class SettingsFileError(SettingsError):
    """A setting in a file is wrong.

    The message begins with ``FILE:LINE`` and names the setting as the file does.
    """


class MissingInputError(UsageError):
    """An input path does not exist or is not a file."""


class DatasetError(UsageError):
    """A directory holds files that this run may not touch, or holds no dataset that this run can use."""


class MissingExtraError(UsageError):
    """An optional package that this feature needs is not installed."""


def install_extra(extra: str) -> str:
    """Return the command that installs an optional dependency group, for an error's remedy.

    The command installs from the source tree. This package is not on a public index, where ``bertdata`` is
    the name of another project.
    """
    return f"pip install --editable '.[{extra}]' in bertdata's source tree"


class DataError(BertDataError):
    """The data is at fault."""


class InputError(DataError):
    """Input text cannot be read. The message names the file and the line."""

    @classmethod
    def not_utf8(cls, name: str, data: bytes, offset: int, remedy: str = "") -> "InputError":
        """Make the error for a byte that is not valid UTF-8.

        data: the file's content, from which the line number is counted.
        offset: index of the bad byte in data.
        """
        line = data.count(b"\n", 0, offset) + 1
        found = f"{name}: line {line}: byte 0x{data[offset]:02x} at offset {offset} is not UTF-8"
        return cls(f"{found}; {remedy}" if remedy else found)

    def reason(self, path: str) -> str:
        """Return the message without the path at its beginning and the remedy at its end.

        The manifest stores this text for an input that was skipped. It is the same on all machines, although
        the paths differ.
        """
        return str(self).removeprefix(f"{path}: ").partition("; ")[0]


class TooFewArticles(InputError):
    """A file with extracted articles has fewer articles than must be moved from it to the evaluation set."""


class ChangedInputError(DataError):
    """An input file was changed while a run read it.

    This is no InputError, because the option that skips unreadable inputs must not skip a changed file.
    """


class VocabularyError(DataError):
    """A vocabulary is empty, or lacks a token that the examples need."""


class ShardError(DataError):
    """A shard is damaged, or is in another format than its file name says. The message names the record."""


class AssetError(DataError):
    """A published file, such as a vocabulary, can neither be found on this machine nor downloaded, or its md5
    is wrong.
    """


class ManifestError(DataError):
    """A manifest or md5sum file is malformed."""


class StorageError(DataError):
    """The file system refused to read or write."""
