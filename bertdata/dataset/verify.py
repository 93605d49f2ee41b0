"""Hold files against what a manifest, an md5sum file or a published table says of them.

Every check collects all faults and reports each; nothing stops at the first.
"""

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from typing import Any

from bertdata.config.settings import FORMATS
from bertdata.dataset.discover import datasets_below, refuse_unfinished
from bertdata.dataset.manifest import (
    MANIFEST_NAME,
    MD5SUMS_NAME,
    Manifest,
    ShardEntry,
    parse_json,
    parse_manifest,
    settings_digest,
)
from bertdata.dataset.published.tables import PublishedFile, load_table
from bertdata.dataset.writer import file_md5
from bertdata.errors import BertDataError, ManifestError, MissingInputError, ShardError, UsageError
from bertdata.io import storage
from bertdata.shards.content import check_readable, content_md5

LEFT_OUT = "left out"
"""Status of an input that the manifest lists as skipped."""

_WORKERS = 4  # hashing releases the GIL
_MD5SUM_LINE = re.compile(r"(\\?)([0-9a-fA-F]{32}) [ *](.+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What is to be said of one file; status is right, missing, extra, wrong size, wrong md5, damaged ..."""

    file: str
    status: str
    found: str | None = None
    expected: str | None = None
    detail: str | None = None
    is_fault: bool = True

    def __str__(self) -> str:
        text = f"{self.file}: {self.status}"
        if self.found is not None:
            text += f": found {self.found}, expected {self.expected}"
        return f"{text}; {self.detail}" if self.detail else text


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All findings of one verification."""

    path: str
    findings: tuple[Finding, ...] = field(default=())

    @property
    def faults(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.is_fault]

    @property
    def sound(self) -> bool:
        return not self.faults

    def count(self, status: str) -> int:
        return sum(finding.status == status for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "sound": self.sound,
            "right": self.count("right"),
            "findings": [asdict(finding) for finding in self.findings],
        }


def verify(path: str, *, content: bool = False, on_file: Callable[[], None] = lambda: None) -> Report:
    """Check a dataset directory, a manifest or an md5sum file.

    content: compare content md5s, so that another tool's files of the same examples pass.
    """
    if storage.is_directory(path):
        return _verify_directory(path, content, on_file)
    if not storage.exists(path):
        raise MissingInputError(f"{path}: no such file or directory")
    directory = storage.parent(path)
    if storage.base_name(path).endswith(".json"):
        return _verify_manifest(path, directory, content, on_file)
    return _verify_md5sums(path, directory, content, on_file)


def _verify_directory(path: str, content: bool, on_file: Callable[[], None]) -> Report:
    manifest = storage.join(path, MANIFEST_NAME)
    if storage.exists(manifest):
        return _verify_manifest(manifest, path, content, on_file)
    files = storage.list_files(path)
    refuse_unfinished(path, files)
    if inner := datasets_below(files):
        reports = [_verify_directory(storage.join(path, name), content, on_file) for name in inner]
        return Report(path=path, findings=tuple(f for report in reports for f in report.findings))
    if MD5SUMS_NAME in files:
        return _verify_md5sums(storage.join(path, MD5SUMS_NAME), path, content, on_file)
    raise ManifestError(
        f"{path}: holds neither {MANIFEST_NAME} nor {MD5SUMS_NAME}; "
        "give --table to hold it against a published one"
    )


def _verify_manifest(path: str, directory: str, content: bool, on_file: Callable[[], None]) -> Report:
    data = storage.read_bytes(path)
    manifest = parse_manifest(data, path)

    def check(shard: ShardEntry) -> Finding:
        finding = _check_shard(directory, shard, content, manifest.plan.objective)
        on_file()
        return finding

    findings = [*_check_manifest_itself(manifest, data, path), *_in_parallel(check, manifest.shards)]
    findings += _check_md5sums_of(manifest, directory)
    findings += [
        Finding(file=entry.name, status=LEFT_OUT, detail=entry.reason, is_fault=False)
        for entry in manifest.skipped
    ]
    known = {MANIFEST_NAME, MD5SUMS_NAME, *(shard.name for shard in manifest.shards)}
    findings += [
        Finding(file=storage.join(directory, name), status="extra", detail="the manifest does not list it")
        for name in storage.list_files(directory)
        if name not in known
    ]
    return Report(path=directory, findings=tuple(findings))


def _check_manifest_itself(manifest: Manifest, data: bytes, path: str) -> list[Finding]:
    """A manifest that was edited by hand no longer is what its own parts make."""
    recorded = str(parse_json(data, path)["settings_digest"])
    digest = settings_digest(manifest.plan.settings)
    if recorded != digest:
        return [Finding(file=path, status="wrong settings digest", found=recorded, expected=digest)]
    if manifest.dump() != data:
        return [
            Finding(
                file=path,
                status="edited",
                detail="it is not what its own entries make: totals, order or layout",
            )
        ]
    return []


def _check_md5sums_of(manifest: Manifest, directory: str) -> list[Finding]:
    path = storage.join(directory, MD5SUMS_NAME)
    if not storage.exists(path):
        return [Finding(file=path, status="missing")]
    if storage.read_bytes(path) != manifest.md5sums():
        return [Finding(file=path, status="differs", detail=f"it does not say what {MANIFEST_NAME} says")]
    return []


def _check_shard(directory: str, shard: ShardEntry, content: bool, objective: str | None) -> Finding:
    path = storage.join(directory, shard.name)
    if not storage.exists(path):
        return Finding(file=path, status="missing")
    try:
        if content:
            return _compare(path, "wrong content md5", content_md5(path, None, objective), shard.content_md5)
        found = storage.size(path)
        if found != shard.bytes:
            sizes = f"{found} bytes", f"{shard.bytes} bytes"
            return _compare(path, "wrong size", *sizes, _damage(path, objective))
        md5 = file_md5(path)
        damage = _damage(path, objective) if md5 != shard.md5 else None
        return _compare(path, "wrong md5", md5, shard.md5, damage)
    except ShardError as error:
        return Finding(file=path, status="damaged", detail=_without(path, error))
    except BertDataError as error:
        return Finding(file=path, status="unreadable", detail=_without(path, error))


def _compare(path: str, wrong: str, found: str, expected: str, detail: str | None = None) -> Finding:
    if found == expected:
        return Finding(file=path, status="right", is_fault=False)
    return Finding(file=path, status=wrong, found=found, expected=expected, detail=detail)


def _damage(path: str, objective: str | None = None) -> str:
    """Which record is at fault, for a person who has to find it."""
    if not storage.size(path):
        return "it is empty"
    try:
        records = check_readable(path, None, objective)
    except BertDataError as error:
        return _without(path, error)
    return f"each of its {records} records can be read: it is another file, or was changed with care"


def _named_as_shard(path: str) -> bool:
    return path.rpartition(".")[2] in FORMATS


def _without(path: str, error: Exception) -> str:
    return str(error).removeprefix(f"{path}: ")


def _in_parallel(check: Callable[[Any], Finding], items: Iterable[Any]) -> list[Finding]:
    with ThreadPoolExecutor(_WORKERS) as pool:
        return list(pool.map(check, items))


def _verify_md5sums(path: str, directory: str, content: bool, on_file: Callable[[], None]) -> Report:
    expected = list(parse_md5sums(storage.read_bytes(path), path))

    def check(item: tuple[str, str]) -> Finding:
        md5, name = item
        file = name if name.startswith("/") or storage.is_remote(name) else storage.join(directory, name)
        on_file()
        if not storage.exists(file):
            return Finding(file=file, status="missing")
        try:
            if content:
                return _compare(file, "wrong content md5", content_md5(file), md5)
            found = file_md5(file)
            damage = _damage(file) if found != md5 and _named_as_shard(file) else None
            return _compare(file, "wrong md5", found, md5, damage)
        except ShardError as error:
            return Finding(file=file, status="damaged", detail=_without(file, error))
        except BertDataError as error:
            return Finding(file=file, status="unreadable", detail=_without(file, error))

    return Report(path=path, findings=tuple(_in_parallel(check, expected)))


def parse_md5sums(data: bytes, where: str) -> Iterable[tuple[str, str]]:
    """(md5, file name) of each line of an md5sum file; ManifestError names a line that is none."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise ManifestError(
            f"{where}: is not text; expected a dataset directory, a manifest.json or an md5sum file"
        ) from None
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        match = _MD5SUM_LINE.fullmatch(line)
        if match is None:
            raise ManifestError(
                f"{where}: line {number}: found {line[:60]!r}, expected an md5, two spaces, a name"
            )
        escaped, md5, name = match.groups()
        if escaped:
            name = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], name)
        entries.append((md5.lower(), name))
    if not entries:
        raise ManifestError(f"{where}: lists no file")
    return entries


def verify_table(directory: str, table: str) -> Report:
    """Hold a directory tree against a published table: right, wrong size, wrong md5 or missing, for each row.

    A missing file is reported but no fault, so that any stage's directory can be checked; a tree that
    holds none of the files is a fault.
    """
    rows = load_table(table)
    if not storage.is_directory(directory):
        raise UsageError(f"{directory}: is not a directory, expected one to search for the files of {table}")
    names = storage.list_files(directory)
    findings = _in_parallel(lambda row: _check_published(directory, names, row), rows)
    if all(finding.status == "missing" for finding in findings):
        findings.append(Finding(file=directory, status=f"holds no file of the table {table}"))
    return Report(path=directory, findings=tuple(findings))


def _check_published(directory: str, names: list[str], row: PublishedFile) -> Finding:
    matches = [(name, pattern) for pattern in row.paths for name in names if _is_at(name, pattern)]
    if not matches:
        return Finding(file=row.label, status="missing", is_fault=False)
    if any("*" in pattern for _, pattern in matches):
        pattern = matches[0][1]
        total = sum(storage.size(storage.join(directory, name)) for name, p in matches if p == pattern)
        return _compare(row.label, "wrong size", f"{total} bytes", f"{row.bytes} bytes")
    findings = [_check_candidate(directory, name, row) for name, _ in matches]
    return next((finding for finding in findings if not finding.is_fault), findings[0])


def _check_candidate(directory: str, name: str, row: PublishedFile) -> Finding:
    path = storage.join(directory, name)
    size = storage.size(path)
    if size != row.bytes:
        return _compare(path, "wrong size", f"{size} bytes", f"{row.bytes} bytes")
    if row.md5 is None:
        return Finding(file=path, status="right", detail="only its size was published", is_fault=False)
    return _compare(path, "wrong md5", file_md5(path), row.md5)


def _is_at(name: str, pattern: str) -> bool:
    """Whether the path ends in the pattern's components."""
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) >= len(wanted) and all(map(fnmatch, parts[-len(wanted) :], wanted))
