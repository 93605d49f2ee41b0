"""Updates made on the IPUs: PopTorch takes all micro-batches of an update and an optimiser."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from trainer.collectives.collective import Collective
from trainer.config.settings import Config
from trainer.data.batches import RowBatch
from trainer.devices.ipu.options import loss_scale, training_options
from trainer.devices.ipu.stages import TENSORS, Pipeline, Pretraining, combine_losses
from trainer.errors import CheckpointError
from trainer.model.bert import BertForPreTraining
from trainer.run.checkpoint import State
from trainer.strategies.updater import UpdateDevice, Updater

_STEP = "Step"


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """The parts of PopTorch's training program; fresh_options makes options with the replicas set."""

    poptorch: ModuleType
    module: Pretraining
    pipeline: Pipeline
    replicas: int
    fresh_options: Callable[[], Any]


class IpuUpdater(Updater):
    """Compiles at the first update, when the model holds the weights that the run starts from."""

    def __init__(
        self,
        config: Config,
        device: UpdateDevice,
        workers: Collective,
        model: BertForPreTraining,
        program: Program,
    ) -> None:
        super().__init__(config, device, workers, model)
        self._program = program
        self._names = {name for name, _ in model.named_parameters()}
        kinds = ("exp_avg", "exp_avg_sq") if "betas" in self.optimiser.defaults else ("momentum_buffer",)
        self._kinds = dict(zip(("Accl1", "Accl2"), kinds, strict=False))
        self._moments: dict[str, Tensor] = {}
        self._executor: Any = None

    def update(
        self, updates: Sequence[Sequence[RowBatch]], learning_rate: float, state: State
    ) -> list[Tensor]:
        self._workers.stopping.check(exchanges=True)
        tensors = _joined(updates)
        if self._executor is None:
            self._compile(tensors, len(updates[0]), state)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        self.optimiser.loss_scaling = loss_scale(self._config, state.step)  # type: ignore[attr-defined]
        self._executor.setOptimizer(self.optimiser)
        _, values = self._executor(*tensors)
        self.applied += len(updates)
        if self._config.ipu.synthetic_data:
            values = torch.zeros_like(values)  # the IPU then sends no results back
        return [combine_losses(rows) for rows in values.reshape(len(updates), -1)]

    def compile(self, updates: Sequence[Sequence[RowBatch]], state: State) -> None:
        self._compile(_joined(updates), len(updates[0]), state)

    def _compile(self, tensors: list[Tensor], micro_batches: int, state: State) -> None:
        program = self._program
        options = training_options(
            program.poptorch,
            program.fresh_options(),
            self._config,
            program.pipeline,
            accumulation=micro_batches // program.replicas,
            # Depends on the updates made, so that a resumed run does not repeat the dropout of the first.
            seed=self._config.data.seed + state.number,
        )
        executor = program.poptorch.trainingModel(program.module, options, optimizer=self.optimiser)
        executor.compile(*tensors)
        self._executor = executor
        if self._moments:
            self._restore()

    def _restore(self) -> None:
        """Fill PopTorch's state from the checkpoint; PopTorch names its tensors when it compiles."""
        state = self.optimiser.state_dict()
        moments = self._moments
        held = {self._split(key): value for key, value in state["ipu_state"].items()}
        targets = {
            f"{self._kinds[kind]}/{name}": one for (kind, name), one in held.items() if kind in self._kinds
        }
        if foreign := sorted(moments.keys() ^ targets.keys()):
            whose = f"checkpoint and PopTorch's {type(self.optimiser).__name__} differ in {foreign[0]}"
            raise CheckpointError(f"{whose}; continue with the checkpoint's optimiser, or --start-from-ckpt")
        for key, target in targets.items():
            target.copy_(moments[key])
        for (kind, _), target in held.items():
            if kind == _STEP:
                target.fill_(self.applied)
        self.optimiser.load_state_dict(state)

    def _split(self, key: str) -> tuple[str, str]:
        """(kind, our name) of PopTorch's tensor: "Accl1___", the names of wrapping modules, our name."""
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
        """Detach from the IPUs, for another program to use them; weights and moments are on the host then."""
        if self._executor is not None:
            self._executor.detachFromDevice()
        yield
        if self._executor is not None:
            self._executor.attachToDevice()

    def release(self) -> None:
        """Destroy the program and free the IPUs; no update may follow."""
        if self._executor is not None:
            self._executor.destroy()


def _joined(updates: Sequence[Sequence[RowBatch]]) -> list[Tensor]:
    """The tensors of all micro-batches, concatenated: by update, then by accumulation, then by replica."""
    batches = [batch for update in updates for batch in update]
    return [torch.cat([getattr(batch, name) for batch in batches]) for name in TENSORS]
