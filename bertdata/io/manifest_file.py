"""Common form of manifests: JSON that depends on nothing but its contents, and md5sum files.

Each has a ``format_version``, a ``kind`` (dataset, text, articles, binarised lines), and a schema in
``schemas/``.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from bertdata.errors import ManifestError
from bertdata.io.file_check import md5_of
from bertdata.io.json_text import parse_json_text
from schemas import load_schema
from schemas.faults import first_fault

FORMAT_VERSION = 2
"""Of notes, and of the manifests that are no datasets'."""
MANIFEST_NAME = "manifest.json"
MD5SUMS_NAME = "MD5SUMS"


class Listed(Protocol):
    """Name and md5 of a file."""

    @property
    def name(self) -> str: ...

    @property
    def md5(self) -> str: ...


def dump_json(value: dict[str, Any]) -> bytes:
    """The object as UTF-8 text, one field a line."""
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def parse_json(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object in ``data``."""
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
    """ManifestError for a manifest of none of the known versions of its format.

    remedies: for versions of which there is a better one than the program that wrote them.
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
    """The manifest's JSON, of our version and checked against ``schemas/<schema>.json``."""
    value = parse_json(data, where)
    check_version(value.get("format_version", FORMAT_VERSION), where)  # a later one may have another schema
    check_schema(value, where, schema)
    return value


def check_schema(value: dict[str, Any], where: str, schema: str) -> None:
    """ManifestError that names the first place which does not fit ``schemas/<schema>.json``."""
    fault = first_fault(value, load_schema(schema))
    if fault is not None:
        place = "/".join(map(str, fault.path)) or "top level"
        raise ManifestError(f"{where}: {place}: {fault.message[:1_000]}")


def md5sum_line(md5: str, name: str) -> str:
    """One line of an md5sum file. A name with a newline or backslash is escaped as md5sum does."""
    if "\\" in name or "\n" in name:
        escaped = name.replace("\\", "\\\\").replace("\n", "\\n")
        return f"\\{md5}  {escaped}\n"
    return f"{md5}  {name}\n"


def md5sums(files: Iterable[Listed], manifest: bytes | None = None) -> bytes:
    """Lines as md5sum prints and checks them: the files, then the manifest that lists them.

    So a directory that lost its manifest is known by MD5SUMS. The manifest holds no digest of MD5SUMS.
    None: without its line, as directories had it before it was introduced.
    """
    lines = [md5sum_line(file.md5, file.name) for file in files]
    if manifest is not None:
        lines.append(md5sum_line(md5_of(manifest), MANIFEST_NAME))
    return "".join(lines).encode()


def seal(value: dict[str, Any]) -> bytes:
    """The JSON of plan or note with its version and an md5 over both."""
    whole = {"format_version": FORMAT_VERSION, **value}
    return dump_json({**whole, "seal": _digest(whole)})


def unseal(data: bytes, where: str) -> dict[str, Any]:
    """The value that was sealed. ManifestError where it is damaged or of another version."""
    value = parse_json(data, where)
    check_version(value.get("format_version"), where)
    if value.pop("seal", None) != _digest(value):
        raise ManifestError(f"{where}: is damaged: its contents do not fit its seal")
    del value["format_version"]
    return value


def _digest(value: dict[str, Any]) -> str:
    return md5_of(json.dumps(value, sort_keys=True).encode())
