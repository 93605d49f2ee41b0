"""Lengths beside the shards: those of the examples, on every route, and checked like the shards."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bertdata.cli.main import main
from bertdata.dataset.lengths import ShardLengths, read_lengths
from bertdata.dataset.reader import open_dataset
from bertdata.errors import MissingInputError, ShardError
from bertdata.examples.columns import compute_lengths
from bertdata.io.manifest_file import dump_json
from tests.support.commands import SMALL, Program
from tests.support.example_batches import example_batch
from tests.support.plain_objective import NAME as PLAIN

NAME = "part-00001-of-00003.tfrecord"


def create(corpus: list[Path], vocabulary: Path, directory: Path, *flags: str) -> Path:
    words = ["create", *map(str, corpus), "--output", str(directory), "--vocab", str(vocabulary)]
    assert main([*words, *flags]) == 0
    return directory


@pytest.fixture(scope="module")
def made(corpus, small_vocabulary_file, tmp_path_factory) -> Path:
    return create(corpus, small_vocabulary_file, tmp_path_factory.mktemp("made") / "set", *SMALL)


@pytest.fixture
def dataset(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "set"))


ROUTES = {
    "tfrecord": SMALL,
    "hdf5": (*SMALL, "--format=hdf5"),
    "parquet": (*SMALL, "--format=parquet"),
    "shuffled": (*SMALL, "--shuffle=global", "--num-shards=2"),
    "remasked": (*SMALL, "--dialect=graphcore", "--remask"),
    "ids alone": ("--objective", PLAIN, "--max-seq-length=48", "--workers=1"),
}


@pytest.mark.parametrize("flags", ROUTES.values(), ids=ROUTES)
def test_each_file_holds_the_tokens_of_the_shards_examples(flags, corpus, small_vocabulary_file, tmp_path):
    directory = create(corpus, small_vocabulary_file, tmp_path / "set", *flags)
    data = open_dataset(str(directory))
    assert data.has_lengths
    entries = {
        entry["name"]: entry for entry in json.loads((directory / "manifest.json").read_text())["shards"]
    }
    for shard in data.shards:
        expected = np.concatenate([compute_lengths(batch.ends) for batch in data.batches(shard)])
        assert list(data.lengths(shard)) == expected.tolist()
        written = (directory / "lengths" / f"{shard.name}.u16").read_bytes()
        assert written == expected.astype("<u2").tobytes()
        assert entries[shard.name]["lengths_md5"] == hashlib.md5(written).hexdigest()
    assert len(list((directory / "lengths").iterdir())) == len(data.shards)


def test_every_container_has_the_same_lengths(made, corpus, small_vocabulary_file, tmp_path):
    other = create(corpus, small_vocabulary_file, tmp_path / "set", *SMALL, "--format=hdf5")
    for path in (made / "lengths").iterdir():
        twin = other / "lengths" / path.name.replace(".tfrecord.", ".hdf5.")
        assert twin.read_bytes() == path.read_bytes()


def damage(path: Path, value: int, place: int = 3) -> None:
    data = bytearray(path.read_bytes())
    data[2 * place] ^= value
    path.write_bytes(data)


FAULTS = {
    "a wrong length": (lambda path: damage(path, 1), "wrong md5: found "),
    "a length too few": (lambda path: path.write_bytes(path.read_bytes()[:-2]), "wrong size: found "),
    "missing": (Path.unlink, "missing"),
}


@pytest.mark.parametrize(("harm", "said"), FAULTS.values(), ids=FAULTS)
def test_verify_tells_damaged_lengths_in_a_line_of_their_own(harm, said, dataset, bertdata: Program):
    path = dataset / "lengths" / f"{NAME}.u16"
    harm(path)
    outcome = bertdata("verify-md5", dataset)
    assert outcome.status == 1
    (line, last) = outcome.out.splitlines()
    assert line.startswith(f"{path}: {said}")
    assert last == f"{dataset}: 3 files right, 1 fault"


def test_verify_tells_stray_lengths(dataset, bertdata: Program):
    path = dataset / "lengths" / "other.tfrecord.u16"
    path.write_bytes(b"\1\0")
    outcome = bertdata("verify-md5", dataset)
    assert outcome.status == 1
    assert outcome.out.splitlines()[0] == f"{path}: extra; the manifest does not list it"


def test_lengths_that_a_forger_made_fit_are_held_against_the_shards_tokens(dataset, bertdata: Program):
    path = dataset / "lengths" / f"{NAME}.u16"
    before = hashlib.md5(path.read_bytes()).hexdigest()
    damage(path, 1)
    after = hashlib.md5(path.read_bytes()).hexdigest()
    manifest, sums = dataset / "manifest.json", dataset / "MD5SUMS"
    old = hashlib.md5(manifest.read_bytes()).hexdigest()
    manifest.write_text(manifest.read_text().replace(before, after))
    new = hashlib.md5(manifest.read_bytes()).hexdigest()
    sums.write_text(sums.read_text().replace(before, after).replace(old, new))
    outcome = bertdata("verify-md5", dataset)
    assert outcome.status == 1
    assert outcome.out.splitlines()[0].startswith(f"{path}: wrong lengths: found ")


def test_md5sums_lists_the_lengths_behind_the_shards(dataset):
    names = [line.split("  ")[1] for line in (dataset / "MD5SUMS").read_text().splitlines()]
    shards = sorted(path.name for path in dataset.glob("part-*"))
    assert names == [*shards, *(f"lengths/{shard}.u16" for shard in shards), "manifest.json"]


def test_md5sums_that_has_lost_the_line_of_the_manifest_is_found(dataset, bertdata: Program):
    sums = dataset / "MD5SUMS"
    lines = sums.read_text().splitlines(keepends=True)
    sums.write_text("".join(lines[:-1]))
    outcome = bertdata("verify-md5", dataset)
    assert outcome.status == 1
    assert outcome.out.startswith(f"{sums}: differs; it does not say what manifest.json says\n")


def without_lengths(dataset: Path) -> None:
    """Turn the dataset into one of an older version."""
    path = dataset / "manifest.json"
    manifest = json.loads(path.read_text())
    for entry in manifest["shards"]:
        del entry["lengths_md5"]
    path.write_bytes(dump_json(manifest))
    lines = (dataset / "MD5SUMS").read_text().splitlines(keepends=True)
    lines = [line for line in lines[:-1] if "lengths/" not in line]
    lines.append(f"{hashlib.md5(path.read_bytes()).hexdigest()}  manifest.json\n")
    (dataset / "MD5SUMS").write_text("".join(lines))
    shutil.rmtree(dataset / "lengths")


def test_a_dataset_of_an_older_version_is_sound_and_open_and_stays_as_it_is(
    dataset, corpus, small_vocabulary_file, bertdata: Program
):
    without_lengths(dataset)
    assert bertdata("verify-md5", dataset).out == f"{dataset}: 3 files right, sound\n"
    data = open_dataset(str(dataset))
    assert not data.has_lengths
    assert sum(map(len, data.batches(data.shards[0]))) == data.shards[0].examples
    before = {path: path.read_bytes() for path in dataset.rglob("*") if path.is_file()}
    create(corpus, small_vocabulary_file, dataset, *SMALL)
    assert {path: path.read_bytes() for path in dataset.rglob("*") if path.is_file()} == before


def test_a_shard_taken_without_its_manifest_has_no_lengths(dataset):
    assert not open_dataset(str(dataset / NAME), unverified=True).has_lengths
    assert open_dataset(str(dataset / NAME)).has_lengths


def test_lengths_that_were_changed_are_refused_when_they_are_read(dataset):
    data = open_dataset(str(dataset))
    shard = next(shard for shard in data.shards if shard.name == NAME)
    path = dataset / "lengths" / f"{NAME}.u16"
    damage(path, 1)
    with pytest.raises(ShardError, match=rf"{path}: found md5 \w+, expected \w+"):
        data.lengths(shard)
    path.write_bytes(b"")
    with pytest.raises(ShardError, match=rf"{path}: found 0 bytes, expected {2 * shard.examples} bytes"):
        data.lengths(shard)
    path.unlink()
    with pytest.raises(MissingInputError, match=rf"{path}: no such file"):
        data.lengths(shard)


def test_the_file_is_little_endian_with_two_bytes_an_example(tmp_path):
    collected = ShardLengths()
    collected.add(example_batch([(5, 1), (300, 2)]))
    collected.add(example_batch([(65, 1)]))
    data = collected.dump()
    assert data == bytes([5, 0, 44, 1, 65, 0])
    (tmp_path / "x.u16").write_bytes(data)
    assert list(read_lengths(str(tmp_path / "x.u16"), 3, hashlib.md5(data).hexdigest())) == [5, 300, 65]
