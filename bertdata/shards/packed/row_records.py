"""Convert grids of packed rows to TFRecords and back, with the C++ kernel or its Python twin.

A grid is an array with a row per packed row. A record holds a packed row, and its features are the rows of
the grids. Some features are lists of floats, but their values are always integers.
"""

from array import array
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import IO, Any

import numpy as np

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.errors import ShardError
from bertdata.examples.columns import Array
from bertdata.examples.fields import VALUE_LIMIT
from bertdata.records import ShardLayout
from bertdata.shards.example_proto import NotAnExample, decode_example, encode_example
from bertdata.shards.framing import frame_payload, read_payloads
from bertdata.shards.packed.fields import RowFields, load_row_fields
from bertdata.shards.packed.grid import Grids
from bertdata.shards.tfrecord import decode_columns

# The C++ kernel's number for the way "values" to make a field, which is its index in
# bertdata.examples.fields.SOURCES.
_VALUES = 0


def encode_rows(grids: Grids, layout: ShardLayout, engine: Engine | None = None) -> bytes | memoryview:
    """Encode packed rows as TFRecord records in canonical form. Return the bytes of all records."""
    fields = load_row_fields(layout.packing or "", "tfrecord")
    if not use_native(engine or default_engine()):
        return b"".join(_encode_records(grids, fields))
    count = len(next(iter(grids.values())))
    rows = np.arange(1, count + 1, dtype=np.uint32)
    columns: list[Array] = []
    for _, field in sorted(fields.items()):
        columns += [grids[field.of].reshape(-1), rows * np.uint32(field.width(layout) or 0)]
    framed: memoryview = _make_format(layout).encode(columns)
    return framed


def _encode_records(grids: Grids, fields: RowFields) -> Iterator[bytes]:
    """Yield the TFRecord record of each row. This is the Python twin of the kernel's ``encode``."""
    for row in range(len(next(iter(grids.values())))):
        values = {name: grids[field.of][row].tolist() for name, field in fields.items()}
        features = {
            name: array("f", found) if fields[name].type == "float32" else found
            for name, found in values.items()
        }
        yield frame_payload(encode_example(features))


def decode_rows(
    file: IO[bytes], name: str, layout: ShardLayout, size: int, engine: Engine | None = None
) -> Iterator[Grids]:
    """Read packed rows from a TFRecord file as grids, at most ``size`` rows at a time.

    Raises ShardError, which names a record that cannot be read.
    """
    fields = load_row_fields(layout.packing or "", "tfrecord")
    file.seek(0)
    if not use_native(engine or default_engine()):
        rows = _read_rows(file, name, layout)
        while block := list(islice(rows, size)):
            yield {
                field.of: np.array([row[key] for row in block], np.uint32) for key, field in fields.items()
            }
        return
    ordered = [field for _, field in sorted(fields.items())]
    for columns in decode_columns(file, name, _make_format(layout), size):
        yield {
            field.of: np.asarray(columns[2 * number]).reshape(-1, field.width(layout) or 0)
            for number, field in enumerate(ordered)
        }


def _read_rows(file: IO[bytes], name: str, layout: ShardLayout) -> Iterator[dict[str, list[int]]]:
    """Yield the values of each record by field name. This is the Python twin of the kernel's ``decode``."""
    fields = load_row_fields(layout.packing or "", "tfrecord")
    for record, payload in enumerate(read_payloads(file, name)):
        try:
            features = decode_example(payload)
            if len(features) > len(fields):
                raise NotAnExample("holds more features than such an example has")
            yield {key: _check_values(features.get(key), key, field, layout) for key, field in fields.items()}
        except NotAnExample as error:
            raise ShardError(f"{name}: record {record}: {error}") from None


def _check_values(values: Any, key: str, field: Any, layout: ShardLayout) -> list[int]:
    """Return the values of a field as integers. NotAnExample if their type, their number or a value is wrong.

    key: name of the field, for the error.
    """
    is_float, width = field.type == "float32", field.width(layout)
    if not isinstance(values, array if is_float else list):
        raise NotAnExample(f"lacks the {'floats' if is_float else 'integers'} {key}")
    if len(values) != width:
        raise NotAnExample(f"{key} has {len(values)} values, expected {width}")
    for value in values:
        if not (0 <= value < VALUE_LIMIT and value == int(value)):
            found = -1 if is_float else value
            raise NotAnExample(f"{key} holds {found}, expected 0 to {VALUE_LIMIT - 1}")
    return list(map(int, values))


@lru_cache(maxsize=8)
def _make_format(layout: ShardLayout) -> Any:
    """Return the C++ object that encodes and decodes the records.

    Each field gives it two columns: values and ends.
    """
    fields = sorted(load_row_fields(layout.packing or "", "tfrecord").items())
    columns, described = [], []
    for number, (name, field) in enumerate(fields):
        columns += [(4, 2 * number + 1, False, VALUE_LIMIT - 1), (4, -1, False, VALUE_LIMIT - 1)]
        described.append((name, field.type == "float32", _VALUES, 2 * number, field.width(layout) or 0, 0))
    return kernels.RecordFormat(columns=columns, fields=described, positions=-1, labels=-1, first_slot=0)
