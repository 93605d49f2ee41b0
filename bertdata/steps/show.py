"""The step that returns examples of a shard in readable form."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from bertdata.dataset.discover import FoundDataset, find_shard
from bertdata.dataset.vocabulary import load_dataset_vocabulary
from bertdata.errors import SettingsError, UsageError
from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout
from bertdata.shards.containers import open_reader
from bertdata.shards.mds.names import IDS_TYPES
from bertdata.shards.packed.packs import PackReader
from bertdata.shards.protocol import ShardReader
from bertdata.steps.values import AnyPath, check_positive_integer, convert_optional_path, convert_path
from bertdata.tokens.readable import make_words_readable

_ROWS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownExample:
    """An example in readable form. As a string, it is what the command ``show`` prints.

    title: the number of the example, or of the packed row and of the sequence in it.
    text: the words, the padding and the masks of the example, in one or several lines.
    example: the example itself, as the frozen dataclass of its objective.
    """

    title: str
    text: str
    example: Any

    def __str__(self) -> str:
        return f"{self.title}: {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Titled:
    """An example with its title and the layout that describes its padding."""

    title: str
    example: Any
    layout: ShardLayout


def show(
    shard: AnyPath,
    *,
    index: int = 0,
    num: int = 1,
    vocab: AnyPath | None = None,
    ids_type: str | None = None,
    objective: str | None = None,
) -> list[ShownExample]:
    """Return examples of a shard in readable form, as ``bertdata show`` prints them.

    ``print(*bertdata.show(shard), sep="\\n")`` prints them as the command does.

    shard: a TFRecord, HDF5, Parquet or MDS file, or a directory of MDS shards.
    index: number of the first example, or of the first packed row, counted from 0.
    num: number of examples or packed rows. A packed row gives an item for each of its sequences.
    vocab: vocabulary or tokenizer.json that the shard was made with. None: the copy next to the shard.
    ids_type: type of the ids in an MDS shard that does not name it.
    objective: name of a user-defined objective that the examples have.

    Raises UsageError (or a subclass) if the call is wrong, and DataError (or a subclass) if the shard is at
    fault.
    """
    if type(index) is not int or index < 0:
        raise SettingsError(f"index is {index!r}, expected an integer of 0 or more")
    check_positive_integer("num", num)
    if ids_type not in (None, *IDS_TYPES):
        raise SettingsError(f"ids_type is {ids_type!r}, expected one of {', '.join(IDS_TYPES)}")
    if objective is not None:
        find_objective(objective)
    path, vocabulary = convert_path(shard), convert_optional_path(vocab)
    dataset, found = find_shard(path, objective)
    with open_reader(
        found.path,
        objective=found.objective,
        vocabulary=vocabulary,
        padding_id=found.padding_id,
        ids_type=ids_type,
    ) as reader:
        described = find_objective(reader.layout.objective)
        words, mask_id = _find_words(dataset, vocabulary)
        rows = _list_packed_rows(reader) if isinstance(reader, PackReader) else _list_examples(reader)
        chosen = [titled for row in islice(rows, index, index + num) for titled in row]
        if not chosen:
            kind, count = "examples", len(reader)
            if isinstance(reader, PackReader):
                kind, count = "rows", reader.rows
            raise UsageError(f"--index {index}: {path} holds {count} {kind}, the last is {count - 1}")
        return [
            ShownExample(
                title=titled.title,
                text=described.describe(titled.example, words, mask_id, titled.layout).removesuffix("\n"),
                example=titled.example,
            )
            for titled in chosen
        ]


def _list_examples(reader: ShardReader) -> Iterator[list[_Titled]]:
    """Yield each example with its title, as a list of length 1, so that it is used like a packed row."""
    for number, example in enumerate(reader):
        yield [_Titled(title=f"example {number}", example=example, layout=reader.layout)]


def _list_packed_rows(reader: PackReader) -> Iterator[list[_Titled]]:
    """Yield for each packed row the list of its sequences.

    Each has a title, and a layout of the sequence's length. The layout of a row's last sequence includes all
    padding of the row, so that the padding is told once.
    """
    for number, row in enumerate(row for packs in reader.packs(_ROWS) for row in packs.rows()):
        left = reader.layout.max_seq_length - sum(len(example.ids) for example in row)
        titled = []
        for place, example in enumerate(row, 1):
            length = len(example.ids) + (left if place == len(row) else 0)
            title = f"row {number}, sequence {place} of {len(row)}"
            layout = replace(reader.layout, max_seq_length=length)
            titled.append(_Titled(title=title, example=example, layout=layout))
        yield titled


def _find_words(dataset: FoundDataset, vocab: str | None) -> tuple[list[str], int | None]:
    """Return the words by token id, and the id of [MASK]. ([], None) if no vocabulary is known."""
    vocabulary = load_dataset_vocabulary(vocab, dataset)
    return (make_words_readable(vocabulary), vocabulary.mask) if vocabulary else ([], None)
