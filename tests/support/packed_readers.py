"""Readers of packed shards that work like those of the original trainers, as plain loops over rows.

Each reader returns every row as a list of sequences: (ids, segments, masked id by position, label). Positions
are counted from the sequence's [CLS].
"""

import io
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet as pq

from bertdata.examples.bert.batch import BertExample
from bertdata.shards.example_proto import decode_example
from bertdata.shards.framing import read_payloads

Sequence = tuple[list[int], list[int], dict[int, int], int]


def seen(example: BertExample) -> Sequence:
    """Return an example in the form that the readers return."""
    segments = [0] * example.first_length + [1] * (len(example.ids) - example.first_length)
    return (
        example.ids,
        segments,
        dict(zip(example.positions, example.labels, strict=True)),
        example.next_label,
    )


def habana_hdf5(data: bytes, index: bytes) -> list[list[Sequence]]:
    with h5py.File(io.BytesIO(data)) as opened:
        fields = {name: opened[name][:].astype(np.int64) for name in opened}
        return [_habana_row({name: array[row].tolist() for name, array in fields.items()})
                for row in range(len(fields["input_ids"]))]  # fmt: skip


def habana_tfrecord(data: bytes, index: bytes) -> list[list[Sequence]]:
    rows = [dict(decode_example(payload)) for payload in read_payloads(io.BytesIO(data), "shard")]
    for row in rows:
        weights = [float(number) for number in row["masked_lm_weights"]]
        assert weights == [
            float(_number_at(row, place)) if place else 0.0 for place in row["masked_lm_positions"]
        ]
    return [_habana_row(row) for row in rows]


def _number_at(row: dict[str, Any], place: int) -> int:
    return int(row["input_mask"][place])


def _habana_row(row: dict[str, Any]) -> list[Sequence]:
    """Return the sequences of a row.

    Tokens attend to each other if they have the same number in the mask. The list of masked positions ends at
    the first 0.
    """
    positions = list(row["masked_lm_positions"])
    labels = {}
    for place, label in zip(positions[: positions.index(0)], row["masked_lm_ids"], strict=False):
        labels[place] = label
    sequences = []
    for number, weight in enumerate(row["next_sentence_weights"], 1):
        label = row["next_sentence_labels"][number - 1] if weight == 1 else -1
        places = [place for place, found in enumerate(row["input_mask"]) if found == number]
        if label == -1:
            assert not places
            continue
        assert row["next_sentence_positions"][number - 1] == places[0]
        sequences.append(_cut(row["input_ids"], row["segment_ids"], row["positions"], labels, places, label))
    return sequences


def _cut(
    ids: list[int],
    segments: list[int],
    positions: list[int],
    labels: dict[int, int],
    places: list[int],
    label: int,
) -> Sequence:
    """Return the sequence that consists of these places of the row, sorted by position."""
    places = sorted(places, key=lambda place: positions[place])
    assert [positions[place] for place in places] == list(range(len(places)))
    masks = {positions[place]: labels[place] for place in places if place in labels}
    return [ids[place] for place in places], [segments[place] for place in places], masks, label


def graphcore_tfrecord(data: bytes, index: bytes) -> list[list[Sequence]]:
    """Read rows by means of the index file. [CLS] of sequence k is slot -k."""
    table = []
    for line in index.decode().splitlines():
        start, size = map(int, line.split())
        features: dict[str, Any] = dict(decode_example(data[start + 12 : start + size - 4]))
        row = {name.removeprefix("packed_"): list(values) for name, values in features.items()}
        labels = {
            place: label
            for place, label, number in zip(
                row["masked_lm_positions"], row["masked_lm_ids"], row["masked_lm_mask"], strict=True
            )
            if number
        }
        sequences = []
        for number in range(1, len(row["next_sentence_mask"]) + 1):
            places = [place for place, found in enumerate(row["input_mask"]) if found == number]
            if row["next_sentence_mask"][-number] == 0:
                assert not places
                continue
            assert places[-1] == len(row["input_ids"]) - number
            label = row["next_sentence_labels"][-number]
            sequences.append(
                _cut(row["input_ids"], row["segment_ids"], row["position_ids"], labels, places, label)
            )
        table.append(sequences)
    return table


def nvidia_hdf5(data: bytes, index: bytes) -> list[list[Sequence]]:
    """Read rows that have a label for every position, -100 where nothing is masked.

    ``packed_input_len`` divides a row.
    """
    with h5py.File(io.BytesIO(data)) as opened:
        fields = {name: opened[name][:] for name in opened}
    table = []
    for row in range(len(fields["input_ids"])):
        one = {name: array[row].tolist() for name, array in fields.items()}
        labels = [-100] * len(one["input_ids"])
        for place, label in zip(one["masked_lm_positions"], one["masked_lm_ids"], strict=True):
            labels[place] = label
        assert sum(one["packed_masked_lm_len"]) == len(one["masked_lm_ids"])
        sequences, start = [], 0
        for length, label in zip(one["packed_input_len"], one["next_sentence_labels"], strict=True):
            inside = slice(start, start + length)
            masks = {place: found for place, found in enumerate(labels[inside]) if found != -100}
            sequences.append((one["input_ids"][inside], one["segment_ids"][inside], masks, label))
            start += length
        assert start == len(one["input_ids"])
        table.append(sequences)
    return table


def flat_parquet(data: bytes, index: bytes) -> list[list[Sequence]]:
    """Read rows of the flat layout, following docs/formats.md."""
    return [list(_flat_row(row)) for row in pq.read_table(io.BytesIO(data)).to_pylist()]


def _flat_row(row: dict[str, Any]) -> Iterator[Sequence]:
    start = first_mask = 0
    for number, end in enumerate(row["sequence_ends"]):
        ids, last_mask = row["input_ids"][start:end], row["mask_ends"][number]
        first = row["first_segment_lengths"][number]
        positions = row["masked_lm_positions"][first_mask:last_mask]
        masks = dict(zip(positions, row["masked_lm_ids"][first_mask:last_mask], strict=True))
        yield ids, [0] * first + [1] * (len(ids) - first), masks, row["next_sentence_labels"][number]
        start, first_mask = end, last_mask


READERS = {
    ("flat", "parquet"): flat_parquet,
    ("habana", "hdf5"): habana_hdf5,
    ("habana", "tfrecord"): habana_tfrecord,
    ("graphcore", "tfrecord"): graphcore_tfrecord,
    ("nvidia", "hdf5"): nvidia_hdf5,
}
"""Readers by layout and container. Each takes the bytes of a shard and of its index file."""
