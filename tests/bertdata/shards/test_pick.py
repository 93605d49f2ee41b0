"""Evenly spaced records of a file: those that MLPerf's program picks."""

import io

import pytest

from bertdata.shards.example_proto import encode_example
from bertdata.shards.framing import frame_payload, read_payloads
from bertdata.shards.pick import choose_record_numbers, pick_records

ENGINES = ["native", "python"]


@pytest.mark.parametrize(
    ("total", "count", "numbers"),
    [
        (10, 1, [0]),
        (10, 3, [0, 3, 6]),
        (10, 4, [0, 2, 5, 7]),
        (3, 3, [0, 1, 2]),
        (3, 7, [0, 0, 0, 1, 1, 2, 2]),
        (1, 3, [0, 0, 0]),
    ],
)
def test_record_i_of_n_is_number_i_times_the_records_over_n_rounded_down(total, count, numbers):
    assert choose_record_numbers(total, count) == numbers


def test_the_spacing_is_rounded_before_it_is_multiplied():
    """MLPerf's pick_eval_samples.py takes int(i * pick_ratio). Of 26 records, 23 x 26 / 46 is 13 exactly, but
    23 times the float 26 / 46 is a little less.
    """
    assert choose_record_numbers(26, 46)[22:25] == [12, 12, 13]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_chosen_records_are_written_in_order(engine):
    payloads = [encode_example({"input_ids": [number] * (number + 1)}) for number in range(10)]
    written: list[bytes] = []
    file = io.BytesIO(b"".join(map(frame_payload, payloads)))
    assert pick_records(file, "made", 4, written.append, engine) == (4, 10)
    found = list(read_payloads(io.BytesIO(b"".join(written)), "picked"))
    assert found == [payloads[number] for number in (0, 2, 5, 7)]


@pytest.mark.parametrize("engine", ENGINES)
def test_of_no_records_none_is_picked(engine):
    written: list[bytes] = []
    assert pick_records(io.BytesIO(), "made", 4, written.append, engine) == (0, 0)
    assert written == []
