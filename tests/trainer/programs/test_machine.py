"""GPUs are counted without torch."""

import pytest

from trainer.programs.machine import count_gpus


@pytest.mark.parametrize(("visible", "found"), [(None, 2), ("", 0), ("1", 1), ("0, 1", 2), ("0,1,2", 2)])
def test_gpus_are_those_of_the_driver_that_are_visible(tmp_path, monkeypatch, visible, found):
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert count_gpus(tmp_path) == found
