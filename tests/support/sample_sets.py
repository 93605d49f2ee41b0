"""Datasets made from the sample corpus, for tests of the trainer."""

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from bertdata.cli.main import main

LENGTH, PREDICTIONS = 64, 10


def create(corpus: Sequence[Path], vocabulary: Path, directory: object, container: str = "tfrecord") -> None:
    words = ["create", *map(str, corpus), "--output", str(directory), "--vocab", str(vocabulary)]
    sizes = [f"--max-seq-length={LENGTH}", f"--max-predictions-per-seq={PREDICTIONS}", "--dupe-factor=1"]
    assert main([*words, *sizes, "--format", container, "--workers", "1"]) == 0


def create_mixed(corpus: Sequence[Path], vocabulary: Path, place: Path) -> Path:
    """Make a dataset with NVIDIA's two training shards and one test shard, as older versions did."""
    for name, part in zip(("training_0", "training_1", "test_0"), corpus, strict=True):
        (place / f"wiki_{name}.txt").write_bytes(part.read_bytes())
    with patch("bertdata.build.given_parts.refuse_held_out", lambda paths: None):
        create(sorted(place.glob("*.txt")), vocabulary, place / "mixed", "hdf5")
    return place / "mixed"
