"""Hold a directory tree against a published table of sizes and md5s, or of sums of shards."""

from fnmatch import fnmatch

from bertdata.dataset.findings import Finding, Report, compare, in_parallel, right
from bertdata.dataset.published.sums import find_sums
from bertdata.dataset.published.tables import PublishedFile, load_table
from bertdata.errors import MissingInputError, ShardError, UsageError
from bertdata.io import storage
from bertdata.io.file_check import file_md5
from bertdata.io.process_pool import run_all
from bertdata.shards.row_sums import row_sum


def verify_table(directory: str, table: str, workers: int = 1) -> Report:
    """Hold a directory tree against a published table; workers: processes that compute sums of shards."""
    sums = find_sums(table)
    if sums is not None:
        return _verify_sums(directory, table, sums, workers)
    return _verify_files(directory, table)


def _verify_sums(directory: str, table: str, sums: dict[str, str], workers: int) -> Report:
    """Hold a directory of shards against their sums: right, wrong sum, damaged, missing or extra.

    All but right are faults: the table lists one data set whole.
    """
    _refuse_file(directory, table)
    names = [name for name in storage.list_files(directory) if name.endswith(".hdf5")]
    findings = {
        name: Finding(file=storage.join(directory, name), status="missing")
        for name in sums.keys() - set(map(storage.base_name, names))
    }
    work = []
    for name in names:
        expected = sums.get(storage.base_name(name))
        path = storage.join(directory, name)
        if expected is None:
            findings[name] = Finding(file=path, status="extra", detail=f"the table {table} has no such shard")
        else:
            work.append((name, path, expected))
    findings |= dict(run_all(_check_sum, work, workers))
    return Report(path=directory, findings=tuple(findings[name] for name in sorted(findings)))


def _check_sum(work: tuple[str, str, str]) -> tuple[str, Finding]:
    name, path, expected = work
    try:
        return name, compare(path, "wrong sum", row_sum(path), expected)
    except (ShardError, MissingInputError) as error:
        return name, Finding(file=path, status="damaged", detail=str(error).removeprefix(f"{path}: "))


def _refuse_file(directory: str, table: str) -> None:
    if not storage.is_directory(directory):
        raise UsageError(f"{directory}: is not a directory, expected one to search for the files of {table}")


def _verify_files(directory: str, table: str) -> Report:
    """Hold a directory tree against a published table: right, wrong size, wrong md5 or missing, for each row.

    A missing file is reported but no fault, so that any stage's directory can be checked; a tree that
    holds none of the files is a fault.
    """
    rows = load_table(table)
    _refuse_file(directory, table)
    names = storage.list_files(directory)
    findings = in_parallel(lambda row: _check_published(directory, names, row), rows)
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
        return compare(row.label, "wrong size", f"{total} bytes", f"{row.bytes} bytes")
    findings = [_check_candidate(directory, name, row) for name, _ in matches]
    return next((finding for finding in findings if not finding.is_fault), findings[0])


def _check_candidate(directory: str, name: str, row: PublishedFile) -> Finding:
    path = storage.join(directory, name)
    size = storage.size(path)
    if size != row.bytes:
        return compare(path, "wrong size", f"{size} bytes", f"{row.bytes} bytes")
    if row.md5 is None:
        return right(path, "only its size was published")
    return compare(path, "wrong md5", file_md5(path), row.md5)


def _is_at(name: str, pattern: str) -> bool:
    """True if the path ends in the pattern's components."""
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) >= len(wanted) and all(map(fnmatch, parts[-len(wanted) :], wanted))
