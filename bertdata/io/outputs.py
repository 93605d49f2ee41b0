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
from bertdata.io.real_paths import find_file_system, find_local_path, resolve_path, resolve_paths

_HEAD_BYTES = 1 << 12
_OVERWRITE = "give another name, or --overwrite to replace it"


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputFormat:
    """The format of an output file.

    words: name of the format in messages.
    begins: function that returns True if a file's first bytes look like an older output of this format.
    """

    words: str
    begins: Callable[[bytes], bool]


def _make_prefix_test(pattern: bytes) -> Callable[[bytes], bool]:
    """Return a function that returns True for bytes that begin with a match of the pattern."""
    expression = re.compile(pattern, re.DOTALL | re.IGNORECASE)
    return lambda head: expression.match(head) is not None


PAGE = OutputFormat(words="a page of HTML", begins=_make_prefix_test(rb"\s*<!doctype html"))
SVG = OutputFormat(words="an SVG picture", begins=_make_prefix_test(rb"\s*(?:<\?xml.*<svg|<svg)"))
PNG = OutputFormat(words="a PNG picture", begins=_make_prefix_test(rb"\x89PNG\r\n\x1a\n"))
VOCABULARY = OutputFormat(
    words="a vocabulary with [PAD] first", begins=_make_prefix_test(rb"\[PAD\]\r?(?:\n|\Z)")
)
TOKENIZER_JSON = OutputFormat(words="a tokenizer.json", begins=_make_prefix_test(rb'\s*\{\s*"version"\s*:'))
VOCABULARY_MANIFEST = OutputFormat(
    words="the manifest of a vocabulary",
    begins=_make_prefix_test(rb'\{\s*"format_version": \d+,\s*"kind": "vocabulary"'),
)
JSON_LINES = OutputFormat(words="JSON lines", begins=_make_prefix_test(rb'\{"'))


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


TFRECORD = OutputFormat(words="a TFRecord file", begins=_is_tfrecord)
HDF5 = OutputFormat(words="an HDF5 file", begins=_make_prefix_test(rb"\x89HDF\r\n\x1a\n"))
PARQUET = OutputFormat(words="a Parquet file", begins=_make_prefix_test(rb"PAR1"))
MDS = OutputFormat(words="an MDS shard", begins=_is_mds)


def find_picture_format(path: str) -> OutputFormat:
    """Return the picture format for the file name: PNG if the name ends with ``.png``, otherwise SVG."""
    return PNG if path.lower().endswith(".png") else SVG


def check_output(
    output: str,
    inputs: Iterable[str | None],
    form: OutputFormat,
    *,
    overwrite: bool = False,
    remedy: str = "",
) -> None:
    """Raise SettingsError if the output file is an input, or would replace a file of another format.

    output: path of the file that the command will write.
    inputs: paths that the command reads.
    form: format that the command writes.
    overwrite: allow a file of another format to be replaced.
    remedy: end of the error message about another format, which advises the user. Empty: advise
        ``--overwrite``.
    """
    refuse_input_as_output(output, inputs)
    refuse_foreign_file(output, form, overwrite=overwrite, remedy=remedy or _OVERWRITE)


def refuse_input_as_output(output: str, inputs: Iterable[str | None], *, goes_on: bool = False) -> None:
    """Raise SettingsError if the output is an input, contains an input or lies inside an input.

    inputs: files, directories and patterns. None and names of published assets are skipped.
    goes_on: True if the output is a directory that an earlier run has begun. The command then only writes
        files with special names there, so the directory may contain an input or lie inside an input.
    """
    target = resolve_path(output)
    # An input on another file system cannot be the output. Skip it, since listing a bucket takes time.
    near = [given for given in inputs if given and find_file_system(given) == find_file_system(output)]
    paths = [path for given in near for path in _find_input_paths(given)]
    for path, real in zip(paths, resolve_paths(paths), strict=True):
        name = path if path != output else "itself"
        if real == target or _is_same_file(output, path):
            raise SettingsError(
                f"{output}: is an input{_describe_alias(output, path)}, which would be lost; "
                "give another output"
            )
        if goes_on:
            continue
        if _is_below(real, target):
            raise SettingsError(f"{output}: holds the input {name}; give an output that holds no input")
        if _is_below(target, real) and storage.is_directory(path):
            raise SettingsError(f"{output}: lies within the input {name}; give an output outside of it")


def refuse_foreign_file(path: str, form: OutputFormat, *, overwrite: bool, remedy: str = _OVERWRITE) -> None:
    """Raise SettingsError if the path is a directory, or an existing file in another format than the
    output's.

    Empty files may always be replaced.

    form: the output's format.
    overwrite: allow a file in any format.
    remedy: end of the error message, which advises the user.
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


def _find_input_paths(given: str) -> list[str]:
    """Return the existing paths that an input names.

    A missing input is not reported here, but when it is read.
    """
    if storage.exists(given):
        return [given]
    try:
        return find_matches(given)
    except StorageError:
        return []


def _is_same_file(output: str, path: str) -> bool:
    """Return True if both paths lead to the same file, according to the file system.

    Unlike a comparison of paths, this also finds hard links, and names that differ only in case on a file
    system that ignores case.
    """
    one, other = find_local_path(output), find_local_path(path)
    if one is None or other is None:
        return False
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _is_below(inner: str, outer: str) -> bool:
    """Return True if a path lies inside a directory. Both must be real paths, without links."""
    return inner.startswith(outer.rstrip("/") + "/") and inner != outer


def _describe_alias(output: str, path: str) -> str:
    """Return the words ``under the name PATH`` if the user spelled the input differently from the output."""
    return "" if path == output else f" under the name {path}"
