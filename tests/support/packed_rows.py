"""Small packed rows, for tests of the packed layouts."""

import io

from hypothesis import strategies as st

from bertdata._native import Engine
from bertdata.examples.bert.batch import BertBatch, BertExample
from bertdata.records import ShardLayout
from bertdata.shards.containers import make_reader
from bertdata.shards.packed.layouts import make_pack_writer
from bertdata.shards.packed.packs import PackBatch, PackReader

Row = list[BertExample]


def layout_of(packing: str, sequences_per_row: int = 3) -> ShardLayout:
    return ShardLayout(
        max_seq_length=16,
        max_predictions_per_seq=3,
        packing=packing,
        sequences_per_row=sequences_per_row,
    )


@st.composite
def sequences(draw: st.DrawFn, longest: int, most_masks: int, largest_id: int) -> BertExample:
    length = draw(st.integers(1, longest))
    places = st.sets(st.integers(1, length - 1), max_size=most_masks) if length > 1 else st.just(set())
    positions = sorted(draw(places))
    ids = st.integers(0, largest_id)
    return BertExample(
        ids=draw(st.lists(ids, min_size=length, max_size=length)),
        first_length=draw(st.integers(0, length)),
        positions=positions,
        labels=draw(st.lists(ids, min_size=len(positions), max_size=len(positions))),
        next_label=draw(st.integers(0, 1)),
    )


@st.composite
def rows(draw: st.DrawFn, layout: ShardLayout, largest_id: int = 60_000, mask_room: int = 100) -> Row:
    """Draw a row that fits the layout. Ids may be 0, like padding."""
    left, row = layout.max_seq_length, []
    for _ in range(draw(st.integers(1, layout.sequences_per_row))):
        if left:
            most_masks = min(layout.max_predictions_per_seq, mask_room)
            row.append(draw(sequences(left, most_masks, largest_id)))
            left -= len(row[-1].ids)
            mask_room -= len(row[-1].positions)
    return row


def packed(table: list[Row], wide: bool = True) -> PackBatch:
    """Return the rows as columns."""
    ends = [0]
    for row in table:
        ends.append(ends[-1] + len(row))
    examples = [example for row in table for example in row]
    return PackBatch(examples=BertBatch.of(examples, wide=wide), ends=ends[1:])


def write_rows(
    table: list[Row], layout: ShardLayout, format: str, batch: int = 2, engine: Engine = "native"
) -> bytes:
    """Return the bytes of a shard with these rows. batch: number of rows written at a time."""
    sink = io.BytesIO()
    writer = make_pack_writer(layout, format, sink, engine)
    for start in range(0, len(table), batch):
        writer.write(packed(table[start : start + batch]))
    writer.close()
    return sink.getvalue()


def read_rows(data: bytes, name: str = "shard", engine: Engine = "native") -> tuple[PackReader, list[Row]]:
    """Return the reader of a shard, and all its rows."""
    reader = make_reader(io.BytesIO(data), name, engine)
    assert isinstance(reader, PackReader)
    return reader, [row for packs in reader.packs(3) for row in packs.rows()]


def sequence(length: int, number: int = 7, masks: int = 1) -> BertExample:
    """Return a simple sequence: [CLS] ... [SEP], with masks from position 1 on."""
    ids = [101, *range(number, number + length - 2), 102]
    positions = list(range(1, 1 + masks))
    return BertExample(
        ids=ids,
        first_length=length // 2,
        positions=positions,
        labels=[number] * masks,
        next_label=number % 2,
    )
