"""Every layout of packed rows: what is written is read back, example for example, md5 for md5."""

import hashlib
import io
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import MissingExtraError, SettingsError, ShardError
from bertdata.examples.bert.batch import BertBatch
from bertdata.shards.containers import make_reader
from bertdata.shards.content import compute_content_md5
from bertdata.shards.packed.layouts import LAYOUTS, make_pack_writer
from bertdata.shards.packed.packs import unpack_layout
from bertdata.shards.tfrecord import encode_batch
from tests.support.packed_rows import (
    Row,
    layout_of,
    packed,
    read_rows,
    rows,
    sequence,
    write_rows,
)

FORMS = [(name, format) for name, layout in LAYOUTS.items() for format in layout.formats]
LARGEST_IDS = {"nvidia": 32_767}


@pytest.mark.parametrize(("name", "format"), FORMS)
@given(st.data())
def test_rows_are_read_back_example_for_example(name: str, format: str, data: st.DataObject):
    layout = layout_of(name, data.draw(st.integers(1, 4)))
    one = rows(layout, LARGEST_IDS.get(name, 60_000), LAYOUTS[name].mask_room(layout) or 100)
    table = data.draw(st.lists(one, min_size=1, max_size=7))
    shard = write_rows(table, layout, format, data.draw(st.integers(1, 4)))
    reader, found = read_rows(shard)
    assert found == table
    assert reader.rows == len(table)
    assert len(reader) == sum(map(len, table))
    assert reader.layout == layout
    assert list(reader) == [example for row in table for example in row]


@pytest.mark.parametrize(("name", "format"), FORMS)
def test_the_content_md5_is_that_of_the_examples(name: str, format: str, tmp_path):
    layout = layout_of(name)
    table = [
        [sequence(6), sequence(9, 20, 2)],
        [sequence(16, 30, 3)],
        [sequence(4), sequence(5), sequence(6)],
    ]
    path = tmp_path / f"shard.{format}"
    path.write_bytes(write_rows(table, layout, format))
    examples = BertBatch.of([example for row in table for example in row], wide=False)
    expected = hashlib.md5(encode_batch(examples, unpack_layout(layout))).hexdigest()
    assert compute_content_md5(str(path)) == expected


@pytest.mark.parametrize(("name", "format"), FORMS)
def test_the_bytes_do_not_depend_on_the_batches(name: str, format: str):
    table = [[sequence(4 + i, 10 * i + 3), sequence(5)] for i in range(6)]
    one, other = (write_rows(table, layout_of(name), format, batch) for batch in (1, 5))
    assert one == other


@pytest.mark.parametrize(("name", "format"), FORMS)
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([sequence(10), sequence(7)], "17 ids, expected at most 16"),
        ([sequence(3)] * 4, "4 sequences, expected 1 to 3"),
        ([], "0 sequences, expected 1 to 3"),
        ([sequence(3), sequence(8, masks=4)], "sequence 2: 4 masked positions, expected 0 to 3"),
        (
            [sequence(3), replace(sequence(6), positions=[6])],
            "sequence 2: masked position 6, expected [01] to 5",
        ),
        ([replace(sequence(3), first_length=4)], "sequence 1: first length 4, expected 0 to 3"),
    ],
)
def test_a_row_that_no_layout_holds_is_named(name: str, format: str, row: Row, message: str, tmp_path):
    sink = (tmp_path / "shard").open("wb")
    writer = make_pack_writer(layout_of(name), format, sink)
    writer.write(packed([[sequence(5)], [sequence(6)]]))
    with pytest.raises(ShardError, match=f"shard: record 3: {message}$"):
        writer.write(packed([[sequence(7)], row]))


def test_an_unknown_layout_or_format_is_refused():
    with pytest.raises(SettingsError, match="^layout 'dense' is not known, expected one of "):
        make_pack_writer(layout_of("dense"), "parquet", open)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="^layout flat has no form in tfrecord, expected parquet$"):
        make_pack_writer(layout_of("flat"), "tfrecord", open)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "format"), FORMS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sequences_per_row": 0}, "sequences_per_row is 0, expected 1 to 16"),
        ({"sequences_per_row": 17}, "sequences_per_row is 17, expected 1 to 16"),
        ({"remask": True}, "remask: packed rows hold examples in their usual order"),
    ],
)
def test_a_layout_that_no_rows_have_is_refused(name: str, format: str, changes: dict[str, Any], message: str):
    with pytest.raises(SettingsError, match=f"^{message}$"):
        make_pack_writer(replace(layout_of(name), **changes), format, io.BytesIO())


@pytest.mark.parametrize(("name", "format"), [form for form in FORMS if form[0] != "flat"])
def test_a_layout_says_which_groups_of_columns_it_holds(name: str, format: str):
    message = (
        f"layout {name} holds examples of ids, segment, masks and pair label; those of the objective squad "
        "have ids, segment and answer; the layout flat holds any"
    )
    with pytest.raises(SettingsError, match=f"^{message}$"):
        make_pack_writer(replace(layout_of(name), objective="squad"), format, io.BytesIO())


@pytest.mark.parametrize(("name", "format"), FORMS)
def test_rows_without_masks_are_read_back(name: str, format: str):
    layout = replace(layout_of(name), max_predictions_per_seq=0)
    table = [[sequence(5, masks=0), sequence(4, masks=0)], [sequence(16, masks=0)]]
    reader, found = read_rows(write_rows(table, layout, format))
    assert found == table
    assert reader.layout == layout


@pytest.mark.parametrize(("name", "format"), [form for form in FORMS if form[0] in ("habana", "graphcore")])
def test_more_masks_than_a_row_has_room_for_are_named(name: str, format: str):
    row = [sequence(5, masks=3), sequence(5, masks=3)]
    with pytest.raises(ShardError, match="shard: record 1: 6 masked positions, expected at most 5$"):
        write_rows([[sequence(9)], row], layout_of(name), format)


@pytest.mark.parametrize(
    ("name", "format", "package", "extra"),
    [
        ("flat", "parquet", "pyarrow", "parquet"),
        ("habana", "hdf5", "h5py", "hdf5"),
        ("nvidia", "hdf5", "h5py", "hdf5"),
        ("graphcore", "tfrecord", "numpy", "numpy"),
    ],
)
def test_a_missing_package_names_the_extra(
    name: str, format: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
):
    shard = io.BytesIO(write_rows([[sequence(5)]], layout_of(name), format))
    monkeypatch.setitem(sys.modules, package, None)
    expected = rf"needs the package {package}: pip install --editable '.\[{extra}\]'"
    with pytest.raises(MissingExtraError, match=expected):
        make_pack_writer(layout_of(name), format, io.BytesIO())
    with pytest.raises(MissingExtraError, match=expected):
        make_reader(shard, "shard")


@pytest.mark.parametrize("name", ["habana", "graphcore"])
@given(st.data())
def test_both_engines_write_the_same_records_and_read_them(name: str, data: st.DataObject):
    layout, largest = layout_of(name), data.draw(st.sampled_from([60_000, 2**21 - 1]))
    table = data.draw(st.lists(rows(layout, largest, 5), min_size=1, max_size=4))
    ours = write_rows(table, layout, "tfrecord", engine="python")
    assert write_rows(table, layout, "tfrecord", engine="native") == ours
    assert read_rows(ours, engine="python")[1] == read_rows(ours, engine="native")[1] == table


@pytest.mark.parametrize("name", ["habana", "graphcore"])
def test_an_id_that_no_record_holds_is_refused(name: str):
    with pytest.raises(ShardError, match=f"^{name} shard: record 0: id 2097152, expected 0 to 2097151 in"):
        write_rows([[sequence(5, 2**21)]], layout_of(name), "tfrecord")
