"""Our directories in others' hands: each library that is installed reads them as docs/formats.md says.

polars and duckdb are no dependencies, as they are large: their tests are left out where they are missing.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bertdata as toolkit
from bertdata.cli.main import main
from tests.support.commands import SMALL, Program

Read = Callable[[Path], list[list[int]]]
CREATED = {
    "parquet": (),
    "parts called .txt": (),
    "bins": ("--bin-size=16",),
    "blocks": ("--objective=mlm",),
    "shuffled": ("--shuffle=global", "--num-shards=2"),
}
BLOCKS = ("--max-seq-length=64", "--workers=1", "--objective=mlm")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))


def by_datasets(directory: Path) -> list[list[int]]:
    datasets = pytest.importorskip("datasets", reason="needs Hugging Face's datasets")
    loaded = datasets.load_dataset(str(directory), split="train", cache_dir=str(directory.parent / "cache"))
    return [row["input_ids"] for row in loaded]


def by_pandas(directory: Path) -> list[list[int]]:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    found = pandas.concat(pandas.read_parquet(path) for path in sorted(directory.glob("*.parquet")))
    return [list(map(int, ids)) for ids in found["input_ids"]]


def by_pyarrow(directory: Path) -> list[list[int]]:
    dataset = pytest.importorskip("pyarrow.dataset", reason="needs pyarrow")
    found = dataset.dataset(str(directory), format="parquet", exclude_invalid_files=True)
    return found.to_table()["input_ids"].to_pylist()


def by_polars(directory: Path) -> list[list[int]]:
    polars = pytest.importorskip("polars", reason="needs polars, which is no dependency")
    return polars.read_parquet(f"{directory}/*.parquet")["input_ids"].to_list()


def by_duckdb(directory: Path) -> list[list[int]]:
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb, which is no dependency")
    found: Any = duckdb.sql(f"SELECT input_ids FROM '{directory}/*.parquet'")
    return [ids for (ids,) in found.fetchall()]


def examples(directory: Path) -> list[list[int]]:
    """The ids of all examples by our own reader, sorted: libraries read files in orders of their own."""
    return sorted(list(map(int, example.ids)) for example in toolkit.open_dataset(directory))


@pytest.fixture(scope="module", params=CREATED)
def made(request, corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory) -> Path:
    """A Parquet dataset, which tests only read."""
    place = tmp_path_factory.mktemp("made")
    (place / "parts").mkdir()
    for path in corpus:
        ending = ".txt" if request.param == "parts called .txt" else ""
        (place / "parts" / f"{path.name}{ending}").write_bytes(path.read_bytes())
    flags = BLOCKS if request.param == "blocks" else SMALL
    common = ("--output", place / "out", "--vocab", small_vocabulary_file, "--format=parquet")
    words = ["create", place / "parts" / "*", *common, *flags, *CREATED[request.param]]
    assert main([str(word) for word in words]) == 0
    return place / "out"


@pytest.mark.parametrize("read", [by_datasets, by_pandas, by_pyarrow, by_polars, by_duckdb])
def test_a_parquet_dataset_is_read_with_all_its_examples(read: Read, made: Path) -> None:
    assert sorted(read(made)) == examples(made)


@pytest.fixture
def tfrecords(corpus: list[Path], small_vocabulary_file: Path, bertdata: Program, tmp_path: Path) -> Path:
    common = ("--output", tmp_path / "made", "--vocab", small_vocabulary_file)
    assert bertdata("create", *corpus, *common, *SMALL).status == 0
    return tmp_path / "made"


@pytest.mark.parametrize("read", [by_datasets, by_pandas, by_pyarrow, by_polars, by_duckdb])
@pytest.mark.thorough_after_first
def test_packed_rows_in_parquet_are_read(
    read: Read, tfrecords: Path, bertdata: Program, tmp_path: Path
) -> None:
    assert bertdata("pack", tfrecords, "--output", tmp_path / "packed").status == 0
    rows = read(tmp_path / "packed")
    assert sum(map(len, rows)) == sum(map(len, examples(tfrecords)))


def test_a_directory_for_lddl_is_read_by_datasets(tfrecords: Path, bertdata: Program, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="needs Hugging Face's datasets")
    assert bertdata("convert", tfrecords, tmp_path / "lddl", "--to", "lddl").status == 0
    loaded = datasets.load_dataset(str(tmp_path / "lddl"), split="train", cache_dir=str(tmp_path / "cache"))
    assert len(loaded) == len(examples(tfrecords))


def test_arrow_files_are_read_by_their_two_ways(tfrecords: Path, bertdata: Program, tmp_path: Path) -> None:
    """``load_dataset(DIR)`` refuses what ``load_from_disk`` reads; its Arrow reader takes the files."""
    datasets = pytest.importorskip("datasets", reason="needs Hugging Face's datasets")
    arrow = tmp_path / "arrow"
    assert bertdata("convert", tfrecords, arrow, "--to", "arrow", "--num-shards", 2).status == 0
    files = str(arrow / "*.arrow")
    loaded = datasets.load_dataset(
        "arrow", data_files=files, split="train", cache_dir=str(tmp_path / "cache")
    )
    for found in (loaded, datasets.load_from_disk(str(arrow))):
        assert len(found) == len(examples(tfrecords))
    with pytest.raises(ValueError, match="load_from_disk"):
        datasets.load_dataset(str(arrow))


def test_polars_reads_arrow_files_as_streams(tfrecords: Path, bertdata: Program, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="needs polars, which is no dependency")
    assert bertdata("convert", tfrecords, tmp_path / "arrow", "--to", "arrow").status == 0
    rows = [polars.read_ipc_stream(path).height for path in (tmp_path / "arrow").glob("*.arrow")]
    assert sum(rows) == len(examples(tfrecords))


def test_a_card_of_one_s_own_is_kept(tfrecords: Path, bertdata: Program, tmp_path: Path) -> None:
    flags = ("convert", tfrecords, tmp_path / "lddl", "--to", "lddl")
    assert bertdata(*flags).status == 0
    (tmp_path / "lddl" / "README.md").write_text("mine\n")
    assert bertdata(*flags).status == 0
    assert (tmp_path / "lddl" / "README.md").read_text() == "mine\n"
    assert bertdata("verify-md5", tmp_path / "lddl").status == 0


def test_a_dataset_without_the_card_is_sound(tfrecords: Path, bertdata: Program, tmp_path: Path) -> None:
    """As one of an earlier version."""
    assert bertdata("convert", tfrecords, tmp_path / "lddl", "--to", "lddl").status == 0
    (tmp_path / "lddl" / "README.md").unlink()
    outcome = bertdata("verify-md5", tmp_path / "lddl")
    assert outcome.status == 0, outcome.out


def test_other_containers_have_no_card(tfrecords: Path) -> None:
    assert not (tfrecords / "README.md").exists()
