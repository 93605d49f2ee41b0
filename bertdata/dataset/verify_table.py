"""Verification of a directory tree against a published table of file sizes and md5s, or of checksums of
shards.
"""

import os
import re
from fnmatch import fnmatch
from functools import cache

from bertdata.dataset.findings import (
    EXTRA,
    MISSING,
    Finding,
    Report,
    check_in_parallel,
    compare_values,
    make_right_finding,
)
from bertdata.dataset.published.sums import load_sums
from bertdata.dataset.published.tables import PublishedFile, load_table
from bertdata.errors import MissingInputError, ShardError, UsageError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.io.listing import list_inputs
from bertdata.io.process_pool import run_all
from bertdata.shards.crc32c import compute_masked_checksum
from bertdata.shards.row_sums import compute_row_sum

_TFRECORDS = "tfrecord"
"""Directory name in the paths of a table that matches any directory of TFRecord files."""


def verify_table(directory: str, table: str, workers: int = 1) -> Report:
    """Verify the files below a directory against a published table.

    table: name of a built-in table, or path of a .tsv file.
    workers: number of processes that compute checksums of shards.
    """
    sums = load_sums(table)
    if sums is not None:
        return _verify_sums(directory, table, sums, workers)
    return _verify_files(directory, table)


def _verify_sums(directory: str, table: str, sums: dict[str, str], workers: int) -> Report:
    """Verify a directory of shards against published checksums.

    The status of a file is right, wrong sum, damaged, missing or extra. All except right are faults, because
    the table lists a complete data set.
    """
    _refuse_file(directory, table)
    names = [name for name in list_inputs(directory, hidden=True).names if name.endswith(".hdf5")]
    findings = {
        name: Finding(file=storage.join(directory, name), status=MISSING)
        for name in sums.keys() - set(map(storage.get_base_name, names))
    }
    work = []
    for name in names:
        expected = sums.get(storage.get_base_name(name))
        path = storage.join(directory, name)
        if expected is None:
            findings[name] = Finding(file=path, status=EXTRA, detail=f"the table {table} has no such shard")
        else:
            work.append((name, path, expected))
    findings |= dict(run_all(_check_sum, work, workers))
    return Report(path=directory, findings=tuple(findings[name] for name in sorted(findings)))


def _check_sum(work: tuple[str, str, str]) -> tuple[str, Finding]:
    name, path, expected = work
    try:
        return name, compare_values(path, "wrong sum", compute_row_sum(path), expected)
    except (ShardError, MissingInputError) as error:
        return name, Finding(file=path, status="damaged", detail=str(error).removeprefix(f"{path}: "))


def _refuse_file(directory: str, table: str) -> None:
    if not storage.exists(directory):
        raise MissingInputError(f"{directory}: no such directory")
    if not storage.is_directory(directory):
        raise UsageError(f"{directory}: is not a directory, expected one to search for the files of {table}")


def _verify_files(directory: str, table: str) -> Report:
    """Verify the files below a directory against a table of sizes and md5s.

    The status of a row is right, missing, wrong size or wrong md5.

    A missing file is reported but is no fault. The table lists the files of all stages, such as download and
    extraction, and a user may verify the directory of only one stage. If none of the table's files exists,
    this is a fault.
    """
    rows = load_table(table)
    _refuse_file(directory, table)
    tree = _FileTree(directory, rows)
    findings = check_in_parallel(tree.check, rows)
    if all(finding.status == MISSING for finding in findings):
        findings.append(
            Finding(
                file=directory,
                status=f"holds no file of the table {table}",
                detail=tree.find_misplaced_file(),
            )
        )
    return Report(path=directory, findings=tuple(findings))


class _FileTree:
    """The files below a directory, which are compared with the rows of a table."""

    def __init__(self, directory: str, rows: list[PublishedFile]) -> None:
        self._directory = directory
        self._rows = rows
        self._names = list_inputs(directory, hidden=True).names
        self._above = _split_path(directory)
        self._md5 = cache(compute_file_md5)
        self._is_tfrecord = cache(lambda name: _has_tfrecord_header(self._make_path(name)))

    def check(self, row: PublishedFile) -> Finding:
        """Compare a row of the table with the files that it describes, and return the finding."""
        matches = [
            (name, pattern)
            for pattern in row.paths
            for name in self._names
            if self._matches_path(name, pattern)
        ]
        if any("*" in pattern for _, pattern in matches):
            return self._check_total(matches, row)
        claimed = [name for name, _ in matches if self._match_row(name) is row]
        findings = [self._check_file(name, row) for name in claimed]
        if not findings:
            return Finding(file=row.label, status=MISSING, is_fault=False)
        return next((finding for finding in findings if not finding.is_fault), findings[0])

    def _check_total(self, matches: list[tuple[str, str]], row: PublishedFile) -> Finding:
        """Return the finding for a row whose size is the total size of several files in a directory.

        If files in several directories match, the directory with most of them is used. If some files are
        missing there, the total cannot be checked, which is no fault.
        """
        sizes: dict[str, dict[str, int]] = {}
        for name, _ in matches:
            sizes.setdefault(storage.get_parent(name), {})[name] = storage.read_size(self._make_path(name))
        fullest = max(sizes.values(), key=len)
        total, wanted = sum(fullest.values()), _parse_file_count(matches[0][1])
        if total != row.bytes and wanted is not None and len(fullest) < wanted:
            said = f"{len(fullest)} of {wanted} files are here"
            return Finding(file=row.label, status=MISSING, is_fault=False, detail=said)
        return compare_values(row.label, "wrong size", f"{total} bytes", f"{row.bytes} bytes")

    def find_misplaced_file(self) -> str | None:
        """Return a hint about a file whose name is in the table but whose directory is not.

        Returns None if there is no such file.
        """
        for row in self._rows:
            for pattern in row.paths:
                for name in self._names:
                    if fnmatch(storage.get_base_name(name), storage.get_base_name(pattern)):
                        return f"{name} is in the table as {pattern}"
        return None

    def _check_file(self, name: str, row: PublishedFile) -> Finding:
        path = self._make_path(name)
        size = storage.read_size(path)
        if size != row.bytes:
            expected = " or ".join(f"{one.bytes} bytes" for one in self._find_rows(name))
            return compare_values(path, "wrong size", f"{size} bytes", expected)
        if row.md5 is None:
            return make_right_finding(path, "only its size was published")
        return compare_values(path, "wrong md5", self._md5(path), row.md5)

    def _match_row(self, name: str) -> PublishedFile:
        """Return the row of the table that a file should be compared with.

        If several rows describe its path, the row whose size or md5 is that of the file is returned.
        """
        rows, path = self._find_rows(name), self._make_path(name)
        if len(rows) == 1:
            return rows[0]
        size = storage.read_size(path)
        fitting = [row for row in rows if row.bytes == size] or rows
        if len(fitting) == 1 or fitting is rows:
            return fitting[0]
        return next((row for row in fitting if row.md5 == self._md5(path)), fitting[0])

    def _find_rows(self, name: str) -> list[PublishedFile]:
        """Return the rows that describe a single file and whose path matches this file."""
        return [
            row for row in self._rows if any(self._matches_path(name, p) for p in row.paths if "*" not in p)
        ]

    def _matches_path(self, name: str, pattern: str) -> bool:
        """Return True if the path of a file ends with the path in a row.

        The file's path includes the directories above the tree. The directory ``tfrecord`` in a row matches
        any directory if the file is a TFRecord file, because MLPerf does not name that directory.
        """
        parts, wanted = [*self._above, *name.split("/")], pattern.split("/")
        if len(parts) >= len(wanted) and all(map(fnmatch, parts[-len(wanted) :], wanted)):
            return True
        is_named = wanted[0] == _TFRECORDS and len(wanted) == 2 and fnmatch(parts[-1], wanted[1])
        return is_named and self._is_tfrecord(name)

    def _make_path(self, name: str) -> str:
        return storage.join(self._directory, name)


def _parse_file_count(pattern: str) -> int | None:
    """Return the number of files that a pattern states in its name, or None.

    For example, the pattern part-*-of-00500 states 500.
    """
    told = re.search(r"-of-([0-9]{1,9})", pattern)
    return int(told[1]) if told else None


def _has_tfrecord_header(path: str) -> bool:
    """Return True if the file begins like a TFRecord file, with a length and the right checksum of it."""
    with storage.open_input(path) as file:
        head = file.read(12)
    return len(head) == 12 and compute_masked_checksum(head[:8]) == int.from_bytes(head[8:], "little")


def _split_path(directory: str) -> list[str]:
    """Return the names of the directory and of all directories above it."""
    whole = directory if storage.is_remote(directory) else os.path.abspath(directory.removeprefix("file://"))
    return whole.rstrip("/").split("/")
