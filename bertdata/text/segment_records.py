"""Write text parts (files with one sentence per line) from the records of files in any format."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace

from bertdata._native import Engine
from bertdata.errors import DataError, SettingsError
from bertdata.io.file_identity import FileIdentity, add_md5, check_all_unchanged
from bertdata.io.process_pool import ProcessPool
from bertdata.text.directory import TextDirectory
from bertdata.text.manifest import TextManifest, make_text_input
from bertdata.text.record_documents import PieceToDocuments
from bertdata.text.record_parts import RecordParts
from bertdata.text.record_plan import RecordPlan
from bertdata.text.selection.duplicates import DuplicateList, find_duplicates
from bertdata.text.selection.evaluation_texts import load_ngrams
from bertdata.text.settings import SegmentCounts
from bertdata.text.splitter import LanguageSplitterLoader

OnPieceDone = Callable[[int, int], None]
"""Function that is called after each piece (a group of records).

Its arguments are the number of the piece's file and the size of the piece in bytes. In compressed files, the
size of the unpacked text counts.
"""


def segment_records(
    plan: RecordPlan,
    directory: str,
    load_splitter: LanguageSplitterLoader,
    *,
    workers: int = 1,
    engine: Engine | None = None,
    progress: OnPieceDone | None = None,
    hashing: OnPieceDone | None = None,
    on_unsplit: Callable[[Mapping[str, int]], None] | None = None,
) -> SegmentCounts:
    """Write the parts of all records, in the order of their files, into a directory.

    The output has the same bytes for any number of workers, and however the records are divided into files. A
    run after a crash keeps the finished parts.

    Raises InputError for an unusable record, unless the settings skip such records, and for damaged files.
    Raises DatasetError if the directory holds files that ``segment`` does not write.

    engine: whether the C++ kernel or Python searches for n-grams of evaluation sets.
    progress: function that is called after each piece.
    hashing: function that is called after each piece of the first pass, which looks for duplicates.
    on_unsplit: function that is called at the end with the number of records of each language without a
        sentence splitter, by ISO 639-1 code. It is not called for a directory that an earlier run finished.
    """
    if workers < 1:
        raise SettingsError(f"workers is {workers}, expected 1 or more")
    text, selection = TextDirectory(directory, plan), plan.settings.selection
    unprotected = None
    # Load the evaluation texts before the workers are forked, so that the workers share this memory.
    if selection.exclude:
        loaded = load_ngrams(selection.exclude, selection.exclude_ngram, engine, plan.settings.records)
        unprotected = loaded.short_texts
    # 1. Hash all files, to recognise a finished directory and to notice files that change during the run. 2.
    # With --dedup, a first pass over all records finds the duplicates. 3. The main pass writes the parts.
    # Held-out documents and removed records go to scratch files. 4. _finish writes the held-out documents,
    # the list of removed records and the manifest.
    with ProcessPool(workers) as pool:
        identities = [hashed for _, hashed in pool.in_order(add_md5, plan.identities)]
        md5s = [identity.md5 for identity in identities]
        finished = text.finished()
        if finished is not None and [entry.md5 for entry in finished.inputs] == md5s:
            text.keep_finished(finished)
            return finished.counts
        with text.commit.run(), ExitStack() as stack:
            parts = RecordParts(text, identities, progress or _ignore_progress)
            duplicates = None
            try:
                if selection.dedup is not None:
                    path = find_duplicates(text, parts.sources, pool, identities, hashing or _ignore_progress)
                    duplicates = DuplicateList(path, stack)
                parts.write(pool, PieceToDocuments(plan.settings, load_splitter, engine), duplicates)
            except DataError:
                # If a file changed during the run, say so. An error about damage would be misleading.
                check_all_unchanged(identities)
                raise
            counts = _finish_directory(text, identities, parts, pool, unprotected).counts
            if on_unsplit is not None:
                on_unsplit(parts.unsplit)
            return counts


def _ignore_progress(file: int, size: int) -> None:
    """Do nothing. Used if the caller wants no progress."""


def _finish_directory(
    text: TextDirectory[RecordPlan],
    identities: list[FileIdentity],
    parts: RecordParts,
    pool: ProcessPool,
    unprotected: int | None,
) -> TextManifest:
    """Write the remaining files and the manifest, and return the manifest."""
    plan = text.plan
    check_all_unchanged(identities)
    inputs = [
        make_text_input(name, identity.md5, replace(counts, bytes_in=identity.state.bytes), kind)
        for name, identity, counts, kind in zip(
            plan.inputs, identities, parts.counts, plan.kinds, strict=True
        )
    ]
    made = [*parts.made, *parts.write_other_files()]
    return text.finish(inputs, made, in_order=pool.in_order, unprotected=unprotected)
