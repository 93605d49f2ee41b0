"""Small examples, for tests of shard containers."""

from hypothesis import strategies as st

from bertdata.examples.bert.batch import BertBatch, BertExample
from bertdata.records import ShardLayout

LAYOUT = ShardLayout(max_seq_length=12, max_predictions_per_seq=3)


@st.composite
def examples(draw: st.DrawFn, largest_id: int) -> BertExample:
    length = draw(st.integers(2, LAYOUT.max_seq_length))
    places = st.sets(st.integers(1, length - 1), max_size=LAYOUT.max_predictions_per_seq)
    positions = sorted(draw(places))
    ids = st.integers(0, largest_id)
    return BertExample(
        ids=draw(st.lists(ids, min_size=length, max_size=length)),
        first_length=draw(st.integers(0, length)),
        positions=positions,
        labels=draw(st.lists(ids, min_size=len(positions), max_size=len(positions))),
        next_label=draw(st.integers(0, 1)),
    )


def pack(rows: list[BertExample], id_type: str = "H") -> BertBatch:
    """Return the rows as columns. id_type: ``array`` type code of the ids."""
    return BertBatch.of(rows, wide=id_type == "I")


def plain_row(number: int) -> BertExample:
    return BertExample(
        ids=[101, number, 103, 102, 7, 102], first_length=4, positions=[2, 4], labels=[9, 7], next_label=1
    )
