"""Shell commands that error messages suggest for files of an unsupported format.

Each command works as printed, and the failed run then works when it is repeated. So after the command, the
pattern that matched the unsupported file must match the new file and no other. That is why the original is
moved to a hidden name, which patterns do not match. For a file in a bucket only a description is returned,
since a shell cannot read it there.
"""

import shlex

from bertdata.io import storage


def suggest_conversion(what: str, command: str, path: str) -> str:
    """Return a command that converts a file and stores the result under the same name.

    what: description, printed before the command.
    command: shell command with the placeholder FILE for its input.
    """
    if storage.is_remote(path):
        return what
    kept = storage.join(storage.get_parent(path), f".{storage.get_base_name(path)}.old")
    kept = kept.removeprefix("./")
    return f"{what}: mv {_quote(path, kept)} && {command.replace('FILE', _quote(kept))} > {_quote(path)}"


def suggest_unpacking(program: str, ending: str, path: str) -> str:
    """Return a command that replaces a compressed file by the unpacked file.

    program: gzip, zstd, bzip2, xz or lz4.
    ending: the file name ending that the program requires, such as ``.gz``.
    """
    if storage.is_remote(path):
        return f"unpack it with {program}"
    command = f"{program} -d --rm" if program == "zstd" else f"{program} -d"
    if path.endswith(ending):
        return f"unpack it: {command} {_quote(path)}"
    return f"unpack it: mv {_quote(path, path + ending)} && {command} {_quote(path + ending)}"


def suggest_archive_unpacking(command: str, path: str, endings: tuple[str, ...]) -> str:
    """Return a command that unpacks an archive into a new directory.

    The directory's name is the archive's name without its ending, plus ``-files``.

    command: shell command with the placeholders ARCHIVE and DIR.
    endings: possible endings of the archive's name.
    """
    what = "unpack it and give its files"
    if storage.is_remote(path):
        return what
    stem = next((path.removesuffix(ending) for ending in endings if path.endswith(ending)), path)
    made = f"{stem}-files"
    typed = command.replace("ARCHIVE", _quote(path)).replace("DIR", _quote(made))
    return f"unpack it: mkdir {_quote(made)} && {typed}; then give that directory in its place"


def suggest_segment_command(path: str, field: str | None = None) -> str:
    """Return the ``bertdata segment`` command that converts a file of records to text files.

    field: name of the field with the text. None: the command has a placeholder for it.
    """
    what = "make parts of its records"
    if storage.is_remote(path):
        return f"{what}: bertdata segment"
    made = _quote(f"{path}.parts")
    named = "" if field is None else f" --text-field {_quote(field)}"
    command = f"bertdata segment {_quote(path)} --output {made}{named}"
    return f"{what}: {command}; then give {made}/part-* in its place"


def suggest_record_extraction(path: str, jq_filter: str) -> str:
    """Return a jq command that extracts the records inside a JSON value as JSON lines."""
    what = "take its records out"
    if storage.is_remote(path):
        return f"{what} with jq"
    made = f"{path.removesuffix('.json')}.jsonl"
    command = f"jq -c {_quote(jq_filter, path)} > {_quote(made)}"
    return f"{what}: {command}; then give that file in its place"


def _quote(*words: str) -> str:
    """Return the words quoted for a shell."""
    return " ".join(map(shlex.quote, words))
