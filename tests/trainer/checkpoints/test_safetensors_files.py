"""Files of safetensors in parts, against the library that reads and writes them whole."""

import json
import os

import pytest
import torch
from safetensors.torch import load_file
from safetensors.torch import save_file as save_by_library

from bertdata.errors import DataError
from trainer.checkpoints.any_checkpoint import StoredTensor
from trainer.checkpoints.checkpoint import write_safetensors
from trainer.checkpoints.safetensors_files import (
    create_empty,
    format_index,
    lay_out_tensors,
    read_indexed,
    read_places,
    read_rows,
    write_rows,
)

TENSORS = {
    "matrix": torch.arange(35.0).view(7, 5),
    "vector": torch.tensor([1.5, -0.0, 3.25]),
    "number": torch.tensor(7.0),
    "cube": torch.arange(24.0).view(4, 3, 2) / 7,
}
SHAPES = {name: tuple(tensor.shape) for name, tensor in TENSORS.items()}


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.numpy().tobytes() == other.numpy().tobytes()


def test_the_library_reads_a_file_whose_rows_were_written_in_any_order(tmp_path):
    path = tmp_path / "one.safetensors"
    create_empty(str(path), SHAPES)
    _, places = lay_out_tensors(SHAPES)
    descriptor = os.open(path, os.O_WRONLY)
    for name, start, stop in (("cube", 3, 4), ("matrix", 4, 7), ("matrix", 0, 4), ("cube", 0, 3)):
        write_rows(descriptor, places[name], start, TENSORS[name][start:stop])
    for name in ("vector", "number"):
        write_rows(descriptor, places[name], 0, TENSORS[name])
    write_rows(descriptor, places["matrix"], 7, TENSORS["matrix"][7:])  # no rows at all
    os.close(descriptor)
    found = load_file(path)
    assert found.keys() == TENSORS.keys()
    assert all(same(found[name], tensor) for name, tensor in TENSORS.items())


def test_rows_of_the_librarys_files_are_read_in_place(tmp_path):
    path = tmp_path / "one.safetensors"
    save_by_library(TENSORS, path)
    places = read_places(str(path))
    assert {name: place.shape for name, place in places.items()} == SHAPES
    descriptor = os.open(path, os.O_RDONLY)
    for name, start, stop in (("matrix", 2, 5), ("cube", 1, 4), ("vector", 0, 3), ("matrix", 3, 3)):
        rows = torch.full(TENSORS[name][start:stop].shape, -1.0)
        read_rows(descriptor, places[name], start, rows)
        assert same(rows, TENSORS[name][start:stop])
    os.close(descriptor)


def test_a_whole_file_is_written_one_tensor_after_the_other(tmp_path):
    stored = {name: StoredTensor.of(tensor) for name, tensor in TENSORS.items()}
    with (tmp_path / "one.safetensors").open("wb") as file:
        write_safetensors(file, {**stored, "matrix": TENSORS["matrix"].t()})
    found = load_file(tmp_path / "one.safetensors")
    assert same(found.pop("matrix"), TENSORS["matrix"].t().contiguous())
    assert all(same(tensor, TENSORS[name]) for name, tensor in found.items())


def test_an_index_joins_files(tmp_path):
    names = {"model-00001-of-00002.safetensors": ("matrix", "number"), "b.safetensors": ("vector", "cube")}
    for file, some in names.items():
        save_by_library({name: TENSORS[name] for name in some}, tmp_path / file)
    index = tmp_path / "model.safetensors.index.json"
    shapes = {file: {name: SHAPES[name] for name in some} for file, some in names.items()}
    index.write_text(format_index(shapes))
    assert json.loads(index.read_text())["metadata"] == {"total_size": 4 * (35 + 3 + 1 + 24)}
    found = read_indexed(str(index))
    assert all(same(found[name].read(), tensor) for name, tensor in TENSORS.items())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], "not a safetensors file"),
        (lambda data: data[:5], "not a safetensors file"),
        (lambda data: b"\xff" + data[1:], "not a safetensors file"),
    ],
)
def test_a_damaged_file_is_one_line(tmp_path, damage, message):
    path = tmp_path / "one.safetensors"
    save_by_library(TENSORS, path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=message):
        read_places(str(path))


def test_other_types_than_fp32_are_refused(tmp_path):
    save_by_library({"half": torch.ones(3, dtype=torch.float16)}, tmp_path / "one.safetensors")
    with pytest.raises(DataError, match="holds tensors of F16, expected F32"):
        read_places(str(tmp_path / "one.safetensors"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "no index of tensors"),
        ('{"weight_map": 3}', "no index of tensors"),
        ("{", "no index of tensors"),
        (b'{"weight_map": {"lost": "\xed\xa0\x80"}}', "no index of tensors"),
        (b'{"weight_map": {"lost": ' + b"[" * 100_000 + b"}}", "no index of tensors"),
        ('{"weight_map": {"lost": "../one.safetensors"}}', "no index of tensors"),
        ('{"weight_map": {"lost": "one.safetensors"}}', "names lost in one.safetensors, which lacks it"),
    ],
)
def test_an_index_that_is_none_or_does_not_fit_is_one_line(tmp_path, text, message):
    save_by_library(TENSORS, tmp_path / "one.safetensors")
    (tmp_path / "index.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match=message):
        read_indexed(str(tmp_path / "index.json"))
