"""The packed rows in the reference kit, made by the original packers, and the sequences that they contain."""

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from bertdata.examples.bert.batch import BertExample
from bertdata.shards.example_proto import encode_example
from bertdata.shards.framing import frame_payload

Arrays = dict[str, Any]


@dataclass(frozen=True)
class OriginalPacks:
    """Packed rows by field, and the sequences of each row before packing."""

    fields: Arrays
    sequences: list[list[BertExample]]


def load_packs(path: Path, own_prefix: str = "packed_") -> OriginalPacks:
    """Load a sample of the kit. own_prefix: the prefix of the field names that the packer wrote."""
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    rows = arrays["source_rows"].tolist()
    source = {
        name.removeprefix("source_"): array for name, array in arrays.items() if name.startswith("source_")
    }
    sequences = [
        [_source_example(source, rows.index(index)) for index in row if index >= 0]
        for row in arrays["source_index"].tolist()
    ]
    fields = {
        name.removeprefix(own_prefix): array for name, array in arrays.items() if name.startswith("packed_")
    }
    return OriginalPacks(fields=fields, sequences=sequences)


def _source_example(source: Arrays, row: int) -> BertExample:
    length = int(source["input_mask"][row].sum())
    segments = source["segment_ids"][row, :length].tolist()
    positions = source["masked_lm_positions"][row].tolist()
    masks = positions.index(0) if 0 in positions else len(positions)
    return BertExample(
        ids=source["input_ids"][row, :length].tolist(),
        first_length=segments.count(0),
        positions=positions[:masks],
        labels=source["masked_lm_ids"][row, :masks].tolist(),
        next_label=int(source["next_sentence_labels"][row].reshape(-1)[0]),
    )


def as_hdf5(fields: Arrays) -> bytes:
    """Return the rows as an HDF5 file in the form of Habana's packer: one compressed dataset per field."""
    file = BytesIO()
    with h5py.File(file, "w") as opened:
        for name, array in fields.items():
            opened.create_dataset(name, data=array, dtype=array.dtype, compression="gzip")
    return file.getvalue()


def as_tfrecord(fields: Arrays) -> bytes:
    """Return the rows as TFRecords. Arrays of floats become float features."""
    rows = range(len(next(iter(fields.values()))))
    return b"".join(
        frame_payload(encode_example({name: _feature(array[row]) for name, array in fields.items()}))
        for row in rows
    )


def _feature(values: Any) -> Any:
    from array import array

    return array("f", values.tolist()) if values.dtype.kind == "f" else values.tolist()


def mlperf_fields(fields: Arrays) -> Arrays:
    """Return Habana's rows with the two float fields of MLPerf's TensorFlow variant added."""
    numbers = np.take_along_axis(fields["input_mask"], fields["masked_lm_positions"].astype(int), axis=1)
    weights = np.where(fields["masked_lm_positions"] > 0, numbers, 0).astype(np.float32)
    return {
        **fields,
        "masked_lm_weights": weights,
        "next_sentence_weights": fields["next_sentence_weights"].astype(np.float32),
    }
