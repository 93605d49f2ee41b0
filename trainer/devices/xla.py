"""TPUs, through torch_xla 2.9.

torch_xla records operations as a graph. Each sync runs the recorded graph, and compiles it first if it is
new. So that the same graph can be used again, shapes must be fixed, and values that change between updates
(learning rate, counts, seed) must be inputs of the graph.
"""

import importlib
import os
from functools import cache
from types import ModuleType
from typing import Any

import torch

from bertdata.errors import BertDataError, MissingExtraError, SettingsError
from trainer.config.schedules.form import Preset
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.devices.availability import Availability
from trainer.devices.device import Compilable, Meet
from trainer.devices.stepping_device import SteppingDevice
from trainer.model.headed import HeadedBert

PROFILE_PORT = 9012
"""Port on which torch_xla's profiler waits for connections if ``--profile`` is set."""

_LEAST_RATE = 2.0**-126
_ON_PROCESSOR = "PJRT_DEVICE=CPU runs it on the processor"


class Xla(SteppingDevice):
    """A core of a TPU. With PJRT_DEVICE=CPU, torch_xla uses the CPU instead."""

    name = "xla"
    process_group = "xla"
    idle = ("compile",)
    compiles_always = True
    # The first update creates the optimiser's moments, so the second update needs other graphs.
    updates_to_compile = 2
    _server: object = None
    """torch_xla's profiler server. It is kept here because the server ends when nothing refers to it any
    more.
    """

    def __init__(self, config: Config, local_rank: int = 0) -> None:
        self._xla, self._runtime = import_torch_xla()
        super().__init__(config)
        if config.update.precision == "fp16":
            raise SettingsError("precision fp16: device 'xla' has bf16 and fp32")
        self._hardware = str(self._runtime.device_type())
        if folder := config.xla.executable_cache_dir:
            _keep_programs(folder)
        # With several workers, ``join`` must be called before the hardware is first used.
        if not os.environ.get("WORLD_SIZE"):
            self._check(self._xla.device)

    def join(self, meet: Meet) -> None:
        # importing it registers the backend "xla"
        importlib.import_module("torch_xla.distributed.xla_backend")
        self._check(lambda: torch.distributed.init_process_group(self.process_group, init_method="xla://"))
        joined = torch.distributed.get_world_size()
        started = int(os.environ["WORLD_SIZE"])
        if joined != started:
            raise SettingsError(
                f"device 'xla': {started} workers share {joined} devices of {self._hardware}, "
                "expected one for each; PJRT_DEVICE=CPU has but one"
            )

    def _check(self, opens: Any) -> None:
        """Open the hardware by calling ``opens``. Raise SettingsError if that fails."""
        try:
            opens()
        except (RuntimeError, OSError) as error:
            found = str(error).splitlines()[0]
            raise SettingsError(
                f"device 'xla' is not there: {self._hardware}: {found}; {_ON_PROCESSOR}"
            ) from error

    def seed(self, seed: int) -> None:
        super().seed(seed)
        self._xla.manual_seed(seed)

    def place(self, model: HeadedBert) -> HeadedBert:
        if self.config.run.profile:
            from torch_xla.debug import profiler

            self._server = profiler.start_server(PROFILE_PORT)
        return super().place(model)

    def compile(self, learner: Compilable) -> None:
        """Do nothing. torch_xla compiles everything when it first runs."""

    def move(self, batch: Batch) -> Batch:
        return batch.map(lambda tensor: tensor.to(self.torch_device))

    def optimiser(
        self, ours: torch.optim.Optimizer, preset: Preset, groups: list[dict[str, Any]]
    ) -> torch.optim.Optimizer:
        ours.register_step_pre_hook(_keep_rate_variable)
        return ours

    def after_backward(self) -> None:
        # Run what was recorded now, so that each micro-batch is a graph, instead of one graph for the whole
        # update.
        self._xla.sync()

    def release(self) -> None:
        """Free the profiler's port, so that the next phase can use it."""
        self._server = None

    def describe(self) -> str:
        return f"xla: {self._hardware}, torch_xla {self._xla.__version__}"


def examine_for_run(config: Config) -> Availability:
    """Return whether this machine has a TPU that torch_xla would use.

    ``--device auto`` never chooses torch_xla if it would run on the CPU.
    """
    if config.run.device != "xla" and os.environ.get("PJRT_DEVICE", "").upper() == "CPU":
        return Availability("xla", False, "PJRT_DEVICE is CPU", "--device xla runs there")
    return examine()


def examine() -> Availability:
    """Return which hardware torch_xla would use, without opening it."""
    try:
        torch_xla, runtime = import_torch_xla()
    except BertDataError as error:
        message = str(error).removeprefix("device 'xla'").removeprefix(" is not there").removeprefix(": ")
        found, _, remedy = message.partition("; ")
        return Availability("xla", False, found, remedy)
    kind = runtime.device_type()
    return Availability(
        "xla", True, f"{kind} by torch_xla {torch_xla.__version__}, torch {torch.__version__}; bf16"
    )


def import_torch_xla() -> tuple[ModuleType, ModuleType]:
    """Import torch_xla and its runtime module.

    Raises MissingExtraError if torch_xla is not installed, and SettingsError if it would use the CPU although
    the user has not asked for that.
    """
    chosen = "PJRT_DEVICE" in os.environ
    try:
        import torch_xla
        from torch_xla import runtime
    except ImportError as error:
        raise MissingExtraError(
            f"device 'xla': torch_xla is not installed ({error}); it needs an environment of its own, "
            "see docs/devices.md"
        ) from None
    if not chosen and runtime.device_type() == "CPU":
        del os.environ["PJRT_DEVICE"]  # the import of torch_xla has set this variable
        raise SettingsError(f"device 'xla' is not there: torch_xla finds no TPU; {_ON_PROCESSOR}")
    return torch_xla, runtime


@cache
def _keep_programs(folder: str) -> None:
    """Let torch_xla store compiled programs in the folder, where later runs find them.

    The function is cached, because torch_xla accepts the folder only once per process.
    """
    importlib.import_module("torch_xla.runtime").initialize_cache(folder, readonly=False)


def _keep_rate_variable(optimiser: torch.optim.Optimizer, *_: Any) -> None:
    """Replace a learning rate of 0 by 2^-126, so that torch_xla does not compile another graph.

    torch_xla makes the value 0 a constant of the graph, and any other value an input.
    """
    for group in optimiser.param_groups:
        group["lr"] = group["lr"] or _LEAST_RATE
