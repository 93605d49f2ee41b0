"""The plain records that travel between steps.

Flat buffers with end offsets, never lists of lists: a part of 27 MB becomes a handful of buffers.
A buffer is anything with the buffer protocol whose items are unsigned integers: a ``memoryview``,
``array.array`` or NumPy array. Token ids are 16 bits wide where the vocabulary allows, else 32.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from bertdata.errors import SettingsError

Buffer = Any  # collections.abc.Buffer exists from Python 3.12 on
Item = Literal["id", "uint8", "uint16", "uint32"]
"""Item type of a column; an id is 16 or 32 bits wide, as its vocabulary asks."""

ROLES = ("cls", "sep", "pad", "mask", "unk")
"""The purposes of special tokens: before an example, behind a segment, in empty places, masked, unknown."""

DEFAULT_OBJECTIVE = "bert"
"""The objective of files and manifests that name none."""

BatchKind = TypeVar("BatchKind", bound="ExampleBatch")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Vocabulary:
    """Token ids as the example makers see them, whatever tokeniser has them.

    md5 identifies it: that of the file it was read from. ``kind`` is that of its tokeniser: wordpiece, bpe,
    unigram or wordlevel. ``words[i]`` is the token of id i,
    ``continues_word[i]`` is 1 where it continues the word before it, else 0 (a byte an id). It is None where
    an id alone does not tell that: then the documents do, by ``word_starts``.
    ``replacements[i]`` is the id of the i-th distinct token: a random replacement is drawn from these.

    The others are the ids of the tokens with a role (ROLES), None where no token has it: ``unk`` stands for a
    word without pieces, ``pad`` fills what an example leaves empty. ``pair_separators``: how many sep stand
    between the two texts of a pair to fine-tune on or to predict (RoBERTa has two).
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
        """The id of the token with a role. SettingsError where no token has it."""
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
        """One more than the largest id."""
        return len(self.words)

    @property
    def tokens(self) -> int:
        """Number of distinct tokens."""
        return len(self.replacements)

    @property
    def wide(self) -> bool:
        """True where ids need 32 bits."""
        return self.size > 1 << 16

    @property
    def padding_id(self) -> int:
        """The id in the empty places of a container's rows."""
        return self.pad or 0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Documents:
    """The tokenised text of one input, or of several read as one.

    ``ids`` holds all token ids; sentence s is ``ids[sentence_ends[s-1]:sentence_ends[s]]`` and
    document d is the sentences ``document_ends[d-1]:document_ends[d]`` (uint32 each; before the first
    stands 0). ``unknown`` of the ids are the unknown token; None where the tokeniser has none, or nobody
    counted them. ``word_starts`` has a byte for each id, 1 where a word starts; None where the vocabulary's
    ``continues_word`` tells that.
    """

    ids: Buffer
    sentence_ends: Buffer
    document_ends: Buffer
    unknown: int | None = None
    word_starts: Buffer | None = None

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
    """The shape of a shard's records: S ids, P masked positions (0: no masks), Graphcore's order or not.

    pad_position: the position in an empty slot of Graphcore's order; None: the one that the field declares.
    packing: name of the layout of packed rows (``bertdata.shards.packed.layouts``), each with up to
    sequences_per_row examples of together at most S ids; None: each row is one example. P is that of one
    example. sizes: by name, the most items of an example in each other group that has a size. padding_id: the
    id in a row's empty places, where a container has rows of a fixed length.
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
        """The layout of sizes by name."""
        own: Any = {name: size for name, size in sizes.items() if name in cls.__dataclass_fields__}
        return cls(**own, sizes=tuple(item for item in sizes.items() if item[0] not in own), **others)

    def size(self, name: str) -> int:
        """The most items of an example in the group whose size has that name."""
        found = dict(self.sizes).get(name, getattr(self, name, None))
        if found is None:
            raise SettingsError(f"objective {self.objective}: the layout of its settings has no size {name}")
        return int(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnGroup:
    """Columns of an example that belong together, such as its masks.

    Where an example has any number of items of its own, ``items`` is their name in messages, and ``size``
    the name of the setting that limits them. Both are empty where it has one item, or one for each id.
    """

    name: str
    items: str = ""
    size: str = ""


IDS = ColumnGroup(name="ids", items="ids", size="max_seq_length")
IDS_ENDS = "ends"
"""The column of the end offsets of ids, and of all columns with an item for each id."""


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
    """A column of an ExampleBatch. See Column for its settings."""
    found = {"item": item, "group": group, "ends": ends, "one": one, "noun": noun}
    return field(metadata={**found, "is_place": is_place, "most": most})


@dataclass(frozen=True, slots=True)
class Column:
    """A column as ``column`` declares it.

    group: by default one of this column alone; of end offsets, that of the columns which they are of.
    ends: the column that holds the end offset of each example's items; None: one item an example.
    one: name of an example's own item or items in ``example_type``; by default the column's.
    noun: an item in messages. is_place: items count ids from the example's start; several ascend.
    most: the largest item.
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
    """One example as the readable twins handle it. An objective derives its own, with more fields."""

    ids: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ExampleBatch:
    """N examples without padding, column by column.

    ``ids`` are the model's inputs; example i owns ``ids[ends[i-1]:ends[i]]``. An objective whose
    examples hold more derives a class of its own with more columns. Everything else that a shard holds
    (padding, input mask, weights, ...) follows from these: see bertdata.examples.fields.
    """

    example_type: ClassVar[type[Example]] = Example

    ids: Buffer = column("id", group=IDS, ends=IDS_ENDS)
    ends: Buffer = column("uint32")

    def __len__(self) -> int:
        return len(self.ends)

    @classmethod
    def columns(cls) -> tuple[Column, ...]:
        """All columns, in the order in which kernels take and return them."""
        return _columns_of(cls)  # type: ignore[arg-type] # a class is hashable

    @classmethod
    def groups(cls) -> tuple[ColumnGroup, ...]:
        """The groups of the columns, in their order."""
        return tuple(dict.fromkeys(item.group for item in cls.columns()))

    @classmethod
    def sizes(cls) -> tuple[str, ...]:
        """The names of all sizes that limit an example, each once: of ids first."""
        return tuple(dict.fromkeys(group.size for group in cls.groups() if group.size))

    @classmethod
    def ragged(cls) -> dict[str, list[Column]]:
        """The columns with several items an example, by the column of their end offsets."""
        found: dict[str, list[Column]] = {}
        for item in cls.columns():
            if item.ends is not None:
                found.setdefault(item.ends, []).append(item)
        return found

    def values(self) -> tuple[Buffer, ...]:
        """The columns' buffers, in order."""
        return tuple(getattr(self, item.name) for item in self.columns())

    def examples(self) -> Iterator[Any]:
        """Each example by itself, as the class's ``example_type``."""
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
        """The examples as columns. Ids 32 bits wide if asked, else 16."""
        codes = {"id": "I" if wide else "H", "uint8": "B", "uint16": "H", "uint32": "I"}
        made = {item.name: array(codes[item.item]) for item in cls.columns()}
        groups = cls.ragged()
        for example in examples:
            for item in cls.columns():
                if item.ends is not None:
                    made[item.name].extend(getattr(example, item.one))
                elif item.name not in groups:
                    made[item.name].append(getattr(example, item.one))
            for ends, items in groups.items():
                made[ends].append(len(made[items[0].name]))
        return cls(**made)


@cache
def _columns_of(kind: Any) -> tuple[Column, ...]:
    """The declared columns. SettingsError where nothing limits the items of one: a mistake in its class."""
    declared = {item.name: dict(item.metadata) for item in fields(kind)}
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
