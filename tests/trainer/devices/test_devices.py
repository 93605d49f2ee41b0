"""The devices of this machine, and the loss scale's bounds."""

import dataclasses
import importlib

import pytest
import torch

from bertdata.errors import SettingsError
from trainer.collectives.launchers import find_local_rank
from trainer.config.settings import Config
from trainer.data.batches import RowBatch
from trainer.devices import examine, loss_scale
from trainer.devices.examine import DEVICES, examine_device
from trainer.devices.loss_scale import LossScale
from trainer.devices.registry import find_device
from trainer.errors import NotFiniteError

INFINITE = float("inf")
BOUNDS = {"initial": 2.0**16, "floor": 1.0, "ceiling": 2.0**24}
PROTOCOL = [
    "seed",
    "autocast",
    "place",
    "move",
    "scaler",
    "after_backward",
    "after_step",
    "to_host",
    "release",
    "describe",
]
FACTS = ["name", "process_group", "bucket_mb", "needs_rows"]


@pytest.mark.parametrize("name", DEVICES)
def test_every_device_offers_the_whole_protocol(name):
    module, kind_name = DEVICES[name]
    kind = getattr(importlib.import_module(f"trainer.devices.{module}"), kind_name)
    assert all(hasattr(kind, member) for member in PROTOCOL + FACTS)
    assert kind.name == name


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
    def older(name: str) -> None:
        raise error

    monkeypatch.setattr(examine, "import_module", older)
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
    batch = RowBatch(
        **{field.name: ids for field in dataclasses.fields(RowBatch)} | {"masked_lm_weights": weights}
    )
    assert find_device(Config.of()).move(batch) is batch
    doubled = batch.map(lambda tensor: tensor * 2)
    assert (doubled.input_ids.tolist(), doubled.masked_lm_weights.tolist()) == ([0, 2, 4], [2.0, 2.0])
    assert batch.input_ids.tolist() == [0, 1, 2]


def test_a_tensor_on_the_host_has_no_history():
    weight = torch.nn.Parameter(torch.ones(1))
    assert not find_device(Config.of()).to_host(weight * 2).requires_grad


def test_scaling_changes_no_gradient():
    scale = LossScale(initial=1024.0, ceiling=4096.0)
    weight = torch.nn.Parameter(torch.tensor([3.0]))
    scale.scale((weight * weight).sum()).backward()
    assert weight.grad.item() == 6 * 1024
    scale.unscale([weight.grad])
    assert weight.grad.item() == 6


def test_the_scale_grows_after_good_updates_up_to_its_ceiling(monkeypatch):
    monkeypatch.setattr(loss_scale, "_GROWTH_INTERVAL", 2)
    scale = LossScale(initial=2.0, floor=1.0, ceiling=8.0)
    seen = []
    for _ in range(8):
        assert scale.update(1.0)
        seen.append(scale.value)
    assert seen == [2, 4, 4, 8, 8, 8, 8, 8]


def test_a_bad_update_is_left_out_and_the_scale_ends_at_its_floor_with_an_error():
    scale = LossScale(initial=4.0, floor=1.0, ceiling=8.0)
    assert not scale.update(INFINITE)
    assert not scale.update(float("nan"))
    assert scale.value == 1
    with pytest.raises(NotFiniteError, match="norm is inf at loss scale 1, the least allowed"):
        scale.update(INFINITE)


def test_without_a_loss_scale_the_first_bad_update_is_an_error():
    for precision in ("fp32", "bf16"):
        with pytest.raises(NotFiniteError):
            find_device(Config.of()).scaler(precision, **BOUNDS).update(float("nan"))


def test_fp16_starts_with_a_large_scale_and_goes_on_where_a_checkpoint_left_it():
    scale = find_device(Config.of()).scaler("fp16", **BOUNDS)
    assert scale.value == 65536
    assert not scale.update(INFINITE)
    again = find_device(Config.of()).scaler("fp16", **BOUNDS)
    again.load_state_dict(scale.state_dict())
    assert again.state_dict() == {"value": 32768.0, "good": 0}
    again.load_state_dict({"value": 1e30, "good": 5})
    assert again.value == 2**24


def test_what_was_compiled_is_forgotten_when_a_phase_ends(monkeypatch):
    resets = []
    monkeypatch.setattr(torch.compiler, "reset", lambda: resets.append("reset"))
    find_device(Config.of()).release()
    assert resets == []
    find_device(Config.of(compile=True)).release()
    assert resets == ["reset"]
