"""A stage of a pipeline: the layers that this worker has, and their passes over an update's micro-batches."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.data.batches import Batch, FlatBatch, Prepare
from trainer.devices.device import HALVES
from trainer.model.headed import HeadedBert
from trainer.model.layers import Carried
from trainer.splitting.subgroups import Subgroup
from trainer.tasks.task import Outcome
from trainer.update.step import LossScale
from trainer.update.strategy import UpdateNumber, loss_and_sums, seed_micro_batch
from trainer.update.worker import Worker

_OF_TOKENS = ("input_ids", "token_type_ids", "attention_mask", "position_ids")
"""The tensors that have a value for each token."""


class Resumed:
    """The model as a task sees it, which goes on from the tensors of the stage before."""

    def __init__(self, model: HeadedBert, carried: Carried | None) -> None:
        self.training = model.training
        self._model, self._carried = model, carried

    def __call__(self, batch: Batch, /) -> Any:
        return self._model(batch, self._carried)


class WorkerStage(nn.Module):
    """The layers of this worker, from the tensors that it receives to those that it hands on.

    Its forward pass is that over a micro-batch of an update, with the loss on the last stage. batches,
    divisors, at, values: the update's micro-batches, the divisors of their losses, its number and, on the
    last stage, what ``loss_and_sums`` gives of each micro-batch.
    """

    def __init__(self, worker: Worker, scale: LossScale | None = None) -> None:
        """scale: that of the training. None: there is none."""
        super().__init__()
        self.model = worker.model
        self._worker, self._scale = worker, scale
        self.is_first = worker.division.stage == 0
        self.is_last = worker.division.is_last_stage
        self.batches: Sequence[Batch] = ()
        self.divisors: Sequence[float | Tensor] = ()
        self.at = UpdateNumber(0, 0, 0)
        self.values: list[Tensor] = []

    def encode(self, received: Sequence[Tensor], batch: Batch) -> tuple[Tensor, ...]:
        """The tensors for the next stage, of a batch on its device: two where norms come first."""
        carried = self.model.bert.encode(batch, _carried(received))
        return tuple(carried) if self.model.bert.norm_first else (carried.rows,)

    def outcome(self, received: Sequence[Tensor], batch: Batch) -> Outcome:
        """The task's outcome, of the last stage."""
        return self._worker.task.outcome(Resumed(self.model, _carried(received)), batch)

    def blanks(self, tokens: int, device: torch.device, **options: Any) -> tuple[Tensor, ...]:
        """Empty tensors of the shapes that stages hand on for so many tokens."""
        dtype = HALVES.get(self._worker.config.update.precision, torch.float32)
        shape = tokens, self.model.config.hidden_size
        count = 2 if self.model.bert.norm_first else 1
        return tuple(torch.empty(shape, dtype=dtype, device=device, **options) for _ in range(count))

    def forward(self, *received: Tensor, number: Tensor) -> tuple[Tensor, ...]:
        """The tensors for the next stage, or the scaled loss, (1,). number: (1,)."""
        place = int(number)
        seed_micro_batch(self._worker, self.at, place)
        compute = partial(self.encode, received)
        if self.is_last:
            compute = partial(self._loss, received, self.divisors[place])
        return self._worker.device.forward(compute, self.batches[place])

    def _loss(self, received: Sequence[Tensor], divisor: float | Tensor, batch: Batch) -> tuple[Tensor, ...]:
        assert self._scale is not None
        outcome = self.outcome(received, batch)
        self.values.append(loss_and_sums(outcome))
        return (torch.stack([self._scale.scale(outcome.loss / divisor)]),)


def _carried(received: Sequence[Tensor]) -> Carried | None:
    return Carried(received[0], received[-1]) if received else None


def make_schedule(worker: Worker, stage: WorkerStage, group: Subgroup, tokens: int, count: int) -> Any:
    """The passes of a training's stage over so many micro-batches of so many tokens.

    The schedule is 1F1B (Narayanan et al. 2019), or all forward passes first (Huang et al. 2018) where there
    are fewer micro-batches than stages: all stages make the same choice.
    """
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    division, meta = worker.division, torch.device("meta")
    handed = stage.blanks(tokens, meta, requires_grad=True)
    own = PipelineStage(
        stage,
        division.stage,
        division.stages,
        worker.device.torch_device,
        input_args=() if stage.is_first else handed,
        output_args=(torch.empty(1, device=meta, requires_grad=True),) if stage.is_last else handed,
        group=group.group,
    )
    kind: Callable[..., Any] = Schedule1F1B if count >= division.stages else ScheduleGPipe
    return kind(own, count, loss_fn=_loss, scale_grads=False)


def _loss(outputs: Sequence[Tensor] | Tensor, _: Tensor) -> Tensor:
    """The last stage's loss, 0-dim."""
    loss = outputs if isinstance(outputs, Tensor) else outputs[0]
    return loss.sum()


def token_rows(batch: Batch) -> int:
    """Tokens of the batch with its padding: rows of the model's matrices."""
    return batch.input_ids.numel()


def with_same_length(batches: Sequence[Batch], prepare: Prepare = lambda batch: batch) -> list[Batch]:
    """The batches padded to the longest one's number of tokens. Batches of that length are unchanged.

    Batches must be of one form and, if they are rows, of as many rows. prepare: done to those that get more
    padding. What the model computes for the other tokens does not depend on it.
    """
    longest = max(batch.input_ids.shape[-1] for batch in batches)
    padded = []
    for batch in batches:
        if more := longest - batch.input_ids.shape[-1]:
            batch = prepare(_longer(batch, more))
        padded.append(batch)
    return padded


def _longer(batch: Batch, more: int) -> Batch:
    """With so many positions of padding more, in each row of padded rows.

    Those of a flat batch are in as few sequences as have room for them, of near equal length.
    """
    tensors = batch.tensors()
    padded = {name: F.pad(tensors[name], (0, more)) for name in _OF_TOKENS if name in tensors}
    if isinstance(batch, FlatBatch):
        tokens, parts = len(batch.input_ids), -(-more // batch.longest)
        ends = tokens + more * torch.arange(1, parts + 1, dtype=torch.int32) // parts
        sizes = torch.cat([torch.tensor([tokens], dtype=torch.int32), ends]).diff()
        positions = [torch.arange(size, dtype=torch.int32) for size in sizes.tolist()]
        padded["position_ids"] = torch.cat([batch.position_ids, *positions])
        padded["ends"] = torch.cat([batch.ends, ends.to(torch.int32)])
    return batch.changed(**padded)
