"""Updates made on the IPUs: PopTorch is handed all of their micro-batches and an optimiser."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from trainer.batches import Batch
from trainer.checkpoint import State
from trainer.collectives import Collective
from trainer.config import Config
from trainer.devices.ipu.options import loss_scale, training_options
from trainer.devices.ipu.stages import TENSORS, average
from trainer.engine import Engine
from trainer.errors import CheckpointError
from trainer.model import BertForPreTraining

if TYPE_CHECKING:
    from trainer.devices.ipu import Ipu

_STEP = "Step"


class IpuEngine(Engine):
    """Compiled at the first update, when the weights to begin with are in the model."""

    def __init__(self, config: Config, device: "Ipu", workers: Collective, model: BertForPreTraining) -> None:
        super().__init__(config, device, workers, model)
        self._ipu = device
        self._names = {name for name, _ in model.named_parameters()}
        kinds = ("exp_avg", "exp_avg_sq") if "betas" in self.optimiser.defaults else ("momentum_buffer",)
        self._kinds = dict(zip(("Accl1", "Accl2"), kinds, strict=False))
        self._moments: dict[str, Tensor] = {}
        self._executor: Any = None

    def update(self, updates: Sequence[Sequence[Batch]], learning_rate: float, state: State) -> list[Tensor]:
        tensors = _joined(updates)
        if self._executor is None:
            self._compile(tensors, len(updates[0]), state)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        self.optimiser.loss_scaling = loss_scale(self._config, state.step)  # type: ignore[attr-defined]
        self._executor.setOptimizer(self.optimiser)
        _, values = self._executor(*tensors)
        self.applied += len(updates)
        if self._config.device_options.get("synthetic_data"):
            values = torch.zeros_like(values)  # nothing comes back
        return [average(rows) for rows in values.reshape(len(updates), -1)]

    def compile(self, updates: Sequence[Sequence[Batch]], state: State) -> None:
        self._compile(_joined(updates), len(updates[0]), state)

    def _compile(self, tensors: list[Tensor], micro_batches: int, state: State) -> None:
        device = self._ipu
        options = training_options(
            device.poptorch,
            device.fresh_options(),
            self._config,
            device.pipeline,
            accumulation=micro_batches // device.replicas,
            # What a start draws from its seed, the next must not draw again.
            seed=self._config.seed + state.number,
        )
        executor = device.poptorch.trainingModel(device.module, options, optimizer=self.optimiser)
        executor.compile(*tensors)
        self._executor = executor
        if self._moments:
            self._restore()

    def _restore(self) -> None:
        """Fill PopTorch's state by the checkpoint's; what it calls its tensors, it has said by now."""
        state, moments = self.optimiser.state_dict(), self._moments
        held = {self._split(key): value for key, value in state["ipu_state"].items()}
        places = {
            f"{self._kinds[kind]}/{name}": one for (kind, name), one in held.items() if kind in self._kinds
        }
        if foreign := sorted(moments.keys() ^ places.keys()):
            whose = f"checkpoint and PopTorch's {type(self.optimiser).__name__} differ in {foreign[0]}"
            raise CheckpointError(f"{whose}; go on with the checkpoint's optimiser, or --start-from-ckpt")
        for key, place in places.items():
            place.copy_(moments[key])
        for (kind, _), place in held.items():
            if kind == _STEP:
                place.fill_(self.applied)
        self.optimiser.load_state_dict(state)

    def _split(self, key: str) -> tuple[str, str]:
        """Kind and our name of a tensor: "Accl1___", names of wrappers, ours."""
        kind, _, name = key.partition("___")
        while name not in self._names and name:
            name = name.partition(".")[2]
        return kind, name

    def fetch(self) -> None:
        if self._executor is not None:
            self._executor.copyWeightsToHost()

    def moments(self) -> dict[str, Tensor]:
        if self._executor is None:
            return self._moments
        found = {self._split(key): value for key, value in self.optimiser.state_dict()["ipu_state"].items()}
        kinds = self._kinds
        return {f"{kinds[kind]}/{name}": value for (kind, name), value in found.items() if kind in kinds}

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        self._moments, self.applied = moments, applied

    @contextmanager
    def off_the_ipus(self) -> Iterator[None]:
        """Leave the IPUs to another program meanwhile; weights and moments are on the host then."""
        if self._executor is not None:
            self._executor.detachFromDevice()
        yield
        if self._executor is not None:
            self._executor.attachToDevice()

    def release(self) -> None:
        """Give up the IPUs and the program; there are no more updates."""
        if self._executor is not None:
            self._executor.destroy()


def _joined(updates: Sequence[Sequence[Batch]]) -> list[Tensor]:
    """The tensors of all micro-batches: by update, then by accumulation, then by replica."""
    batches = [batch for update in updates for batch in update]
    return [torch.cat([getattr(batch, name) for batch in batches]) for name in TENSORS]
