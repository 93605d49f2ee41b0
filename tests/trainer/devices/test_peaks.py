"""Peak rates of cards, found by their names."""

import pytest

from trainer.devices.peaks import find_peak


@pytest.mark.parametrize(
    ("description", "teraflops"),
    [
        ("cuda:0: NVIDIA H100 80GB HBM3, 79 GiB, CUDA 12.8, TF32, flash attention", 989),
        ("cuda:7: NVIDIA H200, 140 GiB, CUDA 12.8, TF32", 989),
        ("cuda:0: NVIDIA H100 PCIe, 79 GiB, CUDA 12.8, TF32", 756),
        ("cuda:0: NVIDIA H100 NVL, 93 GiB, CUDA 12.8, TF32", 835),
        ("cuda:0: NVIDIA A100-SXM4-80GB, 79 GiB, CUDA 12.8, TF32", 312),
        ("cuda:0: NVIDIA A10, 22 GiB, CUDA 12.8, TF32", 125),
        ("cuda:0: NVIDIA L4, 22 GiB, CUDA 12.8, TF32", 121),
        ("cuda:0: NVIDIA B200, 178 GiB, CUDA 13.0, TF32", 2250),
    ],
)
def test_a_known_card_is_found_by_its_name(description, teraflops):
    assert find_peak(description) == teraflops * 1e12


@pytest.mark.parametrize(
    "description",
    ["cpu: x86_64, 2 threads", "cuda:0: NVIDIA H1000, 79 GiB", "cuda:0: Tesla V100-SXM2-32GB, 32 GiB"],
)
def test_a_processor_and_an_unknown_card_have_no_peak(description):
    assert find_peak(description) is None
