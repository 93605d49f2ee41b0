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
    make_binarised_plan,
    parse_binarised_manifest,
)
from bertdata.errors import InputError
from bertdata.examples.columns import Array
from bertdata.io import storage
from bertdata.io.directory_protocol import Commit
from bertdata.io.file_check import FileEntry, HashingSink, check_file, compute_file_md5, compute_md5
from bertdata.io.file_identity import read_identified
from bertdata.io.file_kind import refuse_other_kinds, suggest_utf8_remedy
from bertdata.io.foreign_text import replace_line_ends
from bertdata.io.manifest_file import MANIFEST_NAME, MD5SUMS_NAME
from bertdata.io.process_pool import ProcessPool
from bertdata.shards.fairseq.lines import LinesWriter, choose_id_type
from bertdata.text.text_plan import make_relative_names
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME, END, compute_fairseq_ids, make_dictionary
from bertdata.tokens.files import TokenizerFile, TokenizerJson
from bertdata.tokens.load import tokenizer_of, vocabulary_of

TRAIN_BIN, TRAIN_INDEX = "train.bin", "train.idx"

ProgressCallback = Callable[[int, int, str], None]
"""Function that is called whenever a file is finished.

Its arguments are the number of finished files, the number of all files, and a line of text about the finished
file.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class BinarisedText:
    """The result of writing a directory in fairseq's binary format.

    tokens: number of token ids in the directory, including the ``</s>`` at the end of each line.
    """

    directory: str
    lines: int
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LinesTask:
    """The task of encoding the lines of one text file as token ids.

    Tasks are sent to worker processes, which pass them to ``encode_lines``.
    """

    path: str
    tokenizer: TokenizerFile


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class EncodedLines:
    """The lines of one text file as token ids.

    ids: ids of all lines in fairseq's numbering. Each line is followed by the id of ``</s>``.
    ends: for each line, the index in ``ids`` at which the line ends.
    counts: number of times that each id occurs, indexed by id.
    bytes: size of the text file.
    md5: md5 of the text file.
    """

    ids: Array
    ends: Array
    counts: Array
    bytes: int
    md5: str


def encode_lines(task: LinesTask) -> EncodedLines:
    """Read a text file and return its lines as token ids.

    Raises InputError if the file is not UTF-8 text.
    """
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
    # table converts the tokeniser's ids to fairseq's ids. Then </s>, whose id is 2, is inserted after each
    # line. For example, ids [7, 8, 9] with ends [2, 2, 3], where the second line is blank, become ids [7, 8,
    # 2, 2, 9, 2] with ends [3, 4, 6].
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
    paths: Sequence[str],
    output: str,
    tokenizer: TokenizerFile,
    *,
    workers: int,
    on_progress: ProgressCallback,
) -> BinarisedText:
    """Write text files to a directory in fairseq's binary format, in the order of the files.

    The written bytes do not depend on the number of workers. Nothing is written if the directory already
    holds the finished result for the same files and tokeniser.

    Raises DatasetError if the directory holds anything else, or if another run is writing to it. Raises
    SettingsError if fairseq's dictionary format cannot represent the tokeniser's tokens. Raises InputError if
    a file cannot be read.
    """
    vocabulary = vocabulary_of(tokenizer)
    make_dictionary(vocabulary, [0] * len(compute_fairseq_ids(vocabulary)))
    roles = dict(tokenizer.roles) if isinstance(tokenizer, TokenizerJson) else {}
    record = {"kind": vocabulary.kind, "vocabulary": vocabulary.md5, "roles": roles}
    names = make_relative_names(paths)
    commit = Commit(output, BINARISED_KIND, make_binarised_plan(record, names), _read_plan)
    tasks = [LinesTask(path=path, tokenizer=tokenizer) for path in paths]
    with ProcessPool(workers) as pool:
        manifest = _find_finished_manifest(commit, paths, pool)
        if manifest is not None:
            commit.release_finished({MD5SUMS_NAME: manifest.md5sums()})
        else:
            with commit.run():
                manifest = _write_text(commit, tasks, names, record, pool, on_progress)
    return BinarisedText(directory=output, lines=manifest.lines, tokens=manifest.tokens)


def _find_finished_manifest(
    commit: Commit, paths: Sequence[str], pool: ProcessPool
) -> BinarisedManifest | None:
    """Return the directory's manifest if the directory is finished and need not be written again.

    This is the case if its files are undamaged and the text files still have the md5s in the manifest.
    Returns None otherwise.
    """
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
    on_progress: ProgressCallback,
) -> BinarisedManifest:
    """Encode the text files and write all files of the directory.

    Files of an interrupted run are not reused, because the dictionary lists the tokens of all lines by
    frequency.
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
            on_progress(number, len(tasks), f"{storage.get_base_name(task.path)} ({len(found.ends)} lines)")
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


def _read_plan(data: bytes, where: str) -> dict[str, Any]:
    """Return the settings in a manifest that decide the bytes of the directory.

    The directory protocol compares them with the settings of a new run, which may only continue a directory
    with equal settings.
    """
    return parse_binarised_manifest(data, where).make_plan()
