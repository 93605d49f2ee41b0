"""Norms on a processor are right to 1e-6, whatever the size of a tensor."""

import pytest
import torch

from trainer.devices.clipping import clip_, compute_norms


@pytest.mark.parametrize("shape", [(3072, 768), (4097,), (30522, 96)])
def test_the_norm_of_a_large_tensor_is_that_of_float64(shape):
    value = torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 0.02
    wanted = value.double().norm().item()
    assert compute_norms([value, torch.ones(3)])[0].item() == pytest.approx(wanted, rel=1e-6)
    assert clip_([value.clone()], 1.0).item() == pytest.approx(wanted, rel=1e-6)


def test_a_norm_that_is_not_finite_stays_so():
    value = torch.zeros(5000)
    value[4999] = torch.inf
    assert compute_norms([value])[0].isinf()
