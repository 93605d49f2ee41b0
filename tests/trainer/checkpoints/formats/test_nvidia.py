"""The count of updates in NVIDIA's checkpoints, whose optimisers keep it as a number or as a tensor."""

from pathlib import Path

import pytest
import torch

from bertdata.errors import DataError
from trainer.checkpoints.formats.nvidia import _read_update_count


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file as large as the tensors in it would be."""
    path = tmp_path / "ckpt.pt"
    path.write_bytes(bytes(1000))
    return str(path)


@pytest.mark.parametrize("count", [7, 7.0, torch.tensor(7), torch.tensor([7]), torch.tensor([[7.0]])])
def test_a_count_is_a_number_or_a_tensor_with_one(count: object, file: str) -> None:
    assert _read_update_count(count, file) == 7


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (torch.tensor([7, 8]), r"\[7, 8\]"),
        (torch.tensor([]), r"\[\]"),
        (-1, "-1"),
        (True, "True"),
        ("7", "'7'"),
        (float("nan"), "nan"),
    ],
)
def test_other_counts_are_one_line(count: object, told: str, file: str) -> None:
    with pytest.raises(
        DataError, match=rf"ckpt\.pt: the number of updates is {told}, expected a number from 0"
    ):
        _read_update_count(count, file)
