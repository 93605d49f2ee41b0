"""The seam between an objective and everything that handles its examples.

An objective is one object of a class derived from Objective. It says what its settings are, which
columns an example has, which fields each container has for them, how examples are made of documents,
and what ``show`` and ``stats`` tell of them. Nothing else knows what is learned.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from bertdata._native import Engine
from bertdata.config.settings import ExampleSettings
from bertdata.errors import SettingsError
from bertdata.examples import fields, slots
from bertdata.examples.fields import Fields, FieldValues
from bertdata.examples.groups import MASKS
from bertdata.records import (
    IDS_ENDS,
    ColumnGroup,
    Documents,
    ExampleBatch,
    ExampleSource,
    ShardLayout,
    Vocabulary,
)

if TYPE_CHECKING:
    from bertdata.examples.dynamic_masking.masker import Masker
    from bertdata.examples.masking.settings import MaskingSettings

_MODEL_FORM = "huggingface"
_MODEL_ROW = {"type": "int64", "shape": "S", "padding": 0, "of": "ids"}
_MODEL_INPUTS = {"input_ids": _MODEL_ROW, "attention_mask": {**_MODEL_ROW, "as": "ones"}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """A dataset's numbers that every objective has.

    mask_id: the id of [MASK] where a vocabulary tells it. settings: those in its manifest, if it has one.
    """

    layout: ShardLayout
    examples: int
    tokens: int
    mask_id: int | None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Findings:
    """Statistics of an objective: rows (label, value) for a person, and sections of the JSON object."""

    rows: list[tuple[str, str]] = field(default_factory=list)
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)


class ObjectiveCounts:
    """Counts over the examples of a shard that only the objective understands. Picklable, small.

    The base class counts nothing: enough for examples of ids alone.
    """

    def add(self, batch: Any) -> None:
        """Count the batch's examples."""

    def merge(self, other: Any) -> None:
        """Add the counts of another shard."""

    def findings(self, totals: Totals) -> Findings:
        """The statistics of everything counted."""
        return Findings()


class RunMaker(Protocol):
    """Maker of the examples of all inputs of a run, one input after another, by one random stream."""

    @property
    def order(self) -> Sequence[int]:
        """The numbers of the sorted inputs, in the order in which ``make`` wants them."""
        ...

    def make(self, documents: Documents) -> ExampleSource:
        """All examples of the next input."""
        ...


class Objective(ABC):
    """One objective: settings, columns, fields, making, describing, counting.

    declared: by container ("tfrecord", "hdf5", "parquet"; "tfrecord_remasked" for Graphcore's order; "flat"
    for the rows of that layout) the fields of a record, in the form of ``schemas/example.json``; under
    "huggingface" those of a model's inputs.

    task: the trainer's task that learns it, by its name or as package.module:CLASS; empty where it has none.
    of_words: name of the objective of the same examples with their word starts; empty where there is none.
    unlearned: groups of columns that masks at load need, but no task. label_one: the meaning of the pair
    label 1, whose share create tells, empty where it tells none. pair_words: the pair labels 0 and 1, in
    words.
    """

    task = ""
    of_words = ""
    unlearned: tuple[ColumnGroup, ...] = ()
    label_one = ""
    pair_words = ("0", "1")
    settings_type: type[ExampleSettings] = ExampleSettings
    batch_type: type[ExampleBatch] = ExampleBatch

    def __init__(self, name: str, declared: Mapping[str, Mapping[str, Any]]) -> None:
        self.name = name
        self._declared = declared

    @abstractmethod
    def make(
        self, documents: Documents, vocabulary: Vocabulary, settings: Any, engine: Engine | None = None
    ) -> ExampleSource:
        """All examples of the documents, in final order, by the kernel or its readable twin."""

    def run_maker(
        self, inputs: int, vocabulary: Vocabulary, settings: Any, engine: Engine | None = None
    ) -> RunMaker:
        """The maker of a whole run's examples, for settings that name its files (``files_of_run``)."""
        raise NotImplementedError(f"objective {self.name}: makes no examples of a whole run")

    def masker(
        self,
        vocabulary: Vocabulary,
        masking: "MaskingSettings",
        of_data: Mapping[str, Any],
        engine: Engine | None = None,
    ) -> "Masker":
        """The masker of the examples at load. of_data: the settings in their manifest, if there is one.

        SettingsError for settings of which no masks can be drawn.
        """
        from bertdata.examples.dynamic_masking.masker import make_masker

        return make_masker(vocabulary, masking, engine)

    def warnings(self, documents: Documents, name: str) -> list[str]:
        """Warnings about documents of which this objective makes odd examples. name: of their input."""
        return []

    def counts(self) -> ObjectiveCounts:
        """Empty counts of the objective's own statistics."""
        return ObjectiveCounts()

    def describe(self, example: Any, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
        """An example as a person reads it, one line or several. words: the token of each id, if known."""
        padding = layout.max_seq_length - len(example.ids)
        return f"{len(example.ids)} ids and {padding} of padding\n  {text_of(example.ids, words)}\n"

    @cached_property
    def _fields(self) -> dict[str, Fields]:
        found: dict[str, Fields] = {}
        for form, declared in self._declared.items():
            found[form] = fields.read_fields(declared)
            fields.check_fields(found[form], self.batch_type)
            if form != _MODEL_FORM:
                fields.check_fields_readable(form, found[form], self.batch_type)
        return found

    def fields(self, container: str, layout: ShardLayout | None = None) -> Fields:
        """The fields of a container's record. SettingsError where the objective has none for it."""
        form = f"{container}_remasked" if layout and layout.remask else container
        if form not in self._fields:
            known = ", ".join(self._fields)
            raise SettingsError(f"objective {self.name}: no fields are declared for {form}, only for {known}")
        found: Fields = self._fields[form]
        if layout is None:
            return found
        if layout.pad_position is not None:
            found = slots.with_pad_position(found, layout.pad_position)
        return fields.with_padding(found, layout.padding_id)

    @cached_property
    def flat_fields(self) -> Fields:
        """The lists of a row of the layout ``flat``, by name: those declared for it, else parquet's.

        To parquet's come the ends of the row's examples in its lists. SettingsError where two have one name.
        """
        if "flat" in self._fields:
            return self._fields["flat"]
        found = {
            name: replace(field, shape="*")
            for name, field in self.fields("parquet").items()
            if field.source == "values"
        }
        for column in self.batch_type.ragged():
            name = "sequence_ends" if column == IDS_ENDS else column
            if name in found:
                raise SettingsError(f"objective {self.name}: two lists of the layout flat are called {name}")
            found[name] = fields.Field(name=name, type="int32", shape="*", of=column)
        return found

    def most_masks(self, settings: Mapping[str, Any], length: int) -> int:
        """The most masked positions of an example of so many ids, by the settings in its manifest."""
        return min(length, int(settings[MASKS.size]))

    @cached_property
    def model_fields(self) -> Fields:
        """The fields of a model's inputs and labels under Hugging Face's names, by name.

        Those that the objective declares for "huggingface"; else the ids and their mask.
        """
        if _MODEL_FORM in self._fields:
            return self._fields[_MODEL_FORM]
        return fields.read_fields(_MODEL_INPUTS)

    def features(self, example: Any, layout: ShardLayout) -> FieldValues:
        """The padded values of the example's TFRecord, by field. LossyExample where they cannot be."""
        found = self.fields("tfrecord", layout)
        make = slots.slotted_features if slots.has_slots(found) else fields.features_of
        return make(example, found, self.batch_type, layout)

    def example(self, features: FieldValues, layout: ShardLayout) -> Any:
        """The example whose TFRecord has these values. LossyExample where it is no such example's."""
        found = self.fields("tfrecord", layout)
        try:
            if slots.has_slots(found):
                example = slots.example_of_slots(features, found, self.batch_type)
                layout = replace(layout, pad_position=slots.pad_position(features, found, self.batch_type))
            else:
                example = fields.example_of(features, found, self.batch_type)
            again = self.features(example, layout)
        except fields.LossyExample:
            raise
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise fields.LossyExample(f"not the features of an example for {self.name}: {error}") from None
        if again != features:
            wrong = [name for name in again if again[name] != features.get(name)]
            wrong = wrong or sorted(set(features) - set(again))
            raise fields.LossyExample(f"cannot be held without loss: {', '.join(wrong)}")
        return example

    def decodes_natively(self, layout: ShardLayout) -> bool:
        """True where the kernel can read this layout's TFRecords."""
        return fields.kernel_decodes(self.fields("tfrecord", layout), self.batch_type)

    def record_format(self, layout: ShardLayout) -> Any:
        """The kernel's encoder and decoder of this layout's TFRecords."""
        return _record_format(self, layout)


@lru_cache(maxsize=8)
def _record_format(objective: Objective, layout: ShardLayout) -> Any:
    return fields.record_format(objective.fields("tfrecord", layout), objective.batch_type, layout)


def text_of(ids: list[int], words: list[str]) -> str:
    """The ids' tokens between blanks, or <id> where the token is not known."""
    return " ".join(words[i] if i < len(words) else f"<{i}>" for i in ids)
