"""NVIDIA's GPUs, through torch.cuda."""

import torch

from bertdata.errors import SettingsError
from trainer.batches import Batch
from trainer.config import Config
from trainer.devices import Device, Finding


class Cuda(Device):
    """One GPU; the worker's local rank says which."""

    name = "cuda"
    process_group = "nccl"

    def __init__(self, config: Config, local_rank: int = 0) -> None:
        if local_rank >= (found := torch.cuda.device_count()):
            build = f"torch {torch.__version__} for CUDA {torch.version.cuda} finds {found}"
            raise SettingsError(f"device 'cuda' is not there: worker {local_rank} has no GPU, {build}")
        super().__init__(config)
        self.torch_device = torch.device("cuda", local_rank)
        torch.cuda.set_device(self.torch_device)
        torch.set_float32_matmul_precision("high")  # TF32 for what autocast leaves in fp32

    def move(self, batch: Batch) -> Batch:
        return batch.map(lambda tensor: tensor.pin_memory().to(self.torch_device, non_blocking=True))

    def describe(self) -> str:
        about = torch.cuda.get_device_properties(self.torch_device)
        memory, version = f"{about.total_memory / 2**30:.0f} GiB", torch.version.cuda
        return f"{self.torch_device}: {about.name}, {memory}, CUDA {version}, TF32"


def examine() -> Finding:
    """The GPUs of this machine, by name."""
    if torch.version.cuda is None:
        return Finding(
            "cuda", False, f"torch {torch.__version__} has no CUDA", "install a build of torch that has"
        )
    build = f"torch {torch.__version__} for CUDA {torch.version.cuda}"
    if not (count := torch.cuda.device_count()):
        return Finding("cuda", False, f"{build} finds no GPU", "see nvidia-smi and CUDA_VISIBLE_DEVICES")
    about = torch.cuda.get_device_properties(0)
    gpus = f"{count} x {about.name}, {about.total_memory / 2**30:.0f} GiB"
    return Finding("cuda", True, f"{gpus}; {build}; bf16, TF32, fused attention", count=count)
