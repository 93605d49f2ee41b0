"""The kernel of a byte-level BPE, made of its settings and the tables of characters."""

from typing import Any
from bertdata._native import kernels
from bertdata.records import Vocabulary
from bertdata.tokens.bpe.settings import ByteBpe


def make_kernel(bpe: ByteBpe, vocabulary: Vocabulary) -> Any:
    raise NotImplementedError
