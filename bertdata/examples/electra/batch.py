"""The example type and the batch type of ELECTRA's objective."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import SEGMENT
from bertdata.records import Buffer, Example, ExampleBatch, column


@dataclass(frozen=True, kw_only=True, slots=True)
class ElectraExample(Example):
    """One example ``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]``.

    first_length: number of ids of segment A with its special tokens, ``[CLS] A [SEP]``.
    """

    first_length: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ElectraBatch(ExampleBatch):
    """N unmasked examples without padding.

    In example i, the first ``first_lengths[i]`` ids belong to segment A.
    """

    example_type: ClassVar[type[Example]] = ElectraExample

    first_lengths: Buffer = column("uint32", group=SEGMENT, one="first_length", is_place=True)
