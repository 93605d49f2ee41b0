"""Intel's Gaudi cards (hpu), through habana_frameworks, the bridge between PyTorch and Intel's software.

Tests replace the bridge by a stand-in, and compare the calls and their order with golden/devices/hpu_*.txt.
"""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity

from bertdata.errors import SettingsError
from trainer.config.schedules.form import Preset
from trainer.config.sections.devices import HpuSection
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.devices.availability import Availability
from trainer.devices.device import Compilable, Meet
from trainer.devices.peaks import find_peak
from trainer.devices.stepping_device import SteppingDevice

VARIABLE = "PT_HPU_LAZY_MODE"
MODES = {"graph": "0", "eager": "0", "lazy": "1"}
"""Value of the bridge's environment variable for each execution mode. The bridge reads the variable only
once, when it is imported.
"""

_INSTALL = "install the PyTorch packages of Intel Gaudi's software, or start in its container"
_CARDS = "hl-smi lists the cards, HABANA_VISIBLE_MODULES those that may be used"
_FUSED = {"optimizers": ("FusedLamb", "FusedAdamW"), "normalization": ("FusedClipNorm",)}


class Hpu(SteppingDevice):
    """A Gaudi card. The bridge chooses it by the worker's local rank.

    mode: how operations are executed. "graph" compiles the model with hpu_backend. "eager" runs one operation
    after the other. "lazy" records operations and runs them when mark_step is called. Shared weights need no
    special care when the model moves to the card, because the word embeddings are passed to the masked-word
    head at each call.
    """

    name = "hpu"
    process_group = "hccl"  # Horovod is not possible: on Gaudi it supports only TensorFlow
    bucket_mb = 230
    compiles_whole = True

    def __init__(self, config: Config, local_rank: int = 0) -> None:
        self.mode = find_execution_mode(config.hpu)
        if config.update.precision == "fp16":
            raise _make_unsupported_error("precision is fp16, expected bf16 or fp32: --precision bf16")
        if self.mode == "lazy" and config.run.compile:
            raise _make_unsupported_error(
                "mode lazy and compile contradict each other: --mode graph compiles"
            )
        _import_bridge(self.mode)
        self._core = import_module("habana_frameworks.torch.core")
        self._hpu = import_module("habana_frameworks.torch.hpu")
        found = self._hpu.device_count() if self._hpu.is_available() else 0
        if local_rank >= found:
            raise SettingsError(
                f"device 'hpu' is not there: worker {local_rank} has no card, habana_frameworks finds "
                f"{found}; {_CARDS}"
            )
        super().__init__(config)
        self.compiles = self.must_compile and self.mode != "lazy"
        self._clippers: dict[float, Any] = {}

    @property
    def must_compile(self) -> bool:
        return self.mode == "graph" or super().must_compile

    def join(self, meet: Meet) -> None:
        import_module("habana_frameworks.torch.distributed.hccl").initialize_distributed_hpu()
        super().join(meet)

    def seed(self, seed: int) -> None:
        self._hpu.random.manual_seed(seed)
        super().seed(seed)

    def autocast(self, precision: str) -> AbstractContextManager[object]:
        return torch.autocast("hpu", torch.bfloat16) if precision == "bf16" else nullcontext()

    def compile(self, learner: Compilable) -> None:
        if self.compiles:
            learner.compile(backend="hpu_backend")

    def move(self, batch: Batch) -> Batch:
        """Move the batch to the card. Integers become int32.

        Position ids are computed on the host and moved too, so that the card does not have to compute them.
        """
        if "position_ids" not in batch.tensors():  # packed rows have their position ids already
            batch = batch.changed(position_ids=torch.arange(batch.most_tokens(), dtype=torch.int32))
        return batch.map(lambda tensor: tensor.to(self.torch_device, non_blocking=True))

    def optimiser(
        self, ours: torch.optim.Optimizer, preset: Preset, groups: list[dict[str, Any]]
    ) -> torch.optim.Optimizer:
        """Return Habana's fused optimiser if it computes the same as the preset, otherwise ``ours``.

        FusedLamb clips gradients itself, once per update. It crashes for a group without parameters, so such
        groups are left out.
        ours: the optimiser of this trainer, made of plain operations.
        groups: parameter groups with the keys params, weight_decay and trust.
        """
        config = self.config
        settings = {"lr": preset.lr, "betas": preset.betas, "eps": preset.eps}
        settings["bias_correction"] = preset.debias or preset.kind == "adamw"
        # Both fused optimisers keep the number of updates under "step". A resumed run sets this number.
        counted = [
            {"params": group["params"], "weight_decay": group["weight_decay"], "step": 0}
            for group in groups
            if group["params"]
        ]
        name = find_fused_optimiser(preset, groups, use_lamb=config.hpu.use_fused_lamb is not False)
        fused = _find_bridge_class("optimizers", name) if name else None
        if fused is None:
            return ours
        if name == "FusedLamb":
            self.clips_in_step = config.update.clipping_point == "per_update"
            settings["max_grad_norm"] = config.update.max_grad_norm if self.clips_in_step else None
        made: torch.optim.Optimizer = fused(counted, **settings)
        return made

    def clip_(self, gradients: Sequence[Tensor], max_norm: float | Tensor) -> Tensor:
        fused = _find_bridge_class("normalization", "FusedClipNorm")
        if fused is None or not gradients or isinstance(max_norm, Tensor):
            return super().clip_(gradients, max_norm)
        # FusedClipNorm takes parameters and clips their ``grad``, so wrap the gradients in parameters.
        holders = [torch.nn.Parameter(gradient, requires_grad=False) for gradient in gradients]
        for holder, gradient in zip(holders, gradients, strict=True):
            holder.grad = gradient
        # a clipper stores its max_norm on the card, so keep one clipper for each max_norm
        if max_norm not in self._clippers:
            self._clippers[max_norm] = fused(holders, max_norm)
        norm: Tensor = self._clippers[max_norm].clip_norm(holders)
        return norm.reshape(())

    def after_backward(self) -> None:
        if self.mode == "lazy":
            self._core.mark_step()

    def find_peak(self, description: str) -> float | None:
        return find_peak(description)

    def profile_activities(self) -> list[ProfilerActivity]:
        return [ProfilerActivity.CPU, ProfilerActivity.HPU]

    def describe(self) -> str:
        compiled = ", compiled by hpu_backend" if self.compiles else ""
        return f"hpu: {self._hpu.get_device_name()}, {_describe_versions()}, mode {self.mode}{compiled}"


def examine_for_run(config: Config) -> Availability:
    """Return whether a run with this configuration could use Gaudi cards.

    To find out, this imports the bridge in the execution mode of the run.
    """
    return examine(find_execution_mode(config.hpu))


def examine(mode: str | None = None) -> Availability:
    """Return whether this machine has Gaudi cards, with the versions of the bridge and its fused optimisers.

    The cards are not opened.
    mode: execution mode in which the bridge is imported, or None for the default mode.
    """
    if find_spec("habana_frameworks") is None:
        return Availability("hpu", False, "habana_frameworks is not installed", _INSTALL)
    mode = mode or ("lazy" if os.environ.get(VARIABLE) == MODES["lazy"] else "graph")
    try:
        _import_bridge(mode)
    except SettingsError as error:
        return Availability("hpu", False, str(error))
    hpu = import_module("habana_frameworks.torch.hpu")
    if not (count := hpu.device_count() if hpu.is_available() else 0):
        return Availability("hpu", False, f"{_describe_versions()} finds no card", _CARDS)
    fused = [name for module, names in _FUSED.items() for name in names if _find_bridge_class(module, name)]
    kernels = ", ".join(fused) or "nothing fused"
    return Availability(
        "hpu", True, f"{count} x Gaudi; {_describe_versions()}; mode {mode}; {kernels}", count=count
    )


def find_execution_mode(keys: HpuSection) -> str:
    """Return the execution mode from the key ``mode``, or from the key ``use_lazy_mode`` of Habana's older
    programs.

    Raises SettingsError if the two keys contradict each other.
    """
    lazy = keys.use_lazy_mode
    mode = keys.mode or ("lazy" if lazy else "graph")
    if lazy is not None and lazy != (mode == "lazy"):
        raise _make_unsupported_error(
            f"mode {mode} and use_lazy_mode {str(lazy).lower()} contradict each other; mode alone is enough"
        )
    return mode


def find_fused_optimiser(preset: Preset, groups: list[dict[str, Any]], use_lamb: bool = True) -> str | None:
    """Return the name of the bridge's fused optimiser that computes the same as the preset, or None.

    FusedLamb uses trust ratios (LAMB's factor per weight tensor) exactly for the weights that decay. For a
    weight whose norm is 0 it uses the ratio 0, so that the weight never changes. Biases start at 0, so
    FusedLamb is possible only if the preset gives them no trust ratio. FusedAdamW adds epsilon before the
    bias correction, and PyTorch's AdamW adds it afterwards. With epsilon 1e-8 the losses are the same.
    """
    if preset.epsilon_in == "square":
        return None
    if preset.kind == "lamb" and preset.trust in ("decayed", "named") and use_lamb:
        follows = all(group["trust"] == (group["weight_decay"] != 0) for group in groups)
        return "FusedLamb" if follows else None
    without_ratios = preset.kind in ("lamb", "adamw") and not any(group["trust"] for group in groups)
    return "FusedAdamW" if without_ratios else None


def _make_unsupported_error(message: str) -> SettingsError:
    """Return the SettingsError for a setting that Gaudi does not support."""
    return SettingsError(f"device 'hpu': {message}")


def _import_bridge(mode: str) -> None:
    """Import the bridge in this execution mode.

    Raises SettingsError if the import fails, or if the bridge was already imported in another mode.
    """
    wanted = MODES[mode]
    found = os.environ.get(VARIABLE)
    remedy = f"start with {VARIABLE}={wanted}, or choose another --mode"
    if found not in (None, wanted):
        raise _make_unsupported_error(f"{VARIABLE} is {found}, mode {mode} needs {wanted}; {remedy}")
    os.environ[VARIABLE] = wanted
    try:
        import_module("habana_frameworks.torch")
        is_lazy = import_module("habana_frameworks.torch.utils.internal").is_lazy()
    except (ImportError, OSError, AssertionError, RuntimeError) as error:
        # The import fails if a library is missing, or if the bridge was built for another version of torch.
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise SettingsError(
            f"device 'hpu' is not there: habana_frameworks cannot be imported ({why}); {_INSTALL}"
        ) from None
    # With torch's device autoload, torch has already imported the bridge, perhaps in the other mode.
    if is_lazy != (mode == "lazy"):
        imported = f"habana_frameworks was already imported with {VARIABLE}={int(is_lazy)}"
        raise _make_unsupported_error(f"{imported}, mode {mode} needs {wanted}; {remedy}")


def _find_bridge_class(module: str, name: str) -> Any:
    """Return the class of this name from the bridge, or None if the installed version has no such class."""
    try:
        return getattr(import_module(f"habana_frameworks.torch.hpex.{module}"), name, None)
    except ImportError:
        return None


def _describe_versions() -> str:
    """Return the versions of the bridge and of torch as text, for example for the line that describes the
    device.
    """
    version = getattr(import_module("habana_frameworks.torch"), "__version__", "of unknown version")
    return f"habana_frameworks {version}, torch {torch.__version__}"
