"""The three containers hold the same examples, and the programs of their worlds read them."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bertdata.cli.main import main
from bertdata.shards.content import compute_content_md5
from schemas import load_schema

LENGTH, PREDICTIONS = 128, 20


@pytest.fixture(scope="module")
def shards(tmp_path_factory, corpus, small_vocabulary_file) -> dict[str, Path]:
    """One part of the sample corpus in each container."""
    made = {}
    for container in ("tfrecord", "hdf5", "parquet"):
        directory = tmp_path_factory.mktemp(container) / "out"
        arguments = [
            "create",
            str(corpus[0]),
            "--output",
            str(directory),
            "--vocab",
            str(small_vocabulary_file),
        ]
        shape = [f"--max-seq-length={LENGTH}", f"--max-predictions-per-seq={PREDICTIONS}", "--dupe-factor=2"]
        assert main([*arguments, *shape, "--format", container, "--workers", "1"]) == 0
        made[container] = next(directory.glob(f"part-*.{container}"))
    return made


def test_content_md5s_are_equal_in_manifests_and_when_read_again(shards):
    recorded = {
        json.loads((path.parent / "manifest.json").read_text())["shards"][0]["content_md5"]
        for path in shards.values()
    }
    assert len(recorded) == 1
    assert {compute_content_md5(str(path)) for path in shards.values()} == recorded


@pytest.mark.thorough
def test_tensorflow_parses_fixed_length_features(shards):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow has no build for this Python")
    types = {"int64": tf.int64, "float32": tf.float32}
    width = {"S": LENGTH, "P": PREDICTIONS, "1": 1}
    features = {
        name: tf.io.FixedLenFeature([width[field["shape"]]], types[field["type"]])
        for name, field in load_schema("example")["bert"]["tfrecord"].items()
    }
    dataset = tf.data.TFRecordDataset(str(shards["tfrecord"])).map(
        lambda record: tf.io.parse_single_example(record, features)
    )
    rows = list(dataset.as_numpy_iterator())
    arrays = hdf5_arrays(shards["hdf5"])
    assert len(rows) == len(arrays["input_ids"])
    for name, values in arrays.items():
        parsed = np.stack([row[name] for row in rows])
        np.testing.assert_array_equal(parsed.reshape(values.shape), values, err_msg=name)
    for row in rows:
        masks = row["masked_lm_weights"].sum()
        np.testing.assert_array_equal(row["masked_lm_weights"], np.arange(PREDICTIONS) < masks)


def hdf5_arrays(path: Path) -> dict[str, np.ndarray]:
    import h5py

    with h5py.File(path) as file:
        return {name: file[name][()] for name in file}


def test_hugging_face_datasets_reads_parquet(shards, tmp_path):
    import datasets

    table = datasets.load_dataset(
        "parquet", data_files=str(shards["parquet"]), split="train", cache_dir=str(tmp_path)
    )
    assert set(table.column_names) == set(load_schema("example")["bert"]["parquet"])
    arrays = hdf5_arrays(shards["hdf5"])
    assert len(table) == len(arrays["input_ids"])
    for row, ids, mask, positions in zip(
        table, arrays["input_ids"], arrays["input_mask"], arrays["masked_lm_positions"], strict=True
    ):
        assert row["input_ids"] == ids[: mask.sum()].tolist()
        assert row["first_segment_length"] + row["second_segment_length"] == mask.sum()
        assert row["masked_lm_positions"] == positions[: len(row["masked_lm_positions"])].tolist()


def test_md5sum_accepts_md5sums(shards):
    md5sum = shutil.which("md5sum")
    assert md5sum, "md5sum is part of every Unix"
    for path in shards.values():
        done = subprocess.run([md5sum, "-c", "MD5SUMS"], cwd=path.parent, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{path.name}: OK\nlengths/{path.name}.u16: OK\nmanifest.json: OK\n"


def test_conversion_in_a_circle_changes_no_byte(shards, tmp_path):
    route = [tmp_path / name for name in ("a.hdf5", "b.parquet", "c.tfrecord")]
    source = shards["tfrecord"]
    for target in route:
        assert main(["convert", str(source), str(target)]) == 0
        source = target
    md5 = {hashlib.md5(path.read_bytes()).hexdigest() for path in (shards["tfrecord"], route[-1])}
    assert len(md5) == 1
