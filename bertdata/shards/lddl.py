"""NVIDIA LDDL's Parquet shards: pairs of segments stored as words, with or without static masks.

::

    A, B                  words of the segments, separated by spaces, without [CLS] and [SEP]
    is_random_next        bool       num_tokens   uint16, with [CLS] and both [SEP]
    masked_lm_positions   binary, a NumPy file of uint16    masked_lm_labels   words separated by spaces
    bin_id                int64, in files of a single length bin

The mask columns exist only with static masks, and bin_id only with length bins. Converting between words and
ids needs the vocabulary, and is exact if each id has a distinct word. The format does not record how long
examples may be. Files that bertdata writes record it in metadata. Other files are read with limits of 512 ids
and 80 masks.

This module imports NumPy.
"""

import io
from collections.abc import Iterator
from functools import lru_cache, partial
from threading import Lock
from typing import IO, Any

import numpy as np

from bertdata.errors import ShardError
from bertdata.examples.columns import (
    Array,
    BatchRegrouper,
    convert_to_arrays,
    convert_to_item_types,
    regroup_batches,
)
from bertdata.examples.groups import (
    PAIR_LABEL,
    PAIRS,
    SEGMENT,
    check_groups,
    find_column,
    find_mask_columns,
    get_masks,
    get_segment_lengths,
)
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective, find_objective_of_file
from bertdata.records import DEFAULT_OBJECTIVE, ExampleBatch, ShardLayout, Vocabulary
from bertdata.shards.parquet_file import (
    ParquetInput,
    ParquetOutput,
    choose_group_rows,
    find_objective_in_metadata,
    load_pyarrow,
    read_size,
)
from bertdata.shards.protocol import ShardReader, Sink
from bertdata.shards.rows import RecordCheck, check_batch, check_layout

COLUMNS = {"A": "string", "B": "string", "is_random_next": "bool", "num_tokens": "uint16"}
MASKS = {"masked_lm_positions": "binary", "masked_lm_labels": "string"}
SPECIAL = 3
"""Number of special tokens in an example that belong to neither segment: [CLS] and two [SEP]."""

_ONE_AT_A_TIME = Lock()
_SIZES = {"max_seq_length": 512, "max_predictions_per_seq": 80}


class LddlWriter:
    """Writer of masked pairs of segments as LDDL's Parquet, in row groups of a fixed size.

    vocabulary: converts the ids to words.
    has_masks: True writes the columns of masks. False stores only the original text.
    bin_id: number of the length bin to which all examples belong. None if there are no bins.
    """

    def __init__(
        self,
        sink: Sink,
        layout: ShardLayout,
        vocabulary: Vocabulary,
        *,
        has_masks: bool = True,
        bin_id: int | None = None,
    ) -> None:
        pyarrow = load_pyarrow()
        kind = find_objective(layout.objective).batch_type
        check_groups("a shard of LDDL's", PAIRS, layout.objective, kind)
        self._names = _PairAttributes(kind)
        types = {**COLUMNS, **(MASKS if has_masks else {}), **({} if bin_id is None else {"bin_id": "int64"})}
        self._schema = pyarrow.schema({name: pyarrow.type_for_alias(kind) for name, kind in types.items()})
        self._layout, self._vocabulary, self._bin = layout, vocabulary, bin_id
        self._words = WordConverter(vocabulary)
        self._received = 0
        self._blocks: BatchRegrouper[ExampleBatch] = BatchRegrouper(choose_group_rows(layout))
        self._parquet = ParquetOutput(sink, self._schema)

    def write(self, batch: ExampleBatch) -> None:
        batch = convert_to_arrays(batch)
        record = RecordCheck(name="lddl shard", first=self._received)
        check_batch(batch, self._layout, record)
        self._check_pairs(batch, record)
        self._received += len(batch)
        for block in self._blocks.add(batch):
            self._write_group(block)

    def close(self) -> None:
        for block in self._blocks.rest():
            self._write_group(block)
        found = {what: str(getattr(self._layout, what)) for what in _SIZES}
        if self._layout.objective != DEFAULT_OBJECTIVE:
            found["objective"] = self._layout.objective
        self._parquet.close({f"bertdata.{what}": value for what, value in found.items()})

    def _check_pairs(self, batch: Any, record: RecordCheck) -> None:
        """Raise ShardError unless each example is [CLS] A [SEP] B [SEP] and its ids have distinct words."""
        # Find the index of each example's first id, of the [SEP] between its segments, and of its last id.
        last = batch.ends.astype(np.int64) - 1
        first = np.concatenate([[0], last[:-1] + 1]) if len(last) else last
        middle = first + get_segment_lengths(batch) - 1
        wrong = (get_segment_lengths(batch) < 2) | (middle >= last)
        cls, sep = self._vocabulary.role("cls"), self._vocabulary.role("sep")
        # If ``middle`` is outside the example, look at ``last`` instead, so that indexing cannot fail. Such
        # examples are already marked as wrong.
        inside = np.where(wrong, last, middle)
        wrong |= (batch.ids[first] != cls) | (batch.ids[inside] != sep)
        wrong |= batch.ids[last] != sep
        record.refuse(wrong, lambda _: "its ids are not [CLS] A [SEP] B [SEP], as LDDL's are")
        masks = get_masks(batch)
        for ids, ends in ((batch.ids, batch.ends), (masks.originals, masks.ends)):
            record.refuse_items(
                ~self._words.is_exact(ids),
                ends,
                partial(_describe_ambiguous_id, ids),
            )

    def _write_group(self, block: Any) -> None:
        columns: dict[str, list[Any]] = {name: [] for name in self._schema.names}
        for example in block.examples():
            for name, value in self._make_row(example).items():
                if name in columns:
                    columns[name].append(value)
        self._parquet.write(load_pyarrow().table(columns, self._schema))

    def _make_row(self, example: Any) -> dict[str, Any]:
        """Convert an example to a row of the table, as values by column."""
        ids, of = example.ids, self._names
        first = getattr(example, of.segment)
        return {
            "A": self._words.join_words(ids[1 : first - 1]),
            "B": self._words.join_words(ids[first:-1]),
            "is_random_next": getattr(example, of.label) == 1,
            "num_tokens": len(ids),
            "masked_lm_positions": dump_numpy_file(getattr(example, of.places)),
            "masked_lm_labels": self._words.join_words(getattr(example, of.originals)),
            "bin_id": self._bin,
        }


def _describe_ambiguous_id(ids: Array, item: int) -> str:
    return f"id {ids[item]} has no word of its own in the vocabulary"


class LddlReader(ShardReader):
    """Reader of LDDL's Parquet files, with or without masks and length bins. The file must be seekable."""

    layout: ShardLayout

    def __init__(
        self, file: IO[bytes], name: str, vocabulary: Vocabulary, objective: Objective | None = None
    ) -> None:
        """Open the file and find the layout of its examples.

        vocabulary: converts the words to ids.
        objective: the examples' objective. None takes the objective that the file names.
        """
        self._name = name
        self._parquet = ParquetInput(file, name)
        objective = objective or find_objective_of_file(
            find_objective_in_metadata(self._parquet.metadata), name
        )
        check_groups(name, PAIRS, objective.name, objective.batch_type)
        self._kind, self._names = objective.batch_type, _PairAttributes(objective.batch_type)
        self._vocabulary, self._words = vocabulary, WordConverter(vocabulary)
        found = set(self._parquet.schema.names)
        self._columns = [*COLUMNS, *(MASKS if MASKS.keys() <= found else ())]
        self._check_types()
        self.layout = _find_layout(self._parquet.metadata, objective.name, name)

    def _check_types(self) -> None:
        pyarrow = load_pyarrow()
        for column in self._columns:
            if self._parquet.schema.get_field_index(column) < 0:
                raise ShardError(f"{self._name}: no column {column}, expected {', '.join(self._columns)}")
            found = self._parquet.schema.field(column).type
            wanted = pyarrow.type_for_alias({**COLUMNS, **MASKS}[column])
            if found != wanted and not (column == "num_tokens" and pyarrow.types.is_integer(found)):
                raise ShardError(f"{self._name}: column {column} is {found}, expected {wanted}")

    def __len__(self) -> int:
        return len(self._parquet)

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        return regroup_batches(self._read_blocks(min(size, choose_group_rows(self.layout))), size)

    def _read_blocks(self, size: int) -> Iterator[ExampleBatch]:
        for start, records in self._parquet.read_batches(self._columns, size):
            yield self._make_batch(records, RecordCheck(name=self._name, first=start))

    def _make_batch(self, records: Any, record: RecordCheck) -> ExampleBatch:
        """Convert an Arrow record batch to checked examples."""
        rows = [self._make_example(index, row, record) for index, row in enumerate(records.to_pylist())]
        batch = convert_to_arrays(self._kind.of(rows, wide=True))
        check_batch(batch, self.layout, record)
        return convert_to_item_types(batch)

    def _make_example(self, index: int, row: dict[str, Any], record: RecordCheck) -> Any:
        """Convert a row of the table to an example.

        index: number of the row in its record batch, for errors.
        """
        for column in self._columns:
            if row[column] is None:
                raise record.error(index, f"no {column}, expected a value")
        segments = [self._find_ids(row[name], index, record) for name in ("A", "B")]
        cls, sep = self._vocabulary.role("cls"), self._vocabulary.role("sep")
        ids = [cls, *segments[0], sep, *segments[1], sep]
        if len(ids) != row["num_tokens"]:
            raise record.error(index, f"{len(ids)} tokens, num_tokens is {row['num_tokens']}")
        labels = self._find_ids(row.get("masked_lm_labels", ""), index, record)
        positions = self._read_positions(row, index, record)
        if len(positions) != len(labels):
            raise record.error(
                index, f"{len(labels)} masked labels, expected {len(positions)}, one a position"
            )
        of = self._names
        found = {of.segment: len(segments[0]) + 2, of.label: int(row["is_random_next"])}
        return self._kind.example_type(ids=ids, **found, **{of.places: positions, of.originals: labels})

    def _find_ids(self, text: str, index: int, record: RecordCheck) -> list[int]:
        """Convert words separated by spaces to ids.

        Raises ShardError for a word that is not in the vocabulary.

        index: number of the row in its record batch, for errors.
        """
        try:
            return self._words.find_ids(text)
        except KeyError as error:
            raise record.error(index, f"{error.args[0]!r} is no word of the vocabulary") from None

    def _read_positions(self, row: dict[str, Any], index: int, record: RecordCheck) -> list[int]:
        """Return the masked positions of a row.

        Raises ShardError if their bytes are not a .npy file of positions.

        index: number of the row in its record batch, for errors.
        """
        if "masked_lm_positions" not in row:
            return []
        try:
            found = _read_array(row["masked_lm_positions"])
            if found.ndim != 1 or found.dtype.kind not in "iu" or (len(found) and found.min() < 0):
                raise ValueError(f"{found.dtype} of shape {found.shape}")
        except (ValueError, EOFError, OSError, SyntaxError, MemoryError) as error:
            problem = f"masked_lm_positions are no NumPy file of positions ({error})"
            raise record.error(index, problem) from None
        positions: list[int] = found.tolist()
        return positions


def _find_layout(metadata: dict[bytes, bytes], objective: str, name: str) -> ShardLayout:
    sizes: Any = {
        what: read_size(metadata, what, name) if f"bertdata.{what}".encode() in metadata else size
        for what, size in _SIZES.items()
    }
    layout = ShardLayout(objective=objective, **sizes)
    check_layout(layout, name, sizes)
    return layout


class _PairAttributes:
    """Names of the attributes in which an example of an objective stores its parts.

    segment: attribute with the end of segment A.
    label: attribute with the label of the pair.
    places: attribute with the masked positions.
    originals: attribute with the original ids of the masked positions.
    """

    def __init__(self, batch_type: type[ExampleBatch]) -> None:
        masks = find_mask_columns(batch_type)
        self.segment, self.label = (
            find_column(batch_type, SEGMENT).one,
            find_column(batch_type, PAIR_LABEL).one,
        )
        self.places, self.originals = masks.places.one, masks.originals.one


class WordConverter:
    """Object that converts the ids of a vocabulary to LDDL's text, which is words separated by spaces, and
    back.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._words = vocabulary.words
        self._id_by_word = {word: number for number, word in reversed(list(enumerate(vocabulary.words)))}
        exact = [
            bool(word) and " " not in word and self._id_by_word[word] == number
            for number, word in enumerate(vocabulary.words)
        ]
        self._exact = np.array([*exact, False])

    def is_exact(self, ids: Array) -> Array:
        """Return for each id True if converting it to its word and back gives the same id.

        The result is False if another id has the same word, if the word contains a space, or if the id is
        outside the vocabulary.
        """
        found: Array = self._exact[np.minimum(ids, len(self._exact) - 1)]
        return found

    def join_words(self, ids: list[int]) -> str:
        """Return the words of the ids, separated by spaces."""
        return " ".join(map(self._words.__getitem__, ids))

    def find_ids(self, text: str) -> list[int]:
        """Return the ids of words separated by spaces. Raises KeyError for an unknown word."""
        return list(map(self._id_by_word.__getitem__, text.split(" "))) if text else []


def dump_numpy_file(positions: list[int]) -> bytes:
    """Return the contents of a .npy file with these positions as uint16."""
    return _make_header(len(positions)) + np.array(positions, "<u2").tobytes()


def _read_array(data: bytes) -> Array:
    """Return the array that a .npy file holds. ``data`` is the file's contents.

    An array of uint16, as LDDL writes it, is parsed here. Other arrays are left to NumPy, in one thread at a
    time. NumPy parses the header with ast.literal_eval, which sometimes fails in CPython 3.11 if several
    threads run it ("AST constructor recursion depth mismatch").
    """
    count = max(len(data) - len(_make_header(0)), 0) // 2
    if data.startswith(header := _make_header(count)) and len(data) == len(header) + 2 * count:
        return np.frombuffer(data, "<u2", offset=len(header))
    with _ONE_AT_A_TIME:
        found: Array = np.load(io.BytesIO(data), allow_pickle=False)
    return found


@lru_cache
def _make_header(count: int) -> bytes:
    """Return the header of a .npy file with ``count`` uint16 items."""
    made = io.BytesIO()
    np.save(made, np.zeros(count, "<u2"), allow_pickle=False)
    return made.getvalue()[: len(made.getvalue()) - 2 * count]
