"""The host's own processor."""

import platform

import torch

from trainer.devices import Device


class Cpu(Device):
    """What every device does, does it."""

    name = "cpu"
    process_group = "gloo"
    bucket_mb = 25

    def describe(self) -> str:
        compiled = ", compiled" if self.compiles else ""
        return f"cpu: {platform.machine()}, {torch.get_num_threads()} threads{compiled}"
