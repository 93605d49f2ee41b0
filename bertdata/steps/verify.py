"""The step that checks files against their manifest, an md5sum file or a published table."""

import threading
from dataclasses import replace

from bertdata.dataset.chain import verify_chain
from bertdata.dataset.findings import Report
from bertdata.dataset.verify import lists_md5s, verify_files
from bertdata.dataset.verify_table import verify_table
from bertdata.errors import SettingsError
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.steps.progress import GivenProgress, OnProgress, StepProgress, choose_progress, ignore_progress
from bertdata.steps.values import (
    AnyPath,
    AnyPaths,
    convert_optional_path,
    convert_path,
    count_workers,
    list_paths,
)
from bertdata.trust.signature_check import check_signature

STAGE = "verifying"


def verify(
    path: AnyPath,
    *,
    table: str | None = None,
    content: bool = False,
    anywhere: bool = False,
    chain: bool = False,
    source: AnyPaths = (),
    public_key: AnyPath | None = None,
    signature: AnyPath | None = None,
    objective: str | None = None,
    workers: int | None = None,
    progress: GivenProgress = None,
) -> Report:
    """Return a report on a directory, manifest or md5sum file, as ``bertdata verify-md5`` does.

    Faults are listed in the report (``report.sound`` is then False), and not raised as errors.

    table: name of a published table to compare the directory with.
    content: compare the examples with the manifest, instead of the bytes of the files.
    anywhere: allow an md5sum file to list files outside its directory.
    chain: also check the manifests of the data that the dataset was made from, back to the dump.
    source: with chain, directories of parts or articles, or the dump, whose files are checked too.
    public_key: PEM file with a public key. The directory's signature is then checked too. A directory without
        manifest, such as a run or an exported model, needs a signature.
    signature: with public_key, the file with the signature. None: ``model.sig`` in the directory.
    objective: name of a user-defined objective that the examples have.
    workers: number of processes that compute checksums for a table. None: one per core.
    progress: function called with a StepProgress. It is not called with chain or table.
    """
    sources, processes = list_paths(source), count_workers(workers)
    if table is not None and content:
        raise SettingsError("table and content exclude each other: tables are of the original bytes")
    if table is not None and chain:
        raise SettingsError("table and chain exclude each other: a published table has no chain")
    if sources and not chain:
        raise SettingsError("source goes with chain")
    if objective is not None:
        find_objective(objective)
    found, key = convert_path(path), convert_optional_path(public_key)
    if key is None:
        if signature is not None:
            raise SettingsError("signature goes with public_key")
        return _verify_md5s(found, table, content, anywhere, chain, sources, processes, progress)
    signed = check_signature(found, key, convert_optional_path(signature))
    report = Report(path=found)
    # Checks that the user asked for are made, so that a directory without md5s is an error and no silent yes.
    if table is not None or content or chain or lists_md5s(found):
        report = _verify_md5s(found, table, content, anywhere, chain, sources, processes, progress)
    return replace(report, findings=(*signed.findings, *report.findings), signature=signed.summary)


def _verify_md5s(
    path: str,
    table: str | None,
    content: bool,
    anywhere: bool,
    chain: bool,
    sources: list[str],
    processes: int,
    progress: GivenProgress,
) -> Report:
    """Compare the files with the manifests or with a table. The arguments are those of ``verify``."""
    if chain:
        return verify_chain(path, sources, content=content)
    if table is not None:
        return verify_table(path, table, processes)
    shown = choose_progress(progress)
    return _verify_dataset(path, content, anywhere, None if shown is ignore_progress else shown)


def _verify_dataset(path: str, content: bool, anywhere: bool, progress: OnProgress | None) -> Report:
    """Check the files of one dataset, and report each finished file to ``progress``."""
    if progress is None:
        return verify_files(path, content=content, anywhere=anywhere)
    total = len(storage.list_files(path)) if storage.is_directory(path) else 1
    progress(StepProgress(stage=STAGE, done=0, total=total, unit="files"))
    done, one_at_a_time = 0, threading.Lock()  # several threads check files

    def report_file() -> None:
        nonlocal done
        with one_at_a_time:
            done += 1
            progress(StepProgress(stage=STAGE, done=done, total=total, unit="files"))

    return verify_files(path, content=content, anywhere=anywhere, on_file=report_file)
