"""Sequences of token ids in a Python list, for tests of loaders."""

import hashlib

import numpy as np

from bertdata.examples.columns import Array


class ListedSequences:
    """An in-memory version of ``bertdata.loaders.sequences.IndexedSequences``."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows = rows
        self.digest = hashlib.md5(repr(rows).encode(), usedforsecurity=False).hexdigest()

    @property
    def lengths(self) -> Array:
        return np.array([len(row) for row in self.rows], np.int64)

    def take(self, numbers: Array, most: int) -> Array:
        return np.array([id for number in numbers.tolist() for id in self.rows[number][:most]], np.uint16)
