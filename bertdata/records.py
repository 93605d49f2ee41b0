"""The plain records that travel between steps.

Flat buffers with end offsets, never lists of lists: a part of 27 MB becomes a handful of buffers.
A buffer is anything with the buffer protocol whose items are unsigned integers: a ``memoryview``,
``array.array`` or NumPy array. Token ids are 16 bits wide where the vocabulary allows, else 32.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Protocol

Buffer = Any  # collections.abc.Buffer exists from Python 3.12 on


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Vocabulary:
    """A WordPiece vocabulary as one dialect reads it.

    ``replacements[i]`` is the id of the i-th distinct token: what a random replacement draws from.
    It is the identity except where a dialect counts duplicate lines.
    """

    name: str
    md5: str
    ids: dict[str, int]
    replacements: tuple[int, ...]
    size: int
    cls: int
    sep: int
    mask: int
    unk: int

    def continues_word(self) -> bytes:
        """One byte an id: 1 where the token starts with ``##``."""
        flags = bytearray(self.size)
        for token, token_id in self.ids.items():
            flags[token_id] = token.startswith("##")
        return bytes(flags)

    def words(self) -> list[str]:
        """The token of each id, ``[unused]`` for an id that no token has."""
        words = ["[unused]"] * self.size
        for token, token_id in self.ids.items():
            words[token_id] = token
        return words


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Documents:
    """The tokenised text of one input, or of several read as one.

    ``ids`` holds all token ids; sentence s is ``ids[sentence_ends[s-1]:sentence_ends[s]]`` and
    document d is the sentences ``document_ends[d-1]:document_ends[d]`` (uint32 each; before the first
    stands 0).
    """

    ids: Buffer
    sentence_ends: Buffer
    document_ends: Buffer

    @property
    def tokens(self) -> int:
        return len(self.ids)

    @property
    def sentences(self) -> int:
        return len(self.sentence_ends)

    @property
    def documents(self) -> int:
        return len(self.document_ends)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardLayout:
    """The shape of a shard's records: S ids, P predictions, Graphcore's remasked order or not."""

    max_seq_length: int
    max_predictions_per_seq: int
    remask: bool = False


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ExampleBatch:
    """N examples without padding, column by column.

    ``ids`` are the model's inputs, masks applied, ``[CLS] A [SEP] B [SEP]``; example i owns
    ``ids[ends[i-1]:ends[i]]``, of which the first ``first_lengths[i]`` are segment 0. Its masks are
    ``positions[mask_ends[i-1]:mask_ends[i]]``, ascending, and ``labels`` at the same place (the
    original ids). ``next_labels[i]`` is 1 where B is random. Everything else that a shard holds
    (padding, input mask, segment ids, weights, remasked order) follows from these.

    Item types: ``ids`` and ``labels`` uint16 or uint32, ``positions`` uint16, ``next_labels`` uint8,
    the others uint32.
    """

    ids: Buffer
    ends: Buffer
    first_lengths: Buffer
    positions: Buffer
    labels: Buffer
    mask_ends: Buffer
    next_labels: Buffer

    def __len__(self) -> int:
        return len(self.ends)

    def example(self, index: int) -> "Example":
        """Example ``index`` as plain lists."""
        start = self.ends[index - 1] if index else 0
        first_mask = self.mask_ends[index - 1] if index else 0
        masks = slice(first_mask, self.mask_ends[index])
        return Example(
            ids=list(map(int, self.ids[start : self.ends[index]])),
            first_length=int(self.first_lengths[index]),
            positions=list(map(int, self.positions[masks])),
            labels=list(map(int, self.labels[masks])),
            next_label=int(self.next_labels[index]),
        )

    def examples(self) -> Iterator["Example"]:
        return (self.example(index) for index in range(len(self)))

    @classmethod
    def of(cls, examples: Iterable["Example"], *, wide: bool) -> "ExampleBatch":
        """The examples as columns; ids and labels 32 bits wide if asked, else 16."""
        ids, labels = array("I" if wide else "H"), array("I" if wide else "H")
        ends, first_lengths, mask_ends = array("I"), array("I"), array("I")
        positions, next_labels = array("H"), array("B")
        for example in examples:
            ids.extend(example.ids)
            positions.extend(example.positions)
            labels.extend(example.labels)
            ends.append(len(ids))
            first_lengths.append(example.first_length)
            mask_ends.append(len(positions))
            next_labels.append(example.next_label)
        return cls(
            ids=ids,
            ends=ends,
            first_lengths=first_lengths,
            positions=positions,
            labels=labels,
            mask_ends=mask_ends,
            next_labels=next_labels,
        )


BATCH_COLUMNS = tuple(column.name for column in fields(ExampleBatch))
"""Names of a batch's columns, in the order in which kernels take and return them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One example as the specification handles it; fields as in ExampleBatch, for one row."""

    ids: list[int]
    first_length: int
    positions: list[int]
    labels: list[int]
    next_label: int


class ExampleSource(Protocol):
    """Examples held compactly until they are written."""

    def __len__(self) -> int: ...

    @property
    def tokens(self) -> int:
        """Real (not padded) positions of all examples."""
        ...

    @property
    def masked(self) -> int:
        """Masked positions of all examples."""
        ...

    def batch(self, start: int, stop: int, step: int = 1) -> ExampleBatch:
        """Examples ``range(start, stop, step)`` in final order."""
        ...
