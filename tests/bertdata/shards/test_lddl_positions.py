"""Positions in LDDL's files: NumPy files within a column, read in threads."""

import io

import numpy as np
import pytest

from bertdata.shards import lddl


def numpy_file(*positions: int, kind: str = "<u2") -> bytes:
    made = io.BytesIO()
    np.save(made, np.array(positions, kind))
    return made.getvalue()


@pytest.mark.parametrize("positions", [(), (3,), tuple(range(1, 80))])
def test_lddls_own_form_is_read_without_numpys_parser_which_fails_in_threads(positions, monkeypatch):
    data = numpy_file(*positions)
    monkeypatch.setattr(np, "load", None)
    assert lddl._read_array(data).tolist() == list(positions)
    assert lddl.dump_numpy_file(list(positions)) == data


@pytest.mark.parametrize("kind", [">u2", "<i8", "u1"])
def test_other_types_are_read_by_numpy(kind):
    assert lddl._read_array(numpy_file(1, 5, 7, kind=kind)).tolist() == [1, 5, 7]


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", numpy_file(1, 2)[:-1], numpy_file(1, 2)[:-2]])
def test_a_cut_file_is_an_error(data):
    with pytest.raises((ValueError, EOFError, OSError)):
        lddl._read_array(data)
