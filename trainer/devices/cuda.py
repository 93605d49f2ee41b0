"""NVIDIA's GPUs, through torch.cuda."""

from typing import TYPE_CHECKING

import torch

from bertdata.errors import SettingsError
from trainer.devices.cpu import Cpu

if TYPE_CHECKING:
    from trainer.batches import Batch


class Cuda(Cpu):
    """One GPU; the worker's local rank says which."""

    name = "cuda"
    process_group = "nccl"
    bucket_mb = 100

    def __init__(self, local_rank: int = 0) -> None:
        if not torch.cuda.is_available():
            why = "this torch is built without CUDA" if torch.version.cuda is None else "torch finds no GPU"
            raise SettingsError(f"device 'cuda' is not there: {why} (torch {torch.__version__})")
        if local_rank >= (found := torch.cuda.device_count()):
            raise SettingsError(
                f"device 'cuda': worker {local_rank} of this machine has no GPU, {found} found; "
                "start one worker for each"
            )
        self.torch_device = torch.device("cuda", local_rank)
        torch.cuda.set_device(self.torch_device)
        torch.set_float32_matmul_precision("high")  # TF32 for what autocast leaves in fp32
        torch.backends.cudnn.allow_tf32 = True

    def move(self, batch: "Batch") -> "Batch":
        return batch.map(lambda tensor: tensor.pin_memory().to(self.torch_device, non_blocking=True))

    def describe(self) -> str:
        about = torch.cuda.get_device_properties(self.torch_device)
        return (
            f"{self.torch_device}: {about.name}, {about.total_memory / 2**30:.0f} GiB, "
            f"compute capability {about.major}.{about.minor}, CUDA {torch.version.cuda}, TF32"
        )
