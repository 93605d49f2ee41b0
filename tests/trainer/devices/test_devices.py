"""The devices of this machine."""

import dataclasses
from importlib import import_module
from types import ModuleType

import pytest
import torch

from bertdata.errors import SettingsError
from tests.support.device_protocol import OWN, assert_protocol
from trainer import plugins as registry
from trainer.config.settings import Config
from trainer.data.batches import FlatBatch
from trainer.devices.choice import examine_device
from trainer.devices.opening import find_device
from trainer.workers.launchers import find_local_rank


@pytest.mark.parametrize("name", OWN)
def test_every_device_offers_the_whole_protocol(name):
    assert_protocol(name)


def test_a_device_that_is_not_there_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(SettingsError, match="device 'cuda' is not there") as error:
        find_device(Config.of(device="cuda"), find_local_rank())
    assert error.value.exit_status == 2
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "error", [ImportError("no torch.nn.attention"), AttributeError("no enable_cudnn_sdp")]
)
def test_a_device_that_this_torch_is_too_old_for_is_refused_in_one_line(monkeypatch, error):
    def older(name: str) -> ModuleType:
        if name.startswith("trainer.devices"):
            raise error
        return import_module(name)

    monkeypatch.setattr(registry, "import_module", older)
    with pytest.raises(SettingsError, match=f"'cuda' needs a part that torch .* lacks .{error}.; install a"):
        find_device(Config.of(device="cuda"), find_local_rank())
    assert not examine_device("cuda").there


def test_a_worker_without_a_gpu_of_its_own_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.delenv("HOROVOD_LOCAL_RANK", raising=False)
    with pytest.raises(SettingsError, match="worker 2 has no GPU, torch .* finds 2"):
        find_device(Config.of(device="cuda"), find_local_rank())


def test_each_worker_takes_the_gpu_of_its_local_rank(monkeypatch):
    chosen = []
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.delenv("HOROVOD_LOCAL_RANK", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    before = torch.get_float32_matmul_precision()
    try:
        assert find_device(Config.of(device="cuda"), find_local_rank()).torch_device == torch.device(
            "cuda", 1
        )
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
    assert chosen == [torch.device("cuda", 1)]


@pytest.mark.parametrize(
    ("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_products_are_made_in_the_precision_asked_for(precision, dtype):
    device = find_device(Config.of())
    layer = device.place(torch.nn.Linear(4, 4))
    with device.autocast(precision):
        assert layer(torch.ones(2, 4)).dtype == dtype
    assert layer.weight.dtype == torch.float32


def test_the_same_seed_draws_the_same_numbers():
    device = find_device(Config.of())
    device.seed(7)
    first = torch.rand(3)
    device.seed(7)
    assert torch.equal(first, torch.rand(3))


def test_each_tensor_of_a_batch_is_moved_and_none_is_changed():
    ids, weights = torch.arange(3), torch.ones(2)
    every = {field.name: ids for field in dataclasses.fields(FlatBatch)}
    batch = FlatBatch(**every | {"masked_lm_weights": weights, "targets": {"label": ids}})
    assert find_device(Config.of()).move(batch) is batch
    doubled = batch.map(lambda tensor: tensor * 2)
    assert (doubled.input_ids.tolist(), doubled.masked_lm_weights.tolist()) == ([0, 2, 4], [2.0, 2.0])
    assert doubled.targets["label"].tolist() == [0, 2, 4]
    assert batch.input_ids.tolist() == [0, 1, 2]


def test_a_tensor_on_the_host_has_no_history():
    weight = torch.nn.Parameter(torch.ones(1))
    assert not find_device(Config.of()).to_host(weight * 2).requires_grad


def test_what_was_compiled_is_forgotten_when_a_phase_ends(monkeypatch):
    resets = []
    monkeypatch.setattr(torch.compiler, "reset", lambda: resets.append("reset"))
    find_device(Config.of()).release()
    assert resets == []
    find_device(Config.of(compile=True)).release()
    assert resets == ["reset"]
