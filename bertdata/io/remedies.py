"""Shell commands that an error offers for a file of another kind.

Each works when it is typed, and the run that failed works when it is repeated: under the patterns that named
the file there is one file to read afterwards, not two. What is replaced is kept under a hidden name, which
no pattern takes. A file in a bucket gets words alone, since no shell reads it there.
"""

import shlex

from bertdata.io import storage


def convert_in_place(what: str, command: str, path: str) -> str:
    """Return ``what``, and the command that converts the file under its own name. command: has FILE."""
    if storage.is_remote(path):
        return what
    kept = storage.join(storage.parent(path), f".{storage.base_name(path)}.old")
    kept = kept.removeprefix("./")
    return f"{what}: mv {_quoted(path, kept)} && {command.replace('FILE', _quoted(kept))} > {_quoted(path)}"


def unpack_in_place(program: str, ending: str, path: str) -> str:
    """Return the command of ``gzip`` and its like, which puts the unpacked file in the packed one's place."""
    if storage.is_remote(path):
        return f"unpack it with {program}"
    command = f"{program} -d --rm" if program == "zstd" else f"{program} -d"
    if path.endswith(ending):
        return f"unpack it: {command} {_quoted(path)}"
    return f"unpack it: mv {_quoted(path, path + ending)} && {command} {_quoted(path + ending)}"


def unpack_archive(command: str, path: str, endings: tuple[str, ...]) -> str:
    """Return the command that unpacks an archive into a directory. command: has ARCHIVE and DIR."""
    what = "unpack it and give its files"
    if storage.is_remote(path):
        return what
    stem = next((path.removesuffix(ending) for ending in endings if path.endswith(ending)), path)
    made = f"{stem}-files"
    typed = command.replace("ARCHIVE", _quoted(path)).replace("DIR", _quoted(made))
    return f"unpack it: mkdir {_quoted(made)} && {typed}; then give that directory in its place"


def make_parts_of(path: str, field: str | None = None) -> str:
    """Return the command that makes parts of a file of records. field: of its text, where it is known."""
    what = "make parts of its records"
    if storage.is_remote(path):
        return f"{what}: bertdata segment"
    made = _quoted(f"{path}.parts")
    named = "" if field is None else f" --text-field {_quoted(field)}"
    command = f"bertdata segment {_quoted(path)} --output {made}{named}"
    return f"{what}: {command}; then give {made}/part-* in its place"


def take_records_out(path: str, jq_filter: str) -> str:
    """Return the command that writes the records within one JSON value as JSON lines."""
    what = "take its records out"
    if storage.is_remote(path):
        return f"{what} with jq"
    made = f"{path.removesuffix('.json')}.jsonl"
    command = f"jq -c {_quoted(jq_filter, path)} > {_quoted(made)}"
    return f"{what}: {command}; then give that file in its place"


def _quoted(*words: str) -> str:
    return " ".join(map(shlex.quote, words))
