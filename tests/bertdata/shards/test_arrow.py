"""Files that ``datasets`` saved, as unmasked blocks, the kit's directory, and files that cannot be read."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bertdata as face
from bertdata.errors import DatasetError, ShardError
from bertdata.examples.columns import convert_to_arrays
from bertdata.examples.mlm.batch import MlmBatch, MlmExample
from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout
from bertdata.shards.arrow import ArrowWriter
from bertdata.shards.arrow_reader import ArrowReader

MLM = find_objective("mlm")


def written(rows: list[list[int]], longest: int, *, has_masks: bool = False) -> bytes:
    layout = ShardLayout(objective="mlm", max_seq_length=longest, max_predictions_per_seq=3)
    sink = io.BytesIO()
    writer = ArrowWriter(sink, layout, has_masks=has_masks)
    examples = [MlmExample(ids=row, positions=[], labels=[]) for row in rows]
    writer.write(convert_to_arrays(MlmBatch.of(examples, wide=True)))
    writer.close()
    return sink.getvalue()


def stream(path: Path, columns: dict[str, Any]) -> Path:
    """A file as other programs write one, without our metadata."""
    table = pyarrow.table(columns)
    with pyarrow.ipc.new_stream(path, table.schema) as file:
        file.write_table(table, max_chunksize=2)
    return path


def read(path: Path, objective: str | None = "mlm") -> list[list[int]]:
    return [example.ids for example in face.open_dataset(path, unverified=True, objective=objective)]


@pytest.fixture(scope="session")
def saved(kit: Path) -> Path:
    folder = kit / "encoders" / "arrow"
    if not folder.is_dir():
        pytest.skip("the kit has no oracles for encoders")
    return folder


def test_the_kits_directory_holds_the_kits_rows(saved):
    rows = json.loads((saved / "rows.json").read_text())
    assert read(saved / "dataset") == rows
    data = face.open_dataset(saved / "dataset", unverified=True, objective="mlm")
    assert (data.layout.max_seq_length, len(data), len(data.shards)) == (64, 60, 2)


def test_the_kits_rows_are_written_as_datasets_writes_them(saved):
    rows = json.loads((saved / "rows.json").read_text())
    for number, part in enumerate((rows[:30], rows[30:])):
        theirs = saved / "dataset" / f"data-{number:05}-of-00002.arrow"
        with pyarrow.ipc.open_stream(theirs.read_bytes()) as stream:
            expected = stream.read_all()
        found = pyarrow.ipc.open_stream(written(part, 64)).read_all()
        assert found.equals(expected)
        assert found.schema.remove_metadata() == expected.schema.remove_metadata()
        assert found.schema.metadata[b"huggingface"] == expected.schema.metadata[b"huggingface"]


def test_the_json_has_the_keys_that_datasets_writes(saved, bertdata, block_set, tmp_path):
    out = tmp_path / "out"
    assert bertdata("convert", block_set, out, "--to=arrow", "--num-shards=2", "--workers=1").status == 0
    ours = json.loads((out / "state.json").read_text())
    theirs = json.loads((saved / "dataset" / "state.json").read_text())
    assert ours.pop("_fingerprint") != theirs.pop("_fingerprint")
    assert list(ours.items()) == list(theirs.items())
    ours = json.loads((out / "dataset_info.json").read_text())
    theirs = json.loads((saved / "dataset" / "dataset_info.json").read_text())
    assert ours["features"].pop("labels")
    assert list(ours.items()) == list(theirs.items())


ROWS = st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=9), min_size=1, max_size=30)


@given(ROWS, st.booleans())
def test_rows_come_back(rows, has_masks):
    reader = ArrowReader(io.BytesIO(written(rows, 9, has_masks=has_masks)), "made")
    assert [example.ids for example in reader] == rows
    assert (len(reader), reader.layout.max_seq_length) == (len(rows), 9)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=9))
def test_masks_come_back_from_labels(items):
    layout = ShardLayout(objective="mlm", max_seq_length=9, max_predictions_per_seq=9)
    places = [place for place, (_, masked) in enumerate(items) if masked]
    example = MlmExample(ids=[item for item, _ in items], positions=places, labels=[7 for _ in places])
    sink = io.BytesIO()
    writer = ArrowWriter(sink, layout)
    writer.write(MlmBatch.of([example, example], wide=False))
    writer.close()
    assert list(ArrowReader(io.BytesIO(sink.getvalue()), "made")) == [example, example]


def test_bytes_do_not_depend_on_the_batches():
    rows = [[number % 50 + 1] * (number % 9 + 1) for number in range(2500)]
    layout = ShardLayout(objective="mlm", max_seq_length=9, max_predictions_per_seq=3)
    sink = io.BytesIO()
    writer = ArrowWriter(sink, layout, has_masks=False)
    for start in range(0, 2500, 7):
        found = [MlmExample(ids=row, positions=[], labels=[]) for row in rows[start : start + 7]]
        writer.write(MlmBatch.of(found, wide=True))
    writer.close()
    assert sink.getvalue() == written(rows, 9)
    sizes = [batch.num_rows for batch in pyarrow.ipc.open_stream(sink.getvalue())]
    assert sizes == [1000, 1000, 500]


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64, np.uint16])
def test_ids_of_any_integer_type_are_read(kind, tmp_path):
    rows = [[2, 7, 3], [2, 3], [2, 9, 9, 9, 3]]
    column = pyarrow.array(rows, pyarrow.list_(pyarrow.from_numpy_dtype(kind)))
    assert read(stream(tmp_path / "data.arrow", {"input_ids": column})) == rows


def test_other_columns_are_not_read_and_padding_is_left_out(tmp_path):
    columns = {
        "text": ["some", "words", "more"],
        "input_ids": pyarrow.array(
            [[2, 7, 3, 0], [2, 5, 5, 3], [2, 3, 0, 0]], pyarrow.list_(pyarrow.int64(), 4)
        ),
        "attention_mask": [[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 0, 0]],
        "special_tokens_mask": [[1, 0, 1, 1], [1, 0, 0, 1], [1, 1, 1, 1]],
    }
    path = stream(tmp_path / "data.arrow", columns)
    assert read(path) == [[2, 7, 3], [2, 5, 5, 3], [2, 3]]


def test_token_types_are_the_length_of_the_first_segment(tmp_path):
    columns = {
        "input_ids": [[2, 5, 3, 7, 8, 3], [2, 5, 3, 0], [2, 3, 9]],
        "attention_mask": [[1] * 6, [1, 1, 1, 0], [1] * 3],
        "token_type_ids": [[0, 0, 0, 1, 1, 1], [0] * 4, [1] * 3],
    }
    path = stream(tmp_path / "data.arrow", columns)
    data = face.open_dataset(path, unverified=True, objective="electra")
    assert [(example.ids, example.first_length) for example in data] == [
        ([2, 5, 3, 7, 8, 3], 3),
        ([2, 5, 3], 3),
        ([2, 3, 9], 0),
    ]


@pytest.mark.parametrize("types", [[0, 1, 0], [1, 0, 0], [1, 0, 1], [0, 0, 2], [0, 2, 1], [0, -1, 1]])
def test_token_types_of_more_than_two_segments_are_refused(types, tmp_path):
    columns = {"input_ids": [[2, 3], [2, 5, 3]], "token_type_ids": [[0, 1], types]}
    path = stream(tmp_path / "data.arrow", columns)
    with pytest.raises(ShardError, match=f"^{path}: record 1: token_type_ids is not zeros, then ones"):
        read(path, "electra")


def test_sizes_of_several_files_are_those_of_the_longest(tmp_path):
    for name, row in (("a", [2, 3]), ("b", [2, 4, 4, 4, 3])):
        stream(tmp_path / f"{name}.arrow", {"input_ids": [row]})
    data = face.open_dataset(tmp_path, unverified=True, objective="mlm")
    assert data.layout.max_seq_length == 5
    assert [example.ids for example in data] == [[2, 3], [2, 4, 4, 4, 3]]
    [batch] = data.numpy()
    assert batch["input_ids"].tolist() == [[2, 3, 0, 0, 0], [2, 4, 4, 4, 3]]


def test_the_order_is_that_of_state_json(tmp_path):
    """A directory may hold other files, as those that datasets keeps of its maps."""
    for name, row in (("data-0", [2, 3]), ("cache-1", [4])):
        stream(tmp_path / f"{name}.arrow", {"input_ids": [row]})
    (tmp_path / "dataset_info.json").write_text("{}")
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-0.arrow"}]}))
    assert read(tmp_path) == [[2, 3]]
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(DatasetError, match="state.json: lists no data files"):
        read(tmp_path)


def test_several_splits_are_named(tmp_path):
    for split in ("train", "validation"):
        (tmp_path / split).mkdir()
        stream(tmp_path / split / "data-0.arrow", {"input_ids": [[2, 3]]})
        (tmp_path / split / "state.json").write_text("{}")
    (tmp_path / "dataset_dict.json").write_text("{}")
    with pytest.raises(
        DatasetError, match=r"several splits of datasets; name one of them: .*/train, .*/validation$"
    ):
        read(tmp_path)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"ids": [[1, 2]]}, "no column input_ids, which examples of mlm have"),
        ({"input_ids": [[1.5]]}, "column input_ids is list<.*double>, expected lists of int32"),
        ({"input_ids": [3]}, "column input_ids is int64, expected lists of int32"),
        ({"input_ids": [[1], [2, -1]]}, "record 1: id -1, expected 0 to"),
        ({"input_ids": [[1], []]}, "record 1: 0 ids, expected 1 to"),
        ({"input_ids": [[1], None]}, "record 1: no input_ids, expected a list"),
        ({"input_ids": [[1], [1, None]]}, "record 1: a hole in input_ids"),
        (
            {"input_ids": [[1], [1, 2, 3]], "attention_mask": [[1], [1, 0, 1]]},
            "record 1: attention_mask is not ones, then zeros",
        ),
        (
            {"input_ids": [[1], [1, 2]], "attention_mask": [[1], [1]]},
            "record 1: 1 values of attention_mask, expected 2 as input_ids has",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_named(columns, told, tmp_path):
    path = stream(tmp_path / "data.arrow", columns)
    with pytest.raises(ShardError, match=f"^{path}: {told}"):
        read(path)


def test_a_file_of_arrows_other_format_is_read_too(tmp_path):
    table = pyarrow.table({"input_ids": [[2, 3], [2, 5, 3]]})
    with pyarrow.ipc.new_file(tmp_path / "data.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=1)
    assert read(tmp_path / "data.arrow") == [[2, 3], [2, 5, 3]]


def test_a_file_that_names_no_objective_asks_for_it(bertdata, tmp_path):
    path = stream(tmp_path / "data.arrow", {"input_ids": [[2, 3]]})
    bertdata("show", path).assert_one_error(1, "data.arrow: does not say of which objective its examples are")
    assert bertdata("show", path, "--objective=mlm").status == 0


@pytest.mark.parametrize("keep", [8, 200, 500, -8])
def test_a_damaged_file_is_one_error(keep, tmp_path):
    path = tmp_path / "data.arrow"
    path.write_bytes(written([[2, 5, 3]] * 40, 8)[:keep])
    with pytest.raises(ShardError, match="not a readable"):
        list(face.open_dataset(path, unverified=True, objective="mlm"))


def test_damaged_offsets_are_refused(tmp_path):
    whole = bytearray(written([[2, 5, 3]] * 40, 8))
    place = bytes(whole).index(np.arange(0, 30, 3, dtype="<i4").tobytes())
    whole[place + 4 : place + 8] = (1 << 20).to_bytes(4, "little")
    path = tmp_path / "data.arrow"
    path.write_bytes(whole)
    with pytest.raises(ShardError, match="not a readable Arrow stream"):
        read(path)
