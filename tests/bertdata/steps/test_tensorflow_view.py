"""open_dataset's view for TensorFlow, and the feature spec of TFRecord shards, by TensorFlow itself."""

from typing import Any

import numpy as np
import pytest

import bertdata
from bertdata.errors import SettingsError
from bertdata.examples import columns
from bertdata.examples.objectives import OBJECTIVES, find_objective
from bertdata.records import ShardLayout
from bertdata.shards.containers import make_writer
from tests.support.paths import ROOT
from tests.support.plain_objective import NAME as PLAIN

pytestmark = pytest.mark.thorough  # importing TensorFlow takes 5 s
VOCABULARY = ROOT / "golden" / "vocab.txt"


@pytest.fixture(scope="module")
def tf() -> Any:
    import tensorflow

    return tensorflow


def parsed(tf: Any, data: Any) -> list[dict[str, Any]]:
    """The examples of the TFRecord shards as TensorFlow parses them."""
    records = tf.data.TFRecordDataset([shard.path for shard in data.shards])
    spec = data.feature_spec()
    return list(records.map(lambda record: tf.io.parse_single_example(record, spec)).as_numpy_iterator())


def assert_same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert len(found) == len(wanted) > 0
    for one, other in zip(found, wanted, strict=True):
        assert one.keys() == other.keys()
        for name, values in one.items():
            assert values.dtype == other[name].dtype
            np.testing.assert_array_equal(values, other[name], name)


@pytest.mark.parametrize("objective", ["bert", "mlm", "sop", "span", PLAIN])
def test_the_view_is_what_tensorflow_parses_of_the_records(tf, objective, corpus, tmp_path):
    sizes: dict[str, Any] = {"max_seq_length": 32, "workers": 1}
    if objective != PLAIN:
        sizes["max_predictions_per_seq"] = 5
    bertdata.create(corpus[:1], tmp_path / "set", vocab=VOCABULARY, objective=objective, **sizes)
    data = bertdata.open_dataset(tmp_path / "set", objective=objective)
    view = data.tensorflow()
    assert isinstance(view, tf.data.Dataset)
    assert view.cardinality() == len(data)
    wanted = parsed(tf, data)
    assert_same(list(view.as_numpy_iterator()), wanted)
    assert {name: (spec.shape.as_list(), spec.dtype) for name, spec in view.element_spec.items()} == {
        name: (feature.shape, feature.dtype) for name, feature in data.feature_spec().items()
    }


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_every_objective_of_the_package_has_a_view_and_a_spec(tf, name, tmp_path):
    kind = find_objective(name).batch_type
    layout = ShardLayout.of_sizes(dict.fromkeys(kind.sizes(), 9), objective=name)
    batch = columns.make_blank_example(kind, layout)
    for column in batch.columns():
        if column.is_place and column.ends is not None:
            getattr(batch, column.name)[:] = range(9)
    with (tmp_path / "part.tfrecord").open("wb") as file:
        writer = make_writer("tfrecord", file, layout)
        writer.write(columns.convert_to_item_types(batch))
        writer.close()
    data = bertdata.open_dataset(tmp_path, unverified=True, objective=name)
    assert_same(list(data.tensorflow().as_numpy_iterator()), parsed(tf, data))


@pytest.mark.parametrize("container", ["hdf5", "parquet"])
def test_every_container_has_the_same_view_also_in_batches_and_masked(tf, container, corpus, tmp_path):
    sizes = {"max_seq_length": 32, "max_predictions_per_seq": 5, "dupe_factor": 1, "workers": 1}
    for form in ("tfrecord", container):
        bertdata.create(corpus[:1], tmp_path / form, vocab=VOCABULARY, format=form, **sizes)
    data, other = (bertdata.open_dataset(tmp_path / form) for form in ("tfrecord", container))
    wanted = parsed(tf, data)
    assert_same(list(other.tensorflow().as_numpy_iterator()), wanted)
    view = other.tensorflow(batch_size=50)
    assert view.cardinality() == -(-len(data) // 50)
    rows = [
        {name: values[index] for name, values in batch.items()}
        for batch in view.as_numpy_iterator()
        for index in range(len(batch["input_ids"]))
    ]
    assert_same(rows, wanted)
    masked = [row["input_ids"].tolist() for row in other.masked(epoch=1).tensorflow().as_numpy_iterator()]
    assert masked == [[*one.ids, *[0] * (32 - len(one.ids))] for one in other.masked(epoch=1)]
    with pytest.raises(SettingsError, match="batch_size is 0, expected 1 or more"):
        data.tensorflow(batch_size=0)


def test_graphcores_order_is_parsed_by_the_spec_and_refused_by_the_view(tf, corpus, tmp_path):
    bertdata.create(
        corpus[:1], tmp_path / "set", vocab=VOCABULARY, recipe="graphcore", phase=1, remask=True, workers=1
    )
    data = bertdata.open_dataset(tmp_path / "set")
    rows = parsed(tf, data)
    assert len(rows) == len(data)
    assert [len(row["masked_lm_positions"]) for row in rows] == [len(one.positions) for one in data]
    with pytest.raises(
        SettingsError, match=r"remasked order; read its TFRecord shards with feature_spec\(\)"
    ):
        data.tensorflow()


def test_packed_rows_have_a_view_of_their_examples_and_no_spec(tf, training_set, tmp_path):
    bertdata.pack(training_set, tmp_path / "packed", layout="flat", workers=1)
    data = bertdata.open_dataset(tmp_path / "packed")
    with pytest.raises(SettingsError, match="its records are packed rows, of which there is no feature spec"):
        data.feature_spec()
    found = [row["input_ids"].tolist() for row in data.tensorflow().as_numpy_iterator()]
    assert found == [[*one.ids, *[0] * (64 - len(one.ids))] for one in data]
