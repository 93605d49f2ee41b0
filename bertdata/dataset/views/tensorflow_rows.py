"""A dataset as a ``tf.data.Dataset``, and the feature spec (names and types) of its TFRecord shards.

This module imports TensorFlow and NumPy.
"""

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples import columns
from bertdata.examples.columns import Array
from bertdata.examples.fields import Fields
from bertdata.examples.objectives import find_objective
from bertdata.shards.rows import pad_examples

_ROWS = 256


def make_feature_spec(data: OpenedDataset) -> dict[str, Any]:
    """Return the feature spec with which ``tf.io.parse_example`` parses the dataset's TFRecords.

    Raises SettingsError for packed rows.
    """
    layout = data.layout
    if layout.packing is not None:
        raise SettingsError(
            f"{data.name}: its records are packed rows, of which there is no feature spec; "
            "bertdata convert makes examples of them"
        )
    return {
        name: tf.io.RaggedFeature(getattr(tf, field.type))
        if field.shape == "*"
        else tf.io.FixedLenFeature([field.width(layout, 0)], getattr(tf, field.type))
        for name, field in _list_fields(data).items()
    }


def make_tensorflow_dataset(data: OpenedDataset, objective: str | None, batch_size: int | None) -> Any:
    """Return a ``tf.data.Dataset`` of the examples.

    Its tensors are those that ``tf.io.parse_example`` returns for TFRecord files. The shards may have any
    file format.

    batch_size: number of examples N in tensors of shape [N, S]. None gives single examples of shape [S].
    """
    if data.layout.remask:
        raise SettingsError(
            f"{data.name}: is in Graphcore's remasked order; read its TFRecord shards with feature_spec()"
        )
    fields = _list_fields(data)
    signature = {
        name: tf.TensorSpec([None, field.width(data.layout, 0)], getattr(tf, field.type))
        for name, field in fields.items()
    }

    def iterate_row_arrays() -> Iterator[dict[str, Array]]:
        if objective is not None:
            find_objective(objective)
        for batch in columns.regroup_batches(data.read_range(range(data.examples)), batch_size or _ROWS):
            found = pad_examples(batch, data.layout, fields)
            yield {name: values.reshape(len(batch), -1) for name, values in found.items()}

    found = tf.data.Dataset.from_generator(iterate_row_arrays, output_signature=signature)
    if batch_size is not None:
        return found.apply(tf.data.experimental.assert_cardinality(-(-data.examples // batch_size)))
    return found.unbatch().apply(tf.data.experimental.assert_cardinality(data.examples))


def _list_fields(data: OpenedDataset) -> Fields:
    return find_objective(data.layout.objective).fields("tfrecord", data.layout)
