"""Interface between an objective and all code that handles its examples.

An objective is an instance of a class derived from Objective. It defines its settings, the columns of an
example, the fields of each file format, how examples are made from documents, and what ``show`` and ``stats``
print about them. No other code needs to know what is learned from the examples.
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
    MadeExamples,
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
    """Facts about a dataset that ObjectiveCounts needs to compute statistics from its counts.

    layout: shape of the dataset's records.
    examples: number of examples.
    tokens: number of ids in all examples.
    mask_id: id of [MASK]. None if no vocabulary is available.
    settings: the settings in the dataset's manifest.
    """

    layout: ShardLayout
    examples: int
    tokens: int
    mask_id: int | None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Findings:
    """Statistics that ``stats`` shows about the examples of an objective.

    rows: pairs of (label, value) to print.
    sections: sections of the JSON output, by name.
    """

    rows: list[tuple[str, str]] = field(default_factory=list)
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)


class ObjectiveCounts:
    """Counts of a shard's examples for an objective's statistics.

    Objects of this class are small and can be pickled. The base class counts nothing, which is enough for
    examples that consist only of ids.
    """

    def add(self, batch: Any) -> None:
        """Count the examples of a batch."""

    def merge(self, other: Any) -> None:
        """Add the counts of another shard to these counts."""

    def findings(self, totals: Totals) -> Findings:
        """Return the statistics for ``stats`` and ``report``. The counts of all shards must have been
        merged.
        """
        return Findings()


class RunMaker(Protocol):
    """Interface of an object that makes the examples of all inputs, one input after another.

    All random numbers come from one stream, which continues from one input to the next.
    """

    @property
    def order(self) -> Sequence[int]:
        """The order in which ``make`` must get the inputs, as indices into the inputs sorted by name."""
        ...

    def make(self, documents: Documents) -> MadeExamples:
        """Make all examples of the next input."""
        ...


class Objective(ABC):
    """Base class of objectives. An objective is what a model learns from its examples.

    A subclass defines the settings, the columns and the fields of its examples. It makes, describes and
    counts examples.

    declared: for each file format ("tfrecord", "hdf5", "parquet") the fields of its records, in the form of
        ``schemas/example.json``. There are three further keys: "tfrecord_remasked" for Graphcore's order,
        "flat" for packed rows in the layout of this name, and "huggingface" for a model's inputs.

    Class attributes:

    task: the trainer's task that learns this objective, by name or as package.module:CLASS. Empty if there is
        none.
    of_words: name of the objective that has the same examples with word starts. Empty if there is none.
    unlearned: column groups, such as word starts, that masking at load needs but the trainer's task does not.
    label_one: what the pair label 1 means. ``bertdata create`` prints the share of such pairs. Empty if it
        prints none.
    pair_words: names of the pair labels 0 and 1.
    settings_type: class of the settings.
    batch_type: class of the example batches.
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
    ) -> MadeExamples:
        """Make all examples of the documents, in the order in which they are written.

        engine: the C++ kernel or its pure-Python version. None means the kernel if it is available.
        """

    def run_maker(
        self, inputs: int, vocabulary: Vocabulary, settings: Any, engine: Engine | None = None
    ) -> RunMaker:
        """Return an object that makes the examples of all inputs of a run from one random stream.

        It is used instead of ``make`` if the settings' ``files_of_run`` is not empty, as for ELECTRA's
        original program.

        inputs: number of inputs.
        """
        raise NotImplementedError(f"objective {self.name}: makes no examples of a whole run")

    def masker(
        self,
        vocabulary: Vocabulary,
        masking: "MaskingSettings",
        of_data: Mapping[str, Any],
        engine: Engine | None = None,
    ) -> "Masker":
        """Return the object that masks examples when they are loaded.

        Raises SettingsError if no masks can be drawn.

        masking: settings of these masks.
        of_data: the settings in the dataset's manifest. Empty if the dataset has no manifest.
        """
        from bertdata.examples.dynamic_masking.masker import make_masker

        return make_masker(vocabulary, masking, engine)

    def warnings(self, documents: Documents, name: str) -> list[str]:
        """Return warnings if the documents are so unsuitable that the examples will be poor.

        name: name of the input, for the messages.
        """
        return []

    def counts(self) -> ObjectiveCounts:
        """Return an object that counts examples for the objective's statistics. Nothing is counted yet."""
        return ObjectiveCounts()

    def describe(self, example: Any, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
        """Return a text that shows an example to the user.

        words: the token of each id. Empty if no vocabulary is known.
        mask_id: the id of [MASK]. None if it is unknown.
        """
        padding = layout.max_seq_length - len(example.ids)
        return f"{len(example.ids)} ids and {padding} of padding\n  {join_tokens(example.ids, words)}\n"

    @cached_property
    def _fields(self) -> dict[str, Fields]:
        """The fields of each file format, read from ``declared`` and checked."""
        found: dict[str, Fields] = {}
        for form, declared in self._declared.items():
            found[form] = fields.read_fields(declared)
            fields.check_fields(found[form], self.batch_type)
            if form != _MODEL_FORM:
                fields.check_fields_readable(form, found[form], self.batch_type)
        return found

    def fields(self, container: str, layout: ShardLayout | None = None) -> Fields:
        """Return the fields of a record in a file format.

        Raises SettingsError if the objective declares none for it.

        layout: shape of the records. None means the usual order and padding.
        """
        # Graphcore's order has its own declaration, for example tfrecord_remasked.
        form = f"{container}_remasked" if layout and layout.remask else container
        if form not in self._fields:
            known = ", ".join(self._fields)
            raise SettingsError(f"objective {self.name}: no fields are declared for {form}, only for {known}")
        found: Fields = self._fields[form]
        if layout is None:
            return found
        if layout.pad_position is not None:
            found = slots.replace_pad_position(found, layout.pad_position)
        return fields.replace_padding(found, layout.padding_id)

    @cached_property
    def flat_fields(self) -> Fields:
        """The fields of a packed row in the layout "flat", by name.

        If the objective does not declare them, they are Parquet's fields, and for each of their lists the end
        offsets of the row's examples. Raises SettingsError if two fields have the same name.
        """
        if "flat" in self._fields:
            return self._fields["flat"]
        # A row of this layout holds the items of all its examples as lists without padding, so every shape
        # becomes "*". The end offsets say where each example ends in these lists.
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
        """Return the largest number of masked positions that an example of ``length`` ids can have.

        settings: the settings in the dataset's manifest.
        """
        return min(length, int(settings[MASKS.size]))

    @cached_property
    def model_fields(self) -> Fields:
        """The inputs and labels of a model as fields, by Hugging Face's names.

        If the objective does not declare them, they are ``input_ids`` and ``attention_mask``.
        """
        if _MODEL_FORM in self._fields:
            return self._fields[_MODEL_FORM]
        return fields.read_fields(_MODEL_INPUTS)

    def features(self, example: Any, layout: ShardLayout) -> FieldValues:
        """Return the values of the example's TFRecord, by field name and with padding.

        LossyExample if the example does not fit into the layout's sizes.
        """
        found = self.fields("tfrecord", layout)
        make = slots.make_slotted_features if slots.has_slots(found) else fields.make_field_values
        return make(example, found, self.batch_type, layout)

    def example(self, features: FieldValues, layout: ShardLayout) -> Any:
        """Restore an example from the values of its TFRecord.

        LossyExample if no example has exactly these values.

        features: padded values by field name.
        """
        found = self.fields("tfrecord", layout)
        try:
            if slots.has_slots(found):
                example = slots.restore_slotted_example(features, found, self.batch_type)
                layout = replace(
                    layout, pad_position=slots.find_pad_position(features, found, self.batch_type)
                )
            else:
                example = fields.restore_example(features, found, self.batch_type)
            # Convert the example back to a record and compare. Any difference shows that the example has lost
            # something of the record.
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
        """Return True if the C++ kernel can read TFRecords of this layout."""
        return fields.can_kernel_decode(self.fields("tfrecord", layout), self.batch_type)

    def record_format(self, layout: ShardLayout) -> Any:
        """Return the C++ object that encodes and decodes TFRecords of this layout."""
        return _make_record_format(self, layout)


@lru_cache(maxsize=8)
def _make_record_format(objective: Objective, layout: ShardLayout) -> Any:
    """Make the C++ object that encodes and decodes TFRecords. It is cached for each objective and layout."""
    return fields.make_record_format(objective.fields("tfrecord", layout), objective.batch_type, layout)


def join_tokens(ids: list[int], words: list[str]) -> str:
    """Return the tokens of the ids, separated by blanks. An id without a known token becomes ``<id>``."""
    return " ".join(words[i] if i < len(words) else f"<{i}>" for i in ids)
