"""Reading and writing of manifests, sealed notes and md5sum files.

A manifest is JSON without times or host names, so that equal contents give equal bytes. It has a
``format_version``, a ``kind`` (dataset, text, articles, binarised lines) and a schema in ``schemas/``.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from bertdata.errors import ManifestError
from bertdata.io.file_check import compute_md5
from bertdata.io.json_text import parse_json_text
from schemas import load_schema
from schemas.faults import first_fault

FORMAT_VERSION = 2
"""Version of the JSON format of all manifests except those of datasets, which have a separate version.

Notes, which record a finished file until the manifest lists it, have the same version.
"""
MANIFEST_NAME = "manifest.json"
MD5SUMS_NAME = "MD5SUMS"


class ListedFile(Protocol):
    """The name and md5 of a file that an MD5SUMS file lists."""

    @property
    def name(self) -> str: ...

    @property
    def md5(self) -> str: ...


class SizedFile(ListedFile, Protocol):
    """The name, size and md5 of a file that a manifest lists."""

    @property
    def bytes(self) -> int: ...


def dump_json(value: dict[str, Any]) -> bytes:
    """Return the object as UTF-8 JSON with one field per line."""
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def parse_json(data: bytes, where: str) -> dict[str, Any]:
    """Return the JSON object in ``data``. Raises ManifestError if it is anything else.

    where: path of the file that the data comes from, for the message.
    """
    try:
        value = parse_json_text(data)
    except ValueError as error:
        raise ManifestError(f"{where}: is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ManifestError(f"{where}: is not a JSON object")
    return value


def check_version(
    found: Any,
    where: str,
    known: tuple[int, ...] = (FORMAT_VERSION,),
    remedies: Mapping[int, str] | None = None,
) -> None:
    """Raise ManifestError if this program cannot read the format version.

    found: the version in the file, which may be any JSON value.
    where: path of the file, for the message.
    known: the versions that this program can read.
    remedies: advice for the error message, by version. For other versions the advice is to use the version of
        this program that wrote the file.
    """
    if found in known:
        return
    remedy = remedies.get(found) if remedies and isinstance(found, int) else None
    told = " and ".join(map(str, known))
    raise ManifestError(
        f"{where}: format version {found}, this program reads {told}; "
        + (remedy or "use the bertdata that wrote it")
    )


def parse_checked(data: bytes, where: str, schema: str) -> dict[str, Any]:
    """Return the JSON object of a manifest, after checking its format version and its fields.

    where: path of the manifest, for messages.
    schema: name of the JSON schema that the fields must match, ``schemas/<schema>.json``.
    """
    value = parse_json(data, where)
    check_version(value.get("format_version", FORMAT_VERSION), where)  # first: the schema depends on it
    check_schema(value, where, schema)
    return value


def check_schema(value: dict[str, Any], where: str, schema: str) -> None:
    """Raise ManifestError for the first field that does not match ``schemas/<schema>.json``."""
    fault = first_fault(value, load_schema(schema))
    if fault is not None:
        place = "/".join(map(str, fault.path)) or "top level"
        raise ManifestError(f"{where}: {place}: {fault.message[:1_000]}")


def format_md5sum_line(md5: str, name: str) -> str:
    """Return a line of an md5sum file. Newlines and backslashes in the name are escaped, as md5sum does."""
    if "\\" in name or "\n" in name:
        escaped = name.replace("\\", "\\\\").replace("\n", "\\n")
        return f"\\{md5}  {escaped}\n"
    return f"{md5}  {name}\n"


def format_md5sums(files: Iterable[ListedFile], manifest: bytes | None = None) -> bytes:
    """Return the contents of an MD5SUMS file: a line for each file, then a line for the manifest.

    With the manifest in it, MD5SUMS shows when a directory has lost its manifest. (The manifest in turn
    cannot contain the md5 of MD5SUMS.)

    manifest: the manifest's bytes. None: write no line for the manifest, like earlier versions.
    """
    lines = [format_md5sum_line(file.md5, file.name) for file in files]
    if manifest is not None:
        lines.append(format_md5sum_line(compute_md5(manifest), MANIFEST_NAME))
    return "".join(lines).encode()


def seal_json(value: dict[str, Any]) -> bytes:
    """Return a plan or note as JSON with two more fields: the format version, and a ``seal``.

    The seal is an md5 of all other fields. It shows whether the file was damaged or edited.
    """
    whole = {"format_version": FORMAT_VERSION, **value}
    return dump_json({**whole, "seal": _compute_digest(whole)})


def unseal_json(data: bytes, where: str) -> dict[str, Any]:
    """Return the value that ``seal_json`` was called with.

    Raises ManifestError if the file is damaged or has another format version.
    """
    value = parse_json(data, where)
    check_version(value.get("format_version"), where)
    if value.pop("seal", None) != _compute_digest(value):
        raise ManifestError(f"{where}: is damaged: its contents do not fit its seal")
    del value["format_version"]
    return value


def _compute_digest(value: dict[str, Any]) -> str:
    """Return the md5 of the value's JSON with sorted keys."""
    return compute_md5(json.dumps(value, sort_keys=True).encode())
