"""Text as fairseq's binarised lines: ``train.bin``, ``train.idx``, ``dict.txt``, and their md5s.

A line of the text is its ids and ``</s>``, a blank line ``</s>`` alone, the lines of all files one after the
other. Needs NumPy when it is imported.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bertdata.errors import DatasetError, InputError
from bertdata.examples.columns import Array
from bertdata.io import storage
from bertdata.io.file_check import HashingSink, md5_of
from bertdata.io.file_identity import read_identified
from bertdata.io.file_kind import refuse_other_kinds, utf8_remedy
from bertdata.io.manifest_file import MD5SUMS_NAME, md5sum_line
from bertdata.io.process_pool import ProcessPool
from bertdata.shards.fairseq.lines import LinesWriter, id_type
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME, END, dictionary_of, fairseq_ids
from bertdata.tokens.files import TokenizerFile
from bertdata.tokens.lines import universal_newlines
from bertdata.tokens.load import tokenizer_of, vocabulary_of

TRAIN_BIN, TRAIN_INDEX = "train.bin", "train.idx"
_FILES = {TRAIN_BIN, TRAIN_INDEX, DICTIONARY_NAME, MD5SUMS_NAME}

Told = Callable[[int, int, str], None]
"""Called with the files that are done, all files, and the one that was just finished."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BinarisedText:
    """A directory of fairseq's that was made of text. tokens: ids with the end tokens."""

    directory: str
    lines: int
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LinesTask:
    """Encode the lines of a file of text."""

    path: str
    tokenizer: TokenizerFile


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class EncodedLines:
    """The lines of a file in fairseq's ids, each with its end token, and the count of each id."""

    ids: Array
    ends: Array
    counts: Array


def encode_lines(task: LinesTask) -> EncodedLines:
    """The task's lines. InputError for a file that is not UTF-8 text."""
    data = read_identified(task.path)
    refuse_other_kinds(data, task.path)
    try:
        rows = universal_newlines(data).decode().split("\n")
    except UnicodeDecodeError as error:
        raise InputError.not_utf8(task.path, data, error.start, utf8_remedy(data, task.path)) from None
    if rows[-1] == "":
        rows.pop()
    vocabulary = vocabulary_of(task.tokenizer)
    found = tokenizer_of(task.tokenizer).encode_each(rows)
    table = np.array(fairseq_ids(vocabulary), np.uint32)
    before, ends = table[np.asarray(found.ids)], np.asarray(found.ends).astype(np.int64)
    ids = np.insert(before, ends, END)
    return EncodedLines(
        ids=ids.astype(id_type(len(table))),
        ends=ends + np.arange(1, len(ends) + 1),
        counts=np.bincount(ids, minlength=len(table)),
    )


def binarise_text(
    paths: Sequence[str], output: str, tokenizer: TokenizerFile, *, workers: int, told: Told
) -> BinarisedText:
    """Write the directory of the files' lines, in the files' order.

    The bytes are the same for any number of workers.

    DatasetError where the directory holds anything else, SettingsError for a tokeniser that fairseq's
    dictionary cannot hold, InputError for a file that cannot be read.
    """
    _refuse_others(output)
    vocabulary = vocabulary_of(tokenizer)
    size = len(fairseq_ids(vocabulary))
    dictionary_of(vocabulary, [0] * size)
    storage.make_directory(output)
    counts, lines, tokens = np.zeros(size, np.int64), 0, 0
    md5s: dict[str, str] = {}
    tasks = [LinesTask(path=path, tokenizer=tokenizer) for path in paths]
    with ProcessPool(workers) as pool, storage.open_output(storage.join(output, TRAIN_BIN)) as file:
        sink = HashingSink(file.write)
        writer = LinesWriter(sink=sink, kind=id_type(size))
        for number, (task, found) in enumerate(pool.in_order(encode_lines, tasks), 1):
            writer.write(found.ids, found.ends)
            counts += found.counts
            lines, tokens = lines + len(found.ends), tokens + len(found.ids)
            told(number, len(tasks), f"{storage.base_name(task.path)} ({len(found.ends)} lines)")
    md5s[TRAIN_BIN] = sink.md5
    dictionary = dictionary_of(vocabulary, counts.tolist())
    for name, data in ((TRAIN_INDEX, writer.index()), (DICTIONARY_NAME, dictionary.dump())):
        md5s[name] = md5_of(data)
        _write(storage.join(output, name), data)
    listed = "".join(md5sum_line(md5s[name], name) for name in sorted(md5s))
    _write(storage.join(output, MD5SUMS_NAME), listed.encode())
    return BinarisedText(directory=output, lines=lines, tokens=tokens)


def _write(path: str, data: bytes) -> None:
    with storage.open_output(path) as file:
        file.write(data)


def _refuse_others(output: str) -> None:
    if not storage.exists(output):
        return
    if not storage.is_directory(output):
        raise DatasetError(f"{output}: is a file, expected a directory or nothing")
    others = sorted(set(storage.list_files(output)) - _FILES)
    if others:
        raise DatasetError(f"{output}: holds {others[0]}, expected an empty directory, or one of fairseq's")
