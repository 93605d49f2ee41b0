"""Packed rows in training: batches hold the examples of their rows, in the order, once an epoch."""

import dataclasses
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DatasetError, SettingsError, ShardError
from bertdata.examples import columns
from bertdata.records import ShardLayout
from tests.support.packed_data import pack_in_turn
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatBatch
from trainer.data.evaluation import load_evaluation_batches, make_evaluation_form
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.load_packing import RowsPackedAtLoad
from trainer.data.loader import Loader
from trainer.data.order import Position
from trainer.data.packs import PackRows
from trainer.data.padded_rows import RowForm
from trainer.data.row_batches import RowBatch

S, P = 32, 5
LAYOUT = ShardLayout(max_seq_length=S, max_predictions_per_seq=P)
PLAIN = generate_data(LAYOUT, vocabulary_size=60_000, fill=0.4, files=4, examples=60)
PACKED = pack_in_turn(PLAIN)
AT_LOAD = RowsPackedAtLoad(PLAIN, window=50, sequences_per_row=6)
KINDS = {"packed": PackRows(PACKED), "at load": AT_LOAD}

Found = tuple[list[int], ...]


def examples_of(batch: Batch) -> list[list[Found]]:
    """(ids, segments, masked places, labels, pair's label) of each example, row by row; flat: of one row."""
    return list(_in_rows(batch) if isinstance(batch, RowBatch) else [list(_flat(batch))])


def _in_rows(batch: RowBatch) -> Iterator[list[Found]]:
    for i in range(len(batch)):
        row, numbers = [], batch.attention_mask[i]
        for number in range(1, int(numbers.max()) + 1):
            own = numbers == number
            start = int(batch.next_sentence_positions[i, number - 1])
            assert own.nonzero()[0, 0] == start
            assert batch.position_ids[i][own].tolist() == list(range(int(own.sum())))
            places = batch.masked_lm_positions[i][batch.masked_lm_weights[i] > 0] - start
            labels = batch.masked_lm_ids[i][batch.masked_lm_weights[i] > 0]
            masks = (places >= 0) & (places < int(own.sum()))
            row.append((
                batch.input_ids[i][own].tolist(), batch.token_type_ids[i][own].tolist(),
                places[masks].tolist(), labels[masks].tolist(),
                [int(batch.next_sentence_labels[i, number - 1])],
            ))  # fmt: skip
        assert (batch.next_sentence_labels[i, len(row) :] == -1).all()
        yield row


def _flat(batch: FlatBatch) -> Iterator[Found]:
    used = batch.masked_lm_weights > 0
    rows, labels = batch.masked_lm_rows[used], batch.masked_lm_ids[used]
    for i in range(int((batch.next_sentence_labels >= 0).sum())):
        start, end = batch.ends[i : i + 2].tolist()
        assert batch.first_rows[i] == start
        own = (rows >= start) & (rows < end)
        yield (
            batch.input_ids[start:end].tolist(), batch.token_type_ids[start:end].tolist(),
            (rows[own] - start).tolist(), labels[own].tolist(), [int(batch.next_sentence_labels[i])],
        )  # fmt: skip


def as_found(data: OpenedDataset) -> list[Found]:
    """The examples of a dataset, in the order of the files."""
    found = []
    for shard in data.shards:
        for batch in data.batches(shard):
            for one in batch.examples():
                types = [0] * one.first_length + [1] * (len(one.ids) - one.first_length)
                found.append((one.ids, types, one.positions, one.labels, [one.next_label]))
    return found


def load(kind: str, count: int, **settings: object) -> list[list[Batch]]:
    """The micro-batches of the first updates, of all workers, in their order."""
    rows = KINDS[kind]
    workers = settings.pop("workers", 1)
    padded = settings.pop("padded", True)
    settings = {"batch_size": 2, "open_files": 3} | settings
    form = make_form(rows, batch_size=settings["batch_size"], padded=padded)
    loaders = [Loader(rows, form=form, workers=workers, rank=rank, **settings) for rank in range(workers)]
    updates = []
    for _ in range(count):
        turns = zip(*(next(loader).batches for loader in loaders), strict=True)
        updates.append([batch for turn in turns for batch in turn])
    for loader in loaders:
        loader.close()
    return updates


def consumed(updates: list[list[Batch]]) -> list[list[Found]]:
    """The rows of updates of row batches in the order in which they are dealt: to micro-batches in turn."""
    found = []
    for batches in updates:
        by_batch = [examples_of(batch) for batch in batches]
        found += [rows[i] for i in range(len(by_batch[0])) for rows in by_batch]
    return found


def epoch_rows(kind: str) -> int:
    """The rows of the first epoch."""
    if kind == "packed":
        return sum(shard.rows for shard in PACKED.shards)
    loader = Loader(AT_LOAD, form=RowForm(slots=30), batch_size=1, open_files=3)
    count = next(i for i, update in enumerate(loader, 1) if update.position.epoch)
    loader.close()
    return count


@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_holds_every_example_once_in_rows_that_fit(kind):
    rows = consumed(load(kind, epoch_rows(kind), batch_size=1))
    assert Counter(map(str, (one for row in rows for one in row))) == Counter(map(str, as_found(PLAIN)))
    assert max(sum(len(one[0]) for one in row) for row in rows) <= S
    assert max(map(len, rows)) > 1


@pytest.mark.parametrize("workers", [1, 2])
def test_packed_files_can_be_read_in_chunks(workers):
    whole = consumed(load("packed", epoch_rows("packed") // workers, batch_size=1, workers=workers))
    chunks = consumed(
        load("packed", epoch_rows("packed") // workers, batch_size=1, workers=workers, chunk_rows=20)
    )
    assert sorted(chunks) == sorted(whole)
    assert chunks != whole


def test_the_rows_of_a_packed_dataset_stay_together():
    wanted = Counter()
    for shard in PACKED.shards:
        for packs in PACKED.packs(shard):
            start = 0
            for end in packs.ends.tolist():
                part = columns.slice_batch(packs.examples, start, end)
                wanted[str([one.ids for one in part.examples()])] += 1
                start = end
    rows = consumed(load("packed", epoch_rows("packed"), batch_size=1))
    assert Counter(str([one[0] for one in row]) for row in rows) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_flat_batches_hold_the_examples_of_the_rows(kind):
    rows, flat = (load(kind, 30, padded=padded, accumulation=2) for padded in (True, False))
    for in_rows, in_flat in zip(rows, flat, strict=True):
        for one, other in zip(in_rows, in_flat, strict=True):
            assert [example for row in examples_of(one) for example in row] == examples_of(other)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_has_the_same_rows_on_any_number_of_workers(kind):
    alone = consumed(load(kind, 20, accumulation=4))
    assert consumed(load(kind, 20, accumulation=2, workers=2)) == alone
    assert consumed(load(kind, 20, workers=4)) == alone


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("padded", [True, False])
def test_twenty_random_stops_are_resumed_bit_for_bit_by_any_number_of_workers(kind, padded):
    count = 60
    wanted = load(kind, count, padded=padded, accumulation=4)
    form = make_form(KINDS[kind], batch_size=2, padded=padded)
    with_positions = Loader(KINDS[kind], form=form, batch_size=2, accumulation=4, open_files=3)
    positions = [tuple(next(with_positions).position) for _ in range(count)]
    with_positions.close()
    assert len({position[0] for position in positions}) > 1, "epochs change between the stops"
    stops = np.random.default_rng(0).choice(count - 2, 20, replace=False)
    for number, stop in enumerate(stops.tolist()):
        workers = (1, 2, 4)[number % 3]
        position = positions[stop]
        found = load(kind, 2, padded=padded, accumulation=4 // workers, workers=workers, position=position)
        for batches, others in zip(found, wanted[stop + 1 : stop + 3], strict=True):
            assert list(map(bits, batches)) == list(map(bits, others))


def bits(batch: Batch) -> list[object]:
    """Every tensor of a batch as bytes, and its numbers."""
    values = [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    return [value.numpy().tobytes() if hasattr(value, "numpy") else value for value in values]


def test_another_seed_packs_other_rows():
    assert consumed(load("at load", 5, seed=1)) != consumed(load("at load", 5))


def test_a_resume_packs_one_window_and_lists_no_file_before_it(monkeypatch):
    """No replay: the work to resume does not grow with the position."""
    data = generate_data(LAYOUT, vocabulary_size=100, fill=0.4, files=500, examples=1000)
    counted = Counter()

    class Counting(type(data)):
        def lengths(self, shard):
            counted[shard.name] += 1
            return super().lengths(shard)

    fields = {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}
    form = make_form(RowsPackedAtLoad(data, window=64), batch_size=2)
    rows = RowsPackedAtLoad(Counting(**fields), window=64)
    loader = Loader(rows, form=form, batch_size=2, open_files=4, position=(70, 64 * 5000, 3))
    assert next(loader).position == Position(70, 64 * 5000, 5)
    loader.close()
    assert len(counted) <= 8  # the open files, and those that may follow within the windows read ahead


def test_evaluation_on_packed_data_sees_every_example_once():
    for rows in (True, False):
        form = make_evaluation_form(PACKED, batch_size=7, padded=rows)
        plain = make_form(Rows(PLAIN), batch_size=7, padded=rows)
        for rank in range(2):
            share = [
                bits(batch)
                for data, way in ((PACKED, form), (PLAIN, plain))
                for batch in load_evaluation_batches(data, form=way, batch_size=7, workers=2, rank=rank)
            ]
            assert share[: len(share) // 2] == share[len(share) // 2 :]


def test_the_examples_of_a_row_are_counted_from_the_dataset_or_from_packed_lengths():
    assert Rows(PLAIN).examples_per_row == 1
    assert PackRows(PACKED).examples_per_row == 240 / sum(shard.rows for shard in PACKED.shards)
    rows = -(-sum(PLAIN.lengths(shard).sum() for shard in PLAIN.shards) // S)
    assert 1.5 < RowsPackedAtLoad(PLAIN, window=240).examples_per_row <= 240 / rows


@pytest.mark.parametrize(
    ("keys", "per_row", "wanted"),
    [
        ({"batch_size": 32, "accumulation": 8}, 2.0, (32, 4)),
        ({"batch_size": 32, "accumulation": 8}, 1.99896, (32, 4)),  # not 5 micro-batches for a few rows
        ({"batch_size": 32, "accumulation": 8}, 1.17, (31, 7)),
        ({"batch_size": 32, "accumulation": 3}, 2.0, (24, 2)),
        ({"batch_size": 32}, 2.0, (16, 1)),
        ({"batch_size": 1}, 2.5, (1, 1)),
        ({"batch_size": 32, "global_batch_size": 512}, 2.0, (32, 4)),
        ({"batch_size": 32, "accumulation": 8, "packed_accumulation": "rows"}, 2.0, (32, 8)),
    ],
)
def test_an_update_of_packed_rows_has_as_many_sequences_or_rows_as_asked(keys, per_row, wanted):
    copies, config = 2, Config.of(**keys)
    for rows in (PackRows(PACKED), RowsPackedAtLoad(PLAIN)):
        assert rows.micro_batches(config, copies, per_row) == wanted
    if "packed_accumulation" not in keys and wanted[0] > 1:
        made, asked = copies * wanted[0] * wanted[1] * per_row, config.update.examples(copies)
        assert abs(made - asked) <= copies * wanted[1] * per_row / 2, "half a row a micro-batch"


# --- bad input


def test_data_that_are_packed_already_are_not_packed_at_load():
    with pytest.raises(SettingsError, match=r"its rows are packed already \(layout flat\); pack_on_load"):
        RowsPackedAtLoad(PACKED)


def test_a_position_that_is_not_there_is_refused():
    with pytest.raises(DatasetError, match=r"holds \d+ packed rows, no position \(0, 240\)"):
        Loader(PackRows(PACKED), form=RowForm(slots=9), batch_size=1, position=(0, 240))
    loader = Loader(AT_LOAD, form=RowForm(slots=30), batch_size=1, position=(0, 50, 48))
    with pytest.raises(DatasetError, match=r"rows packed at load have no position \(0, 50, 48\)"):
        next(loader)
    loader.close()


class Listed(type(PLAIN)):
    """Generated data whose lengths file says something else of its fourth example."""

    length = 0

    def lengths(self, shard):
        found = np.array(super().lengths(shard))
        found[3] = self.length
        return found


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (S + 1, rf"record 3: {S + 1} tokens, expected 1 to {S}$"),
        (0, rf"record 3: 0 tokens, expected 1 to {S}$"),
        (1, r"record 3: \d+ tokens, but 1 in "),
    ],
)
def test_lengths_that_do_not_fit_are_refused(length, message):
    kind = type("Wrong", (Listed,), {"length": length, "__slots__": ()})
    data = kind(**{field.name: getattr(PLAIN, field.name) for field in dataclasses.fields(PLAIN)})
    loader = Loader(dataclasses.replace(AT_LOAD, data=data), form=RowForm(slots=40), batch_size=1)
    with pytest.raises(ShardError, match=message):
        next(loader)
    loader.close()


def test_data_without_lengths_are_packed_by_their_decoded_examples():
    class Bare(type(PLAIN)):
        has_lengths = False

        def lengths(self, shard):
            raise AssertionError("there are none")

    bare = Bare(**{field.name: getattr(PLAIN, field.name) for field in dataclasses.fields(PLAIN)})
    found = []
    for data in (PLAIN, bare):
        loader = Loader(
            dataclasses.replace(AT_LOAD, data=data), form=RowForm(slots=40), batch_size=4, open_files=3
        )
        found.append([bits(batch) for _ in range(40) for batch in next(loader).batches])
        loader.close()
    assert found[0] == found[1]


def test_a_row_with_more_masked_words_than_slots_is_refused():
    loader = Loader(PackRows(PACKED), form=RowForm(slots=2), batch_size=4)
    with pytest.raises(ShardError, match=r"a packed row holds \d+ masked words, at most 2 fit in a row"):
        next(loader)
    loader.close()
