"""A stage of a pipeline: the layers that this worker has, and their passes over an update's micro-batches."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from bertdata.errors import BertDataError
from trainer.data.batches import Batch
from trainer.extensions.splitting.same_length import token_rows
from trainer.extensions.splitting.subgroups import Subgroup
from trainer.model.bert import HeadedBert
from trainer.model.layers import Carried
from trainer.model.task import Outcome
from trainer.update.step import LossScale
from trainer.update.strategy import UpdateNumber, Worker, loss_and_sums, loss_divisor, seed_micro_batch

_KEPT_SCHEDULES = 4
"""Schedules of other shapes that are kept; each has memory for the tensors that it receives."""


class Resumed:
    """The model as a task sees it, which goes on from the tensors of the stage before."""

    def __init__(self, model: HeadedBert, carried: Carried | None) -> None:
        self.training = model.training
        self._model, self._carried = model, carried

    def __call__(self, batch: Batch, /) -> Any:
        return self._model(batch, self._carried)


class WorkerStage:
    """The layers of this worker, from the tensors that it receives to those that it hands on."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.is_first = worker.division.stage == 0
        self.is_last = worker.division.is_last_stage

    def encode(self, received: Sequence[Tensor], batch: Batch) -> tuple[Tensor, ...]:
        """The tensors for the next stage, of a batch on its device: two where norms come first."""
        carried = self._worker.model.bert.encode(batch, _carried(received))
        return tuple(carried) if self._worker.model.bert.norm_first else (carried.rows,)

    def outcome(self, received: Sequence[Tensor], batch: Batch) -> Outcome:
        """The task's outcome, of the last stage."""
        return self._worker.task.outcome(Resumed(self._worker.model, _carried(received)), batch)

    def blanks(self, batch: Batch, device: torch.device, **options: Any) -> tuple[Tensor, ...]:
        """Empty tensors of the shapes that stages hand on for the batch."""
        bert, precision = self._worker.model.bert, self._worker.config.update.precision
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
        shape = token_rows(batch), self._worker.model.config.hidden_size
        count = 2 if bert.norm_first else 1
        return tuple(torch.empty(shape, dtype=dtype, device=device, **options) for _ in range(count))


def _carried(received: Sequence[Tensor]) -> Carried | None:
    return Carried(received[0], received[-1]) if received else None


class TrainingStage(nn.Module):
    """A stage's forward pass over a micro-batch, with the loss on the last stage.

    batches, at, values: the update's micro-batches, its number and, on the last stage, what
    ``loss_and_sums`` gives of each micro-batch.
    """

    def __init__(self, worker: Worker, stage: WorkerStage, scale: LossScale) -> None:
        super().__init__()
        self.model = worker.model
        self._worker, self._stage, self._scale = worker, stage, scale
        self.batches: Sequence[Batch] = ()
        self.at = UpdateNumber(0, 0, 0)
        self.values: list[Tensor] = []

    def forward(self, *received: Tensor, number: Tensor) -> tuple[Tensor, ...]:
        """The tensors for the next stage, or the scaled loss, (1,). number: (1,)."""
        place = int(number)
        seed_micro_batch(self._worker, self.at, place)
        return self._worker.device.forward(partial(self._compute, received), self.batches[place])

    def _compute(self, received: Sequence[Tensor], batch: Batch) -> tuple[Tensor, ...]:
        if not self._stage.is_last:
            return self._stage.encode(received, batch)
        outcome = self._stage.outcome(received, batch)
        self.values.append(loss_and_sums(outcome))
        config, copies = self._worker.config, self._worker.division.copies
        divisor = loss_divisor(config, len(self.batches), copies)
        return (torch.stack([self._scale.scale(outcome.loss / divisor)]),)


class Pipeline:
    """Forward and backward passes of all micro-batches of an update, one after the other through the stages.

    The schedule is 1F1B (Narayanan et al. 2019), or all forward passes first (Huang et al. 2018) where there
    are fewer micro-batches than stages.
    """

    def __init__(self, worker: Worker, group: Subgroup, scale: LossScale) -> None:
        self._worker, self._group = worker, group
        self._stage = WorkerStage(worker)
        self._module = TrainingStage(worker, self._stage, scale)
        self._schedules: OrderedDict[tuple[int, int], Any] = OrderedDict()

    def run(self, batches: Sequence[Batch], at: UpdateNumber) -> list[Tensor]:
        """Leave the sum of the micro-batches' gradients, times the loss scale, in the weights' grad.

        batches: as many tokens each. Returns of the last stage ``loss_and_sums`` of each, of others nothing.
        """
        module, count = self._module, len(batches)
        module.batches, module.at, module.values = batches, at, []
        schedule = self._find_schedule(batches[0], count)
        numbers = torch.arange(count)
        target = {"target": numbers} if self._stage.is_last else {}
        try:
            schedule.step(number=numbers, return_outputs=False, **target)
        except RuntimeError as error:  # it hides those of the module
            if isinstance(error.__cause__, BertDataError):
                raise error.__cause__ from None
            raise
        finally:
            module.batches = ()
        return module.values

    def _find_schedule(self, batch: Batch, count: int) -> Any:
        """The schedule for so many micro-batches of the batch's shape. All stages make the same choice."""
        key = token_rows(batch), count
        if key not in self._schedules:
            if len(self._schedules) == _KEPT_SCHEDULES:
                self._schedules.popitem(last=False)
            self._schedules[key] = self._make_schedule(batch, count)
        self._schedules.move_to_end(key)
        return self._schedules[key]

    def _make_schedule(self, batch: Batch, count: int) -> Any:
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

        division = self._worker.division
        meta = torch.device("meta")
        handed = self._stage.blanks(batch, meta, requires_grad=True)
        stage = PipelineStage(
            self._module,
            division.stage,
            division.stages,
            self._worker.device.torch_device,
            input_args=() if self._stage.is_first else handed,
            output_args=(torch.empty(1, device=meta, requires_grad=True),) if self._stage.is_last else handed,
            group=self._group.group,
        )
        kind: Callable[..., Any] = Schedule1F1B if count >= division.stages else ScheduleGPipe
        return kind(stage, count, loss_fn=_loss, scale_grads=False)


def _loss(outputs: Sequence[Tensor] | Tensor, _: Tensor) -> Tensor:
    """The last stage's loss, 0-dim."""
    loss = outputs if isinstance(outputs, Tensor) else outputs[0]
    return loss.sum()
