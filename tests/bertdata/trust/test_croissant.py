"""Croissant: mlcroissant validates our description of a dataset, and reads the records through it."""

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import h5py
import mlcroissant
import pyarrow.parquet
import pytest

import bertdata as toolkit
from bertdata.cli.main import main
from bertdata.errors import DatasetError, ShardError
from bertdata.trust.croissant import describe_in_croissant, dump_croissant
from tests.support.commands import SMALL
from tests.support.data_chains import make_chain
from tests.support.paths import DUMP, GOLDEN

VOCAB = GOLDEN / "vocab.txt"
EXAMPLES = "examples"


def create(output: Path, *flags: str, parts: Sequence[Path] = (GOLDEN / "single.txt",)) -> Path:
    words = ["create", *map(str, parts), "--output", str(output), "--vocab", str(VOCAB), *SMALL]
    assert main([*words, *flags]) == 0
    return output


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``one`` with a single shard and ``two`` with two, both in Parquet and described."""
    place = tmp_path_factory.mktemp("croissant")
    create(place / "one", "--format=parquet")
    other = Path(shutil.copy(GOLDEN / "single.txt", place / "other.txt"))
    create(place / "two", "--format=parquet", parts=[other, GOLDEN / "single.txt"])
    for name in ("one", "two"):
        describe(place / name)
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(made, tmp_path / "place"))


def describe(directory: Path) -> Path:
    """Write the description next to the shards."""
    path = directory / "croissant.json"
    path.write_text(dump_croissant(describe_in_croissant(str(directory))))
    return path


def open_described(directory: Path) -> mlcroissant.Dataset:
    return mlcroissant.Dataset(jsonld=directory / "croissant.json")


def read_records(directory: Path) -> list[dict[str, Any]]:
    """Return the records that mlcroissant reads, with our names of columns and Python's types."""
    return [
        {name.removeprefix(f"{EXAMPLES}/"): convert(value) for name, value in record.items()}
        for record in open_described(directory).records(EXAMPLES)
    ]


def convert(value: Any) -> Any:
    return [int(one) for one in value] if isinstance(value, list) else int(value)


def iterate_files(directory: Path) -> Iterator[Path]:
    for path in directory.rglob("*"):
        if path.is_file() and path.name not in ("croissant.json", "README.md"):
            yield path


@pytest.mark.parametrize("name", ["one", "two"])
def test_mlcroissant_validates_the_description_as_version_1_1(made: Path, name: str) -> None:
    dataset = open_described(made / name)
    assert not dataset.metadata.ctx.issues.errors
    assert dataset.metadata.ctx.is_v1_1()
    assert "http://mlcommons.org/croissant/1.1" in dataset.metadata.conforms_to


@pytest.mark.parametrize("name", ["one", "two"])
def test_mlcroissant_reads_the_records_that_we_read(made: Path, name: str) -> None:
    records = read_records(made / name)
    shards = sorted((made / name).glob("*.parquet"))
    assert records == [row for path in shards for row in pyarrow.parquet.read_table(path).to_pylist()]
    ours = [list(map(int, example.ids)) for path in shards for example in toolkit.open_dataset(path)]
    assert [record["input_ids"] for record in records] == ours
    assert len(ours) > 5


@pytest.mark.parametrize("name", ["one", "two"])
def test_every_file_has_its_size_and_digests(made: Path, name: str) -> None:
    described = {
        file.name: (file.content_size, file.sha256, file.md5)
        for file in open_described(made / name).metadata.file_objects
    }
    assert described == {
        path.relative_to(made / name).as_posix(): (
            f"{path.stat().st_size} B",
            hashlib.sha256(path.read_bytes()).hexdigest(),
            hashlib.md5(path.read_bytes()).hexdigest(),
        )
        for path in iterate_files(made / name)
    }
    assert "manifest.json" in described


def test_a_described_dataset_is_sound(made: Path) -> None:
    assert toolkit.verify(made / "two").sound


def manipulate(directory: Path) -> Path:
    """Replace a shard by one that can be read: its last record is left out."""
    path = max(directory.glob("*.parquet"))
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table.slice(0, len(table) - 1), path)
    return path


def test_mlcroissant_refuses_a_manipulated_shard(place: Path) -> None:
    manipulate(place / "one")
    with pytest.raises(mlcroissant.GenerationError) as error:
        read_records(place / "one")
    assert "is not identical with the reference" in str(error.value.__cause__)


def test_mlcroissants_check_of_files_refuses_a_manipulated_shard_of_several(place: Path) -> None:
    path = manipulate(place / "two")
    refused = []
    for operation in open_described(place / "two").operations.operations.nodes:
        if type(operation).__name__ == "Download":
            try:
                operation.call()
            except ValueError:
                refused.append(operation.node.name)
    assert refused == [path.name]


def test_a_dataset_that_does_not_match_its_manifest_is_not_described(place: Path) -> None:
    path = max((place / "one").glob("*.parquet"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ShardError, match=f"{path.name}: found md5 .* expected .*verify-md5"):
        describe_in_croissant(str(place / "one"))


def list_fields(directory: Path) -> dict[str, tuple[str, str | None]]:
    """Return type and shape of each field, as mlcroissant reads them."""
    [records] = open_described(directory).metadata.record_sets
    return {
        field.name: (str(field.data_types[0]).rpartition("/")[2], field.array_shape)
        for field in records.fields
    }


def test_the_fields_of_tfrecords_are_declared(tmp_path: Path) -> None:
    describe(create(tmp_path / "shards"))
    fields = list_fields(tmp_path / "shards")
    assert fields["input_ids"] == ("Int64", "64")
    assert fields["masked_lm_weights"] == ("Float32", "10")
    assert fields.keys() == {
        *("input_ids", "input_mask", "segment_ids", "next_sentence_labels"),
        *("masked_lm_ids", "masked_lm_positions", "masked_lm_weights"),
    }


def test_the_fields_of_hdf5_are_its_datasets(tmp_path: Path) -> None:
    describe(create(tmp_path / "shards", "--format=hdf5"))
    with h5py.File(next((tmp_path / "shards").glob("*.hdf5"))) as file:
        expected = {
            name: (data.dtype.name.replace("int", "Int"), str(data.shape[1]) if data.ndim > 1 else None)
            for name, data in file.items()
        }
    assert list_fields(tmp_path / "shards") == expected


@pytest.mark.thorough_after_first
@pytest.mark.parametrize("layout", ["flat", "habana", "graphcore", "nvidia"])
def test_packed_rows_are_described(tmp_path: Path, layout: str) -> None:
    create(tmp_path / "shards")
    assert (
        main(["pack", str(tmp_path / "shards"), "--output", str(tmp_path / "packed"), f"--layout={layout}"])
        == 0
    )
    describe(tmp_path / "packed")
    assert len(list_fields(tmp_path / "packed")) > 3


@pytest.mark.thorough_after_first
@pytest.mark.parametrize("to", ["lddl", "arrow", "nvidia-mlperf"])
def test_other_programs_formats_are_described(tmp_path: Path, to: str) -> None:
    create(tmp_path / "shards")
    words = ["convert", str(tmp_path / "shards"), str(tmp_path / "theirs"), f"--to={to}"]
    assert main([*words, *(["--num-shards=2"] if to == "nvidia-mlperf" else [])]) == 0
    describe(tmp_path / "theirs")
    assert len(list_fields(tmp_path / "theirs")) > 3


def test_mds_is_described(tmp_path: Path) -> None:
    describe(create(tmp_path / "shards", "--format=mds", "--objective=mlm", "--no-masks"))
    assert list_fields(tmp_path / "shards") == {"id": ("Text", None), "input_ids": ("UInt16", "-1")}


def test_names_with_blanks_and_brackets_are_described(tmp_path: Path) -> None:
    names = ("a [1] b.txt", "c.txt")
    parts = [Path(shutil.copy(GOLDEN / "single.txt", tmp_path / name)) for name in names]
    describe(create(tmp_path / "out", "--format=parquet", parts=parts))
    shards = sorted((tmp_path / "out").glob("*.parquet"))
    assert len(read_records(tmp_path / "out")) == sum(
        len(pyarrow.parquet.read_table(path)) for path in shards
    )


def test_dump_languages_licence_and_steps_are_told(tmp_path: Path) -> None:
    dump = tmp_path / "dewiki-20240101-pages-articles.xml"
    shutil.copy(DUMP, dump)
    make_chain(dump, tmp_path, "--format=parquet")
    describe(tmp_path / "shards")
    metadata = open_described(tmp_path / "shards").metadata
    assert metadata.in_language == "de" or metadata.in_language == ["de"]
    assert metadata.license == [
        "https://creativecommons.org/licenses/by-sa/4.0/",
        "https://www.gnu.org/licenses/fdl-1.3.html",
    ]
    steps = [line.partition(":")[0] for line in metadata.data_preprocessing_protocol]
    assert steps == ["bertdata extract", "bertdata segment", "bertdata create"]
    value = json.loads((tmp_path / "shards" / "croissant.json").read_text())
    parts, _ = value["prov:wasDerivedFrom"]
    [articles] = parts["prov:wasDerivedFrom"]
    [source] = articles["prov:wasDerivedFrom"]
    assert source["@id"] == f"urn:md5:{hashlib.md5(dump.read_bytes()).hexdigest()}"
    assert json.loads(value["prov:wasGeneratedBy"]["description"])["objective"]["max_seq_length"] == 64


def test_a_text_that_tells_no_licence_has_none(made: Path) -> None:
    metadata = open_described(made / "one").metadata
    assert metadata.license is None
    assert not metadata.in_language


def test_what_is_no_dataset_with_a_manifest_is_refused(made: Path, tmp_path: Path) -> None:
    (tmp_path / "plain.tfrecord").write_bytes(b"")
    with pytest.raises(DatasetError, match="has no manifest"):
        describe_in_croissant(str(tmp_path))
    with pytest.raises(DatasetError, match="holds 2 datasets; name one of them"):
        describe_in_croissant(str(made))
