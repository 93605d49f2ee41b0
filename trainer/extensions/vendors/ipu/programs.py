"""PopTorch's programs: one makes whole updates on the IPUs, the other evaluates."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.errors import CheckpointError
from trainer.extensions.loading.row_batches import RowBatch
from trainer.extensions.vendors.ipu.options import inference_options, loss_scale, training_options
from trainer.extensions.vendors.ipu.stages import IpuPipeline
from trainer.extensions.vendors.keys import IpuSection
from trainer.extensions.vendors.programs import LossAndSums

TENSORS = tuple(field.name for field in fields(RowBatch) if field.default is field.default_factory is MISSING)
PACKED_TENSORS = (*TENSORS, "position_ids", "next_sentence_positions")
_STEP = "Step"


class ModelWithLoss(nn.Module):
    """The model as PopTorch needs it: from a batch's tensors to the loss, in fp32, and its sums.

    In evaluation only the sums are returned.
    """

    def __init__(self, poptorch: ModuleType, model: nn.Module, loss_and_sums: LossAndSums) -> None:
        super().__init__()
        self.model = model
        self._loss_and_sums = loss_and_sums
        self._identity_loss = poptorch.identity_loss

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        attention_mask: Tensor,
        masked_lm_positions: Tensor,
        masked_lm_ids: Tensor,
        masked_lm_weights: Tensor,
        next_sentence_labels: Tensor,
        position_ids: Tensor | None = None,
        next_sentence_positions: Tensor | None = None,
    ) -> Any:
        batch = RowBatch(
            input_ids=input_ids,
            token_type_ids=token_type_ids,
            attention_mask=attention_mask,
            masked_lm_positions=masked_lm_positions,
            masked_lm_ids=masked_lm_ids,
            masked_lm_weights=masked_lm_weights,
            next_sentence_labels=next_sentence_labels,
            position_ids=position_ids,
            next_sentence_positions=next_sentence_positions,
        )
        loss, sums = self._loss_and_sums(batch)
        return (self._identity_loss(loss, reduction="none"), sums) if self.training else sums


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """Everything that a program is made with. fresh_options makes options with the replicas set."""

    poptorch: ModuleType
    config: Config
    pipeline: IpuPipeline
    replicas: int
    fresh_options: Callable[[], Any]


class IpuPrograms:
    """Both programs of a model, which take turns on the same IPUs.

    width: the number of sums.
    """

    def __init__(self, setup: Setup, model: nn.Module, loss_and_sums: LossAndSums, width: int) -> None:
        self._setup = setup
        self._module = ModelWithLoss(setup.poptorch, model, loss_and_sums)
        self._width = width
        self._names = {name for name, _ in model.named_parameters()}
        self._optimiser: Any = None
        self._training: Any = None
        self._inference: Any = None
        self._moments: dict[str, Tensor] = {}
        self._applied = 0

    def update(
        self, updates: Sequence[Sequence[Batch]], optimiser: torch.optim.Optimizer, step: int, total: int
    ) -> list[Tensor]:
        tensors = _joined(updates)
        if self._training is None:
            self._compile(tensors, len(updates[0]), optimiser, total)
        optimiser.loss_scaling = loss_scale(self._setup.config, step)  # type: ignore[attr-defined]
        self._training.setOptimizer(optimiser)
        _, values = self._training(*tensors)
        if self._setup.config.section(IpuSection).synthetic_data:
            values = torch.zeros_like(values)  # the IPU then sends no results back
        return [self._added_up(rows) for rows in values.reshape(len(updates), -1)]

    def compile(
        self, updates: Sequence[Sequence[Batch]], optimiser: torch.optim.Optimizer, total: int
    ) -> None:
        self._compile(_joined(updates), len(updates[0]), optimiser, total)

    def _compile(
        self, tensors: list[Tensor], micro_batches: int, optimiser: torch.optim.Optimizer, total: int
    ) -> None:
        setup = self._setup
        options = training_options(
            setup.poptorch,
            setup.fresh_options(),
            setup.config,
            setup.pipeline,
            accumulation=micro_batches // setup.replicas,
            # Depends on the updates made, so that a resumed run does not repeat the dropout of the first.
            seed=setup.config.data.seed + total,
        )
        executor = setup.poptorch.trainingModel(self._module, options, optimizer=optimiser)
        executor.compile(*tensors)
        self._optimiser = optimiser
        self._training = executor
        if self._moments:
            self._restore()

    def _restore(self) -> None:
        """Fill PopTorch's state from the checkpoint. PopTorch names its tensors when it compiles."""
        state = self._optimiser.state_dict()
        moments, kinds = self._moments, self._kinds()
        held = {self._split(key): value for key, value in state["ipu_state"].items()}
        targets = {f"{kinds[kind]}/{name}": one for (kind, name), one in held.items() if kind in kinds}
        if foreign := sorted(moments.keys() ^ targets.keys()):
            whose = f"checkpoint and PopTorch's {type(self._optimiser).__name__} differ in {foreign[0]}"
            raise CheckpointError(f"{whose}; continue with the checkpoint's optimiser, or --start-from-ckpt")
        for key, target in targets.items():
            target.copy_(moments[key])
        for (kind, _), target in held.items():
            if kind == _STEP:
                target.fill_(self._applied)
        self._optimiser.load_state_dict(state)

    def _split(self, key: str) -> tuple[str, str]:
        """(kind, our name) of PopTorch's tensor: "Accl1___", the names of wrapping modules, our name."""
        kind, _, name = key.partition("___")
        while name not in self._names and name:
            name = name.partition(".")[2]
        return kind, name

    def _kinds(self) -> dict[str, str]:
        """PyTorch's name of each kind of PopTorch's moments, for the optimiser."""
        if "betas" in self._optimiser.defaults:
            return {"Accl1": "exp_avg", "Accl2": "exp_avg_sq"}
        return {"Accl1": "momentum_buffer"}

    def fetch(self) -> None:
        if self._training is not None:
            self._training.copyWeightsToHost()

    def moments(self) -> dict[str, Tensor]:
        if self._training is None:
            return self._moments
        state = self._optimiser.state_dict()["ipu_state"]
        found = {self._split(key): value for key, value in state.items()}
        kinds = self._kinds()
        return {f"{kinds[kind]}/{name}": value for (kind, name), value in found.items() if kind in kinds}

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        self._moments, self._applied = moments, applied

    @contextmanager
    def evaluating(self) -> Iterator[Callable[[Batch], Tensor]]:
        self._module.eval()
        with self._training_off_the_ipus():
            if self._inference is not None:
                self._inference.attachToDevice()
            yield self._evaluate
            if self._inference is not None:
                self._inference.detachFromDevice()
        self._module.train()

    @contextmanager
    def _training_off_the_ipus(self) -> Iterator[None]:
        """Detach the training program. Weights and moments are then on the host."""
        if self._training is not None:
            self._training.detachFromDevice()
        yield
        if self._training is not None:
            self._training.attachToDevice()

    def _evaluate(self, batch: Batch) -> Tensor:
        """The sums of a batch over all replicas, padded with rows of weight 0 to a multiple of them."""
        setup = self._setup
        rows = -(-len(batch) // setup.replicas) * setup.replicas
        tensors = [getattr(batch, name) for name in TENSORS]
        if missing := rows - len(batch):
            tensors = [torch.cat([one, one.new_zeros(missing, *one.shape[1:])]) for one in tensors]
            tensors[-1][-missing:] = -1
        if self._inference is None:
            options = inference_options(setup.poptorch, setup.fresh_options(), setup.config, setup.pipeline)
            self._inference = setup.poptorch.inferenceModel(self._module, options)
            self._inference.compile(*tensors)
        return self._added_up(self._inference(*tensors))

    def _added_up(self, values: Tensor) -> Tensor:
        """One row of sums from one for each micro-batch."""
        return values.reshape(-1, self._width).float().sum(0)

    def release(self) -> None:
        if self._training is not None:
            self._training.destroy()
        if self._inference is not None:
            self._inference.destroy()


def _joined(updates: Sequence[Sequence[Batch]]) -> list[Tensor]:
    """The tensors of all micro-batches, concatenated: by update, then by accumulation, then by replica."""
    batches = [batch for update in updates for batch in update]
    is_packed = getattr(batches[0], "next_sentence_positions", None) is not None
    names = PACKED_TENSORS if is_packed else TENSORS
    return [torch.cat([getattr(batch, name) for batch in batches]) for name in names]
