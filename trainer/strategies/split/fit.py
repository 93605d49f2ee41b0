"""Checks that a device, its workers and its settings fit a model that is split."""

import torch

from bertdata.errors import SettingsError
from trainer.collectives.collective import Collective
from trainer.collectives.launchers import LAUNCHERS
from trainer.devices.device import Device


def check_split(strategy: str, device: Device, workers: Collective) -> None:
    """SettingsError where the strategy, sharded or pipelined, cannot train on the device with the workers."""
    update = device.config.update
    if device.own_step or device.compiles_always or device.strategy != "replicated":
        raise SettingsError(f"strategy is {strategy}, but device {device.name!r} takes whole models only")
    if workers.name != "torch_distributed":
        raise SettingsError(
            f"strategy {strategy} needs torch.distributed: start the workers with "
            f"{LAUNCHERS['torch_distributed']}; found {workers.name}"
        )
    if device.compiles:
        raise SettingsError(f"strategy {strategy} compiles no model: leave out --compile")
    if update.micro_batch_clip_norm(1) is not None:
        raise SettingsError(
            f"strategy {strategy} clips whole updates: clipping is {update.clipping_point}; "
            "give --clipping per_update or none"
        )
    if not update.allreduce_post_accumulation:
        raise SettingsError(
            f"strategy {strategy} averages gradients in its own way: leave out allreduce_post_accumulation"
        )
    if strategy == "sharded":
        check_sharding()


def check_sharding() -> None:
    """SettingsError where this PyTorch cannot divide weights among processes."""
    if not torch.distributed.is_available() or not _has_fully_shard():
        raise SettingsError(f"strategy sharded needs torch 2.6 or later, found {torch.__version__}")


def _has_fully_shard() -> bool:
    from torch.distributed import fsdp

    return hasattr(fsdp, "fully_shard")
