"""Plain records that are passed between the steps of a run: vocabulary, documents, batches of examples.

Texts and examples are stored as flat buffers with end offsets, never as lists of lists, so that a 27 MB input
becomes a handful of buffers instead of millions of Python objects. For example, two sentences with the ids 5,
6 and 7::

    [[5, 6], [7]]  ->  ids [5, 6, 7], ends [2, 3]

A buffer is any object with the buffer protocol and unsigned integer items: a ``memoryview``, an
``array.array`` or a NumPy array. Token ids are 16 bits wide if the vocabulary is small enough, otherwise 32.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from bertdata.errors import SettingsError

Buffer = Any  # collections.abc.Buffer exists from Python 3.12 on
Item = Literal["id", "uint8", "uint16", "uint32"]
"""Item type of a column. An ``id`` item has 16 or 32 bits, depending on the size of the vocabulary."""

ROLES = ("cls", "sep", "pad", "mask", "unk")
"""Roles of special tokens.

cls: begins an example.
sep: ends a segment of an example.
pad: fills unused positions.
mask: replaces a masked token.
unk: replaces a word that the vocabulary cannot spell.
"""

DEFAULT_OBJECTIVE = "bert"
"""The objective assumed for files and manifests that do not name an objective."""

BatchKind = TypeVar("BatchKind", bound="ExampleBatch")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Vocabulary:
    """A tokeniser's vocabulary as the example makers need it, independent of the tokeniser's type.

    md5: md5 of the vocabulary file, which identifies the vocabulary.
    kind: the tokeniser's model: wordpiece, bpe, unigram or wordlevel.
    words: the token of each id.
    continues_word: a byte for each id, 1 if the token continues the word before it, otherwise 0. None if an
        id does not show whether its token continues a word. ``Documents.word_starts`` then has this
        information.
    replacements: the ids of all distinct tokens, from which random replacements are drawn.
    cls, sep, mask, unk, pad: ids of the special tokens (see ROLES). None if the vocabulary has no such token.
    pair_separators: number of sep tokens between the two texts of a pair when fine-tuning or predicting. BERT
        has 1, RoBERTa has 2.
    """

    name: str
    md5: str
    words: Sequence[str]
    continues_word: bytes | None
    replacements: tuple[int, ...]
    cls: int | None = None
    sep: int | None = None
    mask: int | None = None
    unk: int | None = None
    pad: int | None = None
    kind: str = "wordpiece"
    pair_separators: int = 1

    def role(self, name: str) -> int:
        """Return the id of the token with this role (see ROLES).

        Raises SettingsError if there is no such token.
        """
        found: int | None = getattr(self, name)
        if found is None:
            raise SettingsError(
                f"{self.name}: names no {name} token, which is needed here; say which of its tokens that is: "
                f"--role {name}=TOKEN of bertdata create, or {name}_token in its directory's "
                "tokenizer_config.json"
            )
        return found

    @property
    def size(self) -> int:
        """The largest id plus one."""
        return len(self.words)

    @property
    def tokens(self) -> int:
        """Number of distinct tokens."""
        return len(self.replacements)

    @property
    def wide(self) -> bool:
        """True if ids need 32 bits."""
        return self.size > 1 << 16

    @property
    def padding_id(self) -> int:
        """The id that fills unused positions in a stored row."""
        return self.pad or 0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Documents:
    """Tokenised text of one input, or of several inputs that are read as one.

    ids: all token ids, one after another.
    sentence_ends: for each sentence, the index in ``ids`` after its last id, as uint32. The sentence starts
        where the sentence before it ends.
    document_ends: for each document, the index in ``sentence_ends`` after its last sentence, as uint32.
    unknown: how many of the ids are the unknown token. None if the tokeniser has no such token, or if they
        were not counted.
    word_starts: a byte for each id, 1 where a word starts. None if ``Vocabulary.continues_word`` already
        shows where words start.
    """

    ids: Buffer
    sentence_ends: Buffer
    document_ends: Buffer
    unknown: int | None = None
    word_starts: Buffer | None = None

    @property
    def tokens(self) -> int:
        """Number of ids."""
        return len(self.ids)

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return len(self.sentence_ends)

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.document_ends)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardLayout:
    """Shape of a shard's records.

    max_seq_length: most ids in an example. Shapes of fields call it S.
    max_predictions_per_seq: most masked positions in an example. Shapes of fields call it P. 0: no masks.
    remask: True for Graphcore's order, which stores masked positions first (``bertdata.examples.slots``).
    pad_position: the position stored in an empty slot of Graphcore's order. None: the field's default.
    packing: name of the layout of packed rows, one of ``bertdata.shards.packed.layouts``. None: rows are not
        packed, that is, a row holds one example.
    sequences_per_row: most examples in a packed row. Together they have at most max_seq_length ids.
    sizes: further limits that an objective defines, as pairs of (name, limit).
    padding_id: the id that fills unused positions, in files whose rows have a fixed length.
    """

    max_seq_length: int
    max_predictions_per_seq: int = 0
    remask: bool = False
    pad_position: int | None = None
    objective: str = DEFAULT_OBJECTIVE
    packing: str | None = None
    sequences_per_row: int = 1
    sizes: tuple[tuple[str, int], ...] = ()
    padding_id: int = 0

    @classmethod
    def of_sizes(cls, sizes: Mapping[str, int], **others: Any) -> "ShardLayout":
        """Make a layout from limits by name. Limits that are no field of this class go into ``sizes``."""
        known: Any = {name: size for name, size in sizes.items() if name in cls.__dataclass_fields__}
        return cls(**known, sizes=tuple(item for item in sizes.items() if item[0] not in known), **others)

    def size(self, name: str) -> int:
        """Return the limit with this name, such as ``max_seq_length``.

        Raises SettingsError if the layout has no such limit.
        """
        found = dict(self.sizes).get(name, getattr(self, name, None))
        if found is None:
            raise SettingsError(f"objective {self.objective}: the layout of its settings has no size {name}")
        return int(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnGroup:
    """A group of columns that belong together, such as the positions and labels of masks.

    items: what messages call the items, if an example can have any number of them. Empty if an example has
        exactly one item, or one item per id.
    size: name of the setting that limits the number of items in an example. Empty if ``items`` is empty.
    """

    name: str
    items: str = ""
    size: str = ""


IDS = ColumnGroup(name="ids", items="ids", size="max_seq_length")
IDS_ENDS = "ends"
"""Name of the column with the end offsets of ids, and of every other column with one item per id."""


def column(
    item: Item,
    *,
    group: ColumnGroup | None = None,
    ends: str | None = None,
    one: str = "",
    noun: str = "",
    is_place: bool = False,
    most: int = (1 << 32) - 1,
) -> Any:
    """Declare a column of an ExampleBatch. The class ``Column`` explains the arguments."""
    found = {"item": item, "group": group, "ends": ends, "one": one, "noun": noun}
    return field(metadata={**found, "is_place": is_place, "most": most})


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an ExampleBatch, as declared with ``column``.

    group: the group that the column belongs to. By default a group with this column alone. A column of end
        offsets joins the group of the columns that it delimits.
    ends: name of the column with the end offset of each example's items. None: each example has one item.
    one: name of the field with the same data in a single example (``example_type``). By default the column's
        name.
    noun: what messages call an item.
    is_place: True if items are positions in the example, counted from its first id. They are in ascending
        order.
    most: the largest allowed value.
    """

    name: str
    item: Item
    group: ColumnGroup
    ends: str | None
    one: str
    noun: str
    is_place: bool
    most: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One example, as the pure-Python makers handle it. Each objective derives a class with more fields."""

    ids: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ExampleBatch:
    """A batch of N examples without padding, stored column by column.

    ``ids`` are the model's inputs. Example i is ``ids[ends[i-1]:ends[i]]``. An objective whose examples hold
    more than ids derives a class with further columns. Everything else in a shard (padding, input mask,
    weights) can be computed from the columns. See bertdata.examples.fields.
    """

    example_type: ClassVar[type[Example]] = Example

    ids: Buffer = column("id", group=IDS, ends=IDS_ENDS)
    ends: Buffer = column("uint32")

    def __len__(self) -> int:
        return len(self.ends)

    @classmethod
    def columns(cls) -> tuple[Column, ...]:
        """Return all columns, in the order in which the C++ kernels take and return them."""
        return _build_columns(cls)  # type: ignore[arg-type] # a class is hashable

    @classmethod
    def groups(cls) -> tuple[ColumnGroup, ...]:
        """Return the groups of the columns, in the order of the columns."""
        return tuple(dict.fromkeys(item.group for item in cls.columns()))

    @classmethod
    def sizes(cls) -> tuple[str, ...]:
        """Return the names of all settings that limit an example's size, beginning with the limit of ids."""
        return tuple(dict.fromkeys(group.size for group in cls.groups() if group.size))

    @classmethod
    def ragged(cls) -> dict[str, list[Column]]:
        """Map each column of end offsets to the columns that it delimits."""
        found: dict[str, list[Column]] = {}
        for item in cls.columns():
            if item.ends is not None:
                found.setdefault(item.ends, []).append(item)
        return found

    def values(self) -> tuple[Buffer, ...]:
        """Return the columns' buffers, in the order of ``columns``."""
        return tuple(getattr(self, item.name) for item in self.columns())

    def examples(self) -> Iterator[Any]:
        """Yield the examples one by one, as ``example_type``."""
        # End offsets are no data of a single example, since they only say which items belong to it.
        single = [item for item in self.columns() if item.name not in self.ragged()]
        bounds = {name: [0, *map(int, getattr(self, name))] for name in self.ragged()}
        for index in range(len(self)):
            items: dict[str, Any] = {}
            for item in single:
                values = getattr(self, item.name)
                if item.ends is None:
                    items[item.one] = int(values[index])
                else:
                    start, stop = bounds[item.ends][index : index + 2]
                    items[item.one] = list(map(int, values[start:stop]))
            yield self.example_type(**items)

    @classmethod
    def of(cls: type[BatchKind], examples: Iterable[Any], *, wide: bool) -> BatchKind:
        """Make a batch from single examples.

        wide: store ids in 32 bits. False: store them in 16.
        """
        codes = {"id": "I" if wide else "H", "uint8": "B", "uint16": "H", "uint32": "I"}
        made = {item.name: array(codes[item.item]) for item in cls.columns()}
        groups = cls.ragged()
        for example in examples:
            for item in cls.columns():
                if item.ends is not None:
                    made[item.name].extend(getattr(example, item.one))
                elif item.name not in groups:
                    made[item.name].append(getattr(example, item.one))
            # The column is now as long as the items of all examples so far. This length is the example's end
            # offset.
            for ends, items in groups.items():
                made[ends].append(len(made[items[0].name]))
        return cls(**made)


@cache
def _build_columns(kind: Any) -> tuple[Column, ...]:
    """Build the Column of every declared field, with its defaults filled in.

    Raises SettingsError if a column has a variable number of items but its group names no limit. That is a
    mistake in the batch class.
    """
    declared = {item.name: dict(item.metadata) for item in fields(kind)}
    # A column of end offsets has no group of its own, but gets the group of the columns that it delimits. For
    # example, ``positions`` is declared with ends="mask_ends" and the group of masks. So ``mask_ends`` also
    # belongs to the group of masks.
    offsets: dict[Any, ColumnGroup | None] = {}
    for of in declared.values():
        offsets.setdefault(of["ends"], of["group"])
    found = []
    for name, of in declared.items():
        group = of.pop("group") or offsets.get(name) or ColumnGroup(name=name.replace("_", " "))
        one, noun = of.pop("one") or name, of.pop("noun") or name.removesuffix("s").replace("_", " ")
        found.append(Column(name=name, group=group, one=one, noun=noun, **of))
        ends = of["ends"]
        if ends not in (None, IDS_ENDS) and not (group.size and group == offsets[ends]):
            raise SettingsError(
                f"column {name} of {kind.__name__}: its items are those that {ends} counts; expected a group "
                "with a size, the same for all of them"
            )
    return tuple(found)


class MadeExamples(Protocol):
    """Examples of one input, held compactly until they are written."""

    def __len__(self) -> int: ...

    @property
    def tokens(self) -> int:
        """Number of ids in all examples, padding not counted."""
        ...

    @property
    def masked(self) -> int:
        """Number of masked positions in all examples."""
        ...

    def batch(self, start: int, stop: int, step: int = 1) -> ExampleBatch:
        """Return every step-th example from ``start`` up to ``stop``, in the final order of the examples."""
        ...
