"""NVIDIA's GPUs, through torch.cuda."""

import os
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

import torch
from torch.backends import cuda as backend
from torch.nn.attention import SDPBackend

from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatAttention
from trainer.devices.availability import Availability
from trainer.devices.cuda_attention import KERNELS
from trainer.devices.cuda_losses import cross_entropy
from trainer.devices.device import HALVES, Device, Result
from trainer.devices.peaks import find_peak
from trainer.model.headed import HeadedBert
from trainer.model.padded_attention import padded_attention

_DETERMINISTIC = (":4096:8", ":16:8")
"""Values of CUBLAS_WORKSPACE_CONFIG with which cuBLAS (NVIDIA's matrix library) gives the same bits in every
run. The first is faster.
"""

_KERNELS = {
    "flash": (backend.enable_flash_sdp, "flash attention"),
    "efficient": (backend.enable_mem_efficient_sdp, "memory efficient"),
    "cudnn": (backend.enable_cudnn_sdp, "cudnn attention"),
    "math": (backend.enable_math_sdp, ""),  # PyTorch can always use this kernel
}
"""For each attention kernel, PyTorch's function that switches it on or off, and the first words of PyTorch's
warning if the kernel cannot be used.
"""

_FP8_CAPABILITY = (8, 9)
"""First compute capability, NVIDIA's version of a GPU's functions, that multiplies in FP8."""

_PLAIN = "not compiled"

_NAMES = {
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "efficient",
    SDPBackend.CUDNN_ATTENTION: "cudnn",
    SDPBackend.MATH: "math",
}


class Cuda(Device):
    """An NVIDIA GPU. Its number on the machine is the worker's local rank."""

    name = "cuda"
    process_group = "nccl"
    fused_step = True
    # number of weights that the optimiser changes at a time: with 2**22, starting a kernel on the GPU would
    # take longer than running it
    step_chunk = 2**25
    row_losses = staticmethod(cross_entropy)

    def __init__(self, config: Config, local_rank: int = 0) -> None:
        if config.run.deterministic:
            _set_cublas_workspace()
        if local_rank >= (found := torch.cuda.device_count()):
            build = f"for CUDA {torch.version.cuda} finds {found}" if torch.version.cuda else "has no CUDA"
            raise SettingsError(
                f"device 'cuda' is not there: worker {local_rank} has no GPU, torch "
                f"{torch.__version__} {build}"
            )
        gpu = torch.device("cuda", local_rank)
        torch.cuda.set_device(gpu)
        super().__init__(config)
        self.torch_device = gpu
        # TF32 speeds up the matrix products that autocast leaves in fp32
        torch.set_float32_matmul_precision("high")
        self._graphs = bool(config.cuda.cuda_graphs)
        if self._graphs:
            # One CUDA graph is started by one call. CUDA graphs of the single layers would need many calls.
            self.compiles_whole, self.compile_mode = True, "reduce-overhead"
        # Compile unless the configuration or the machine gives a reason not to.
        self._why_plain = "" if self.must_compile else _find_reason_not_to_compile(config)
        self.compiles = not self._why_plain
        # With CUDA graphs, do not convert the weights to 16 bits once per update: the graph of each
        # micro-batch would copy the converted weights into its own memory.
        self.casts_once = not self._graphs
        self._attention = config.cuda.attention or "auto"
        _allow_kernel(self._attention)
        self._kernel = ""

    @property
    def must_compile(self) -> bool:
        return super().must_compile or bool(self.config.cuda.cuda_graphs)

    def find_reason_against_fp8(self) -> str:
        found = torch.cuda.get_device_capability()
        if found >= _FP8_CAPABILITY or self.config.update.fp8_emulation:
            return ""
        return (
            f"{torch.cuda.get_device_name()} has compute capability {_format_capability(found)}, FP8 needs "
            f"{_format_capability(_FP8_CAPABILITY)}: give --precision bf16, or --fp8-emulation to see what "
            "the same roundings do to a training"
        )

    def place(self, model: HeadedBert) -> HeadedBert:
        model = super().place(model)
        # Copy the gradients out of the CUDA graph's memory, because its next run overwrites them.
        if self._graphs:
            for weight in model.parameters():
                weight.register_hook(torch.clone)  # type: ignore[no-untyped-call]
        return model

    def attention_for(self, shape: ModelConfig) -> FlatAttention:
        """Return the configured attention kernel, or for "auto" the first that works for a model of this
        shape.

        Raises SettingsError if no kernel works.
        """
        self._kernel = self._find_kernel(shape)
        return KERNELS[self._kernel]

    def prepare(self, batch: Batch) -> Batch:
        # Select this worker's GPU in this thread too. Without setting the device, pinning memory would open
        # the machine's first GPU.
        torch.cuda.set_device(self.torch_device)
        return batch.map(lambda tensor: tensor.pin_memory())

    def move(self, batch: Batch) -> Batch:
        return batch.map(lambda tensor: tensor.to(self.torch_device, non_blocking=True))

    def forward(self, learner: Callable[[Batch], Result], batch: Batch) -> Result:
        if self._graphs:
            # Tell PyTorch that a new run of the CUDA graphs begins, so that they reuse the memory of their
            # previous run.
            torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        return super().forward(learner, batch)

    def _find_kernel(self, shape: ModelConfig) -> str:
        """Return the name of the attention kernel to use.

        Raises SettingsError if the configured kernel cannot be used. With "auto" and batches of padded rows,
        PyTorch chooses. With "auto" and flat batches (all sequences end to end), the first kernel of KERNELS
        that works is used. Kernels that need no padding come first in the list of kernels.
        """
        if self._attention != "auto" or self.config.loading.rows:
            return self._find_pytorch_kernel(shape, self._attention)
        for name in KERNELS:
            _allow_kernel(name)
            try:
                return self._find_pytorch_kernel(shape, name)
            except SettingsError as error:
                failure = error
        raise failure

    def _find_pytorch_kernel(self, shape: ModelConfig, kernel: str) -> str:
        """Return the kernel that PyTorch chooses when only ``kernel`` is allowed, or when all are for "auto".

        PyTorch is asked about padded sequences with a mask. For kernels that take flat batches (all sequences
        end to end) it is asked without a mask. Raises SettingsError if PyTorch can use none of the allowed
        kernels.
        """
        precision = self.config.update.precision
        half = HALVES.get(precision, torch.float32)
        length = self.config.data.max_seq_length or shape.max_position_embeddings
        head = shape.hidden_size // shape.num_attention_heads
        dropout = shape.attention_probs_dropout_prob
        case = f"attention {kernel} cannot be used with precision {precision}, heads of {head}"
        sizes = (2, shape.num_attention_heads, length, head)
        query = torch.zeros(sizes, dtype=half, device=self.torch_device, requires_grad=True)
        mask = torch.ones(2, 1, 1, length, dtype=torch.bool, device=query.device)
        padded = self.config.loading.rows or KERNELS[kernel] is padded_attention
        # PyTorch reports only in warnings why it cannot use a kernel.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                choice = torch._fused_sdp_choice(query, query, query, mask if padded else None, dropout)
            except RuntimeError:
                why = _find_refusal_reason(_KERNELS[kernel][1], [str(one.message) for one in caught])
                raise SettingsError(f"{case}, dropout {dropout:g}: {why}") from None
        return _NAMES[SDPBackend(choice)]

    def memory(self, neighbours: int) -> int:
        return int(torch.cuda.get_device_properties(self.torch_device).total_memory)

    def peak_memory(self) -> int:
        return torch.cuda.max_memory_allocated(self.torch_device)

    def find_peak(self, description: str) -> float | None:
        return find_peak(description)

    def describe(self) -> str:
        about = torch.cuda.get_device_properties(self.torch_device)
        parts = [f"{about.name}, {about.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}, TF32"]
        parts += [f"{self._kernel} attention"] if self._kernel else []
        parts += ["compiled" if self.compiles else self._why_plain or _PLAIN]
        parts += ["CUDA graphs"] if self._graphs else []
        parts += ["deterministic"] if self.config.run.deterministic else []
        return f"{self.torch_device}: {', '.join(parts)}"


def examine_for_run(config: Config | None = None) -> Availability:
    """Count the GPUs of this machine without opening them. Each worker opens only its own GPU later."""
    if torch.version.cuda is None:
        return Availability(
            "cuda", False, f"torch {torch.__version__} has no CUDA", "install a build of torch that has"
        )
    build = f"torch {torch.__version__} for CUDA {torch.version.cuda}"
    if not (count := torch.cuda.device_count()):
        return Availability("cuda", False, f"{build} finds no GPU", "see nvidia-smi and CUDA_VISIBLE_DEVICES")
    return Availability("cuda", True, f"{build}; bf16, TF32, fused attention", count=count)


def examine() -> Availability:
    """Return whether this machine has GPUs, with their names."""
    finding = examine_for_run()
    if not finding.there:
        return finding
    about = torch.cuda.get_device_properties(0)
    gpus = f"{finding.count} x {about.name}, {about.total_memory / 2**30:.0f} GiB"
    fp8 = ", FP8" if torch.cuda.get_device_capability(0) >= _FP8_CAPABILITY else ""
    return replace(finding, found=f"{gpus}; {finding.found}{fp8}")


def _format_capability(capability: tuple[int, int]) -> str:
    """Return a compute capability as NVIDIA writes it, for example 8.9 for (8, 9)."""
    return ".".join(map(str, capability))


def _allow_kernel(attention: str) -> None:
    """Let PyTorch use only this attention kernel, or every kernel for "auto"."""
    for name, (allow, _) in _KERNELS.items():
        allow(attention in ("auto", name))


def _find_refusal_reason(kernel: str, messages: list[str]) -> str:
    """Return PyTorch's reason for not using an attention kernel.

    PyTorch prints it in the warning that follows the one with the kernel's name.
    """
    lines = [line.partition(" (Triggered internally")[0] for line in messages]
    heads = [number for number, line in enumerate(lines) if "kernel not used because" in line]
    reasons = (number + 1 for number in heads if lines[number].lower().startswith(kernel))
    return next((lines[one] for one in reasons if one not in heads and lines[one:]), "no reason given")


def _find_reason_not_to_compile(config: Config) -> str:
    """Return why the model is not compiled, for the line about the device in the log. Return "" to compile
    it.
    """
    is_split = config.run.strategy not in ("auto", "replicated") or config.split.plan is not None
    if config.run.compile is not None or is_split:
        return _PLAIN
    if config.is_finetuning:
        return _PLAIN  # fine-tuning is short, and compiling would take longer than it saves
    if find_spec("triton") is None:
        return f"{_PLAIN}: Triton is not installed"
    if not any(map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))):
        return f"{_PLAIN}: there is no C compiler"
    return ""


def _set_cublas_workspace() -> None:
    """Set CUBLAS_WORKSPACE_CONFIG so that cuBLAS gives the same bits in every run. Must run before CUDA
    starts.

    Raises SettingsError if the variable has a value with which results may differ.
    """
    found = os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", _DETERMINISTIC[0])
    if found not in _DETERMINISTIC:
        raise SettingsError(
            f"deterministic: CUBLAS_WORKSPACE_CONFIG is {found!r}, expected "
            f"{' or '.join(_DETERMINISTIC)}, or nothing"
        )
