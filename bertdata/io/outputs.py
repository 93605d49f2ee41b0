"""Checks of every command's output path, so that no command destroys an input or an unrelated file.

- An output that is an input, contains an input or lies inside an input is refused, whatever its spelling and
  whatever links lead there.
- An existing file is replaced only if it looks like an older output of the same command, or with
  ``--overwrite``.

Both are checked before a command reads or writes much. Output directories have a similar rule in
``directory_protocol``: a directory with unrelated files is refused.
"""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bertdata.errors import SettingsError, StorageError
from bertdata.io import storage
from bertdata.io.patterns import find_matches
from bertdata.io.real_paths import file_system_of, local_path, real_path, real_paths

_HEAD_BYTES = 1 << 12
_OVERWRITE = "give another name, or --overwrite to replace it"


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputForm:
    """The format of an output file.

    words: its name in messages.
    begins: returns True if the first bytes of a file may come from an older output of this format.
    """

    words: str
    begins: Callable[[bytes], bool]


def _begins_with(pattern: bytes) -> Callable[[bytes], bool]:
    """Return a function that tells whether bytes begin with the pattern."""
    expression = re.compile(pattern, re.DOTALL | re.IGNORECASE)
    return lambda head: expression.match(head) is not None


PAGE = OutputForm(words="a page of HTML", begins=_begins_with(rb"\s*<!doctype html"))
SVG = OutputForm(words="an SVG picture", begins=_begins_with(rb"\s*(?:<\?xml.*<svg|<svg)"))
PNG = OutputForm(words="a PNG picture", begins=_begins_with(rb"\x89PNG\r\n\x1a\n"))
VOCABULARY = OutputForm(words="a vocabulary with [PAD] first", begins=_begins_with(rb"\[PAD\]\r?(?:\n|\Z)"))
TOKENIZER_JSON = OutputForm(words="a tokenizer.json", begins=_begins_with(rb'\s*\{\s*"version"\s*:'))
VOCABULARY_MANIFEST = OutputForm(
    words="the manifest of a vocabulary",
    begins=_begins_with(rb'\{\s*"format_version": \d+,\s*"kind": "vocabulary"'),
)
JSON_LINES = OutputForm(words="JSON lines", begins=_begins_with(rb'\{"'))


def _is_tfrecord(head: bytes) -> bool:
    """Return True if the bytes look like a TFRecord file: a length, its CRC, a field of an example."""
    return 0 < int.from_bytes(head[:8], "little") < 1 << 32 and head[12:13] == b"\n"


def _is_mds(head: bytes) -> bool:
    """Return True if the bytes look like an MDS shard: a count, then that many increasing offsets."""
    numbers = [int.from_bytes(head[at : at + 4], "little") for at in range(0, len(head) - 3, 4)]
    if len(numbers) < 2:
        return False
    offsets = numbers[1 : numbers[0] + 2]
    first_sample = 4 * (numbers[0] + 2)
    return offsets[0] >= first_sample and offsets == sorted(offsets)


TFRECORD = OutputForm(words="a TFRecord file", begins=_is_tfrecord)
HDF5 = OutputForm(words="an HDF5 file", begins=_begins_with(rb"\x89HDF\r\n\x1a\n"))
PARQUET = OutputForm(words="a Parquet file", begins=_begins_with(rb"PAR1"))
MDS = OutputForm(words="an MDS shard", begins=_is_mds)


def picture_form(path: str) -> OutputForm:
    """Return the picture format for the file name's ending: PNG for ``.png``, else SVG."""
    return PNG if path.lower().endswith(".png") else SVG


def check_output(
    output: str, inputs: Iterable[str | None], form: OutputForm, *, overwrite: bool = False, remedy: str = ""
) -> None:
    """Raise SettingsError if the output file is an input, or would replace a file of another format.

    remedy: for the message of the second error, instead of the usual hint at ``--overwrite``.
    """
    refuse_inputs(output, inputs)
    refuse_replacing(output, form, overwrite=overwrite, remedy=remedy or _OVERWRITE)


def refuse_inputs(output: str, inputs: Iterable[str | None], *, goes_on: bool = False) -> None:
    """Raise SettingsError if the output is an input, contains an input or lies inside an input.

    inputs: files, directories and patterns. Names of published assets are skipped, and so is None.
    goes_on: the output is a directory in which an earlier run has begun. It only writes files with names of
        its own there, so it may contain an input or lie inside one.
    """
    target = real_path(output)
    # An input on another file system cannot be the output. Skip it, since listing a bucket takes time.
    near = [given for given in inputs if given and file_system_of(given) == file_system_of(output)]
    paths = [path for given in near for path in _find_named(given)]
    for path, real in zip(paths, real_paths(paths), strict=True):
        name = path if path != output else "itself"
        if real == target or _is_same_file(output, path):
            raise SettingsError(
                f"{output}: is an input{_describe_alias(output, path)}, which would be lost; "
                "give another output"
            )
        if goes_on:
            continue
        if _lies_within(real, target):
            raise SettingsError(f"{output}: holds the input {name}; give an output that holds no input")
        if _lies_within(target, real) and storage.is_directory(path):
            raise SettingsError(f"{output}: lies within the input {name}; give an output outside of it")


def refuse_replacing(path: str, form: OutputForm, *, overwrite: bool, remedy: str = _OVERWRITE) -> None:
    """Raise SettingsError if the path is an existing file that does not look like an older output.

    Empty files may always be replaced. SettingsError also if the path is a directory.
    """
    if not storage.exists(path):
        return
    if storage.is_directory(path):
        raise SettingsError(f"{path}: is a directory, expected the name of a file to write")
    if overwrite:
        return
    with storage.open_input(path) as file:
        head = file.read(_HEAD_BYTES)
    if head and not form.begins(head):
        raise SettingsError(f"{path}: is there and is not {form.words}; {remedy}")


def _find_named(given: str) -> list[str]:
    """Return the existing paths that an input names. A missing input is reported later, when it is read."""
    if storage.exists(given):
        return [given]
    try:
        return find_matches(given)
    except StorageError:
        return []


def _is_same_file(output: str, path: str) -> bool:
    """Return True if both paths are one file for the file system (hard link, case-insensitive names)."""
    one, other = local_path(output), local_path(path)
    if one is None or other is None:
        return False
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _lies_within(inner: str, outer: str) -> bool:
    """Return True if a real path lies below another real path."""
    return inner.startswith(outer.rstrip("/") + "/") and inner != outer


def _describe_alias(output: str, path: str) -> str:
    """Return the part of the error message that names the input, if it is spelled differently."""
    return "" if path == output else f" under the name {path}"
