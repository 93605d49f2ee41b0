"""Conversion of text to fairseq's binary dataset: ``train.bin``, ``train.idx``, ``dict.txt`` and a manifest.

Each line of the text becomes its token ids followed by ``</s>``. A blank line is ``</s>`` alone. The lines of
all files are concatenated. The directory is written through ``io.directory_protocol``. Importing this module
requires NumPy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertdata.dataset.binarised_manifest import (
    BINARISED_KIND,
    BinarisedInput,
    BinarisedManifest,
    parse_binarised_manifest,
    plan_terms,
)
from bertdata.errors import InputError
from bertdata.examples.columns import Array
from bertdata.io import storage
from bertdata.io.directory_protocol import Commit
from bertdata.io.file_check import FileEntry, HashingSink, check_file, compute_file_md5, compute_md5
from bertdata.io.file_identity import read_identified
from bertdata.io.file_kind import refuse_other_kinds, suggest_utf8_remedy
from bertdata.io.foreign_text import replace_line_ends
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.io.process_pool import ProcessPool
from bertdata.shards.fairseq.lines import LinesWriter, choose_id_type
from bertdata.text.text_plan import make_relative_names
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME, END, compute_fairseq_ids, make_dictionary
from bertdata.tokens.files import TokenizerFile, TokenizerJson
from bertdata.tokens.load import tokenizer_of, vocabulary_of

TRAIN_BIN, TRAIN_INDEX = "train.bin", "train.idx"

Told = Callable[[int, int, str], None]
"""Progress callback.

It gets the number of finished files, the number of all files, and a line about the file just finished.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class BinarisedText:
    """A finished fairseq directory.

    tokens: number of ids, including the ``</s>`` of each line.
    """

    directory: str
    lines: int
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LinesTask:
    """A task for a worker process: encode the lines of one text file.

    ``encode_lines`` does the task and returns an EncodedLines.
    """

    path: str
    tokenizer: TokenizerFile


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class EncodedLines:
    """The encoded lines of one file.

    ids: ids of all lines in fairseq's numbering, each line followed by ``</s>``.
    ends: end of each line in ``ids``.
    counts: number of occurrences of each id.
    bytes, md5: of the text file.
    """

    ids: Array
    ends: Array
    counts: Array
    bytes: int
    md5: str


def encode_lines(task: LinesTask) -> EncodedLines:
    """Read a text file and encode its lines. Raises InputError if the file is not UTF-8 text."""
    data = read_identified(task.path)
    refuse_other_kinds(data, task.path)
    try:
        rows = replace_line_ends(data).decode().split("\n")
    except UnicodeDecodeError as error:
        raise InputError.not_utf8(
            task.path, data, error.start, suggest_utf8_remedy(data, task.path)
        ) from None
    if rows[-1] == "":
        rows.pop()
    vocabulary = vocabulary_of(task.tokenizer)
    found = tokenizer_of(task.tokenizer).encode_each(rows)
    # table[id] is fairseq's id of the tokeniser's id. Then put </s> (id 2) behind each line:
    # ids [7, 8, 9], ends [2, 2, 3] -> [7, 8, 2, 2, 9, 2], ends [3, 4, 6]. The second line is blank.
    table = np.array(compute_fairseq_ids(vocabulary), np.uint32)
    before, ends = table[np.asarray(found.ids)], np.asarray(found.ends).astype(np.int64)
    ids = np.insert(before, ends, END)
    return EncodedLines(
        ids=ids.astype(choose_id_type(len(table))),
        ends=ends + np.arange(1, len(ends) + 1),
        counts=np.bincount(ids, minlength=len(table)),
        bytes=len(data),
        md5=compute_md5(data),
    )


def binarise_text(
    paths: Sequence[str], output: str, tokenizer: TokenizerFile, *, workers: int, told: Told
) -> BinarisedText:
    """Write a fairseq directory of the files' lines, in the order of the files.

    The bytes do not depend on the number of workers. If the directory is already finished for the same files
    and tokeniser, nothing is written.

    Raises DatasetError if the directory holds anything else or another run is writing there. Raises
    SettingsError if fairseq's dictionary cannot represent the tokeniser. Raises InputError if a file cannot
    be read.
    """
    vocabulary = vocabulary_of(tokenizer)
    make_dictionary(vocabulary, [0] * len(compute_fairseq_ids(vocabulary)))
    roles = dict(tokenizer.roles) if isinstance(tokenizer, TokenizerJson) else {}
    record = {"kind": vocabulary.kind, "vocabulary": vocabulary.md5, "roles": roles}
    names = make_relative_names(paths)
    commit = Commit(output, BINARISED_KIND, plan_terms(record, names), _read_terms)
    tasks = [LinesTask(path=path, tokenizer=tokenizer) for path in paths]
    with ProcessPool(workers) as pool:
        manifest = _find_finished(commit, paths, pool)
        if manifest is not None:
            commit.release_finished()
        else:
            with commit.run():
                manifest = _write_text(commit, tasks, names, record, pool, told)
    return BinarisedText(directory=output, lines=manifest.lines, tokens=manifest.tokens)


def _find_finished(commit: Commit, paths: Sequence[str], pool: ProcessPool) -> BinarisedManifest | None:
    """Return the directory's manifest if its files are intact and its inputs are the same. Else None."""
    commit.refuse_others()
    data = commit.manifest()
    if data is None:
        return None
    manifest = parse_binarised_manifest(data, commit.path(MANIFEST_NAME))
    if any(check_file(commit.path(one.name), one.bytes, one.md5) for one in manifest.files):
        return None
    md5s = [md5 for _, md5 in pool.in_order(compute_file_md5, paths)]
    return manifest if md5s == [one.md5 for one in manifest.inputs] else None


def _write_text(
    commit: Commit,
    tasks: Sequence[LinesTask],
    names: Sequence[str],
    record: dict[str, Any],
    pool: ProcessPool,
    told: Told,
) -> BinarisedManifest:
    """Write all files.

    Nothing of an interrupted run is reused, since the dictionary counts the tokens of all lines.
    """
    vocabulary = vocabulary_of(tasks[0].tokenizer)
    size = len(compute_fairseq_ids(vocabulary))
    counts, inputs = np.zeros(size, np.int64), []
    with commit.open(TRAIN_BIN) as file:
        sink = HashingSink(file.write)
        writer = LinesWriter(sink=sink, kind=choose_id_type(size))
        for number, (task, found) in enumerate(pool.in_order(encode_lines, tasks), 1):
            writer.write(found.ids, found.ends)
            counts += found.counts
            inputs.append(
                BinarisedInput(
                    name=names[number - 1],
                    bytes=found.bytes,
                    md5=found.md5,
                    lines=len(found.ends),
                    tokens=len(found.ids),
                )
            )
            told(number, len(tasks), f"{storage.get_base_name(task.path)} ({len(found.ends)} lines)")
    small = {
        TRAIN_INDEX: writer.index(),
        DICTIONARY_NAME: make_dictionary(vocabulary, counts.tolist()).dump(),
    }
    for name, data in small.items():
        commit.write(name, data)
    entries = [
        sink.entry(TRAIN_BIN),
        *(FileEntry(name=name, bytes=len(data), md5=compute_md5(data)) for name, data in small.items()),
    ]
    manifest = BinarisedManifest(
        tokenizer=record, inputs=tuple(inputs), files=tuple(sorted(entries, key=lambda entry: entry.name))
    )
    commit.finish(manifest.dump(), manifest.md5sums())
    return manifest


def _read_terms(data: bytes, where: str) -> dict[str, Any]:
    """Return a manifest's terms: the settings that decide the directory's bytes.

    The commit protocol compares them with the terms of a new run.
    """
    return parse_binarised_manifest(data, where).terms()
