"""A stage of a pipeline: this worker's layers, and their forward passes over an update's micro-batches."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.data.batches import Batch, FlatBatch, Prepare
from trainer.devices.device import HALVES
from trainer.model.layers import LayerOutput
from trainer.splitting.subgroups import Subgroup
from trainer.tasks.task import Outcome
from trainer.update.learner import ResumedModel
from trainer.update.step import LossScale
from trainer.update.strategy import UpdateNumber, join_loss_and_sums, seed_micro_batch
from trainer.update.worker import Worker

_TENSORS_OF_TOKENS = ("input_ids", "token_type_ids", "attention_mask", "position_ids")
"""Names of a batch's tensors that have one value per token. Padding a batch must extend these tensors."""


class WorkerStage(nn.Module):
    """The layers of this worker as a module, which turns the previous stage's tensors into
    tensors for the next stage.

    On the last stage the module also computes the loss. Before each update, set the attributes ``batches``,
    ``divisors`` and ``at``. A forward pass takes the index of a micro-batch in ``batches``.
    batches: micro-batches of the update.
    divisors: for each micro-batch, the number that its loss is divided by.
    at: number of the update.
    values: on the last stage, the result of ``join_loss_and_sums`` for each micro-batch computed so far.
    """

    def __init__(self, worker: Worker, scale: LossScale | None = None) -> None:
        """Create the stage of a worker.

        scale: loss scale of the training. None for evaluation.
        """
        super().__init__()
        self.model = worker.model
        self._worker, self._scale = worker, scale
        self.is_first = worker.model_share.stage == 0
        self.is_last = worker.model_share.is_last_stage
        self.batches: Sequence[Batch] = ()
        self.divisors: Sequence[float | Tensor] = ()
        self.at = UpdateNumber(0, 0, 0)
        self.values: list[Tensor] = []

    def encode(self, received: Sequence[Tensor], batch: Batch) -> tuple[Tensor, ...]:
        """Return the tensors to send to the next stage: two if the model has its norms before its layers,
        otherwise one.

        received: the tensors from the previous stage. Empty on the first stage.
        batch: a batch on the device.
        """
        carried = self.model.bert.encode(batch, _make_carried(received))
        return tuple(carried) if self.model.bert.norm_first else (carried.rows,)

    def outcome(self, received: Sequence[Tensor], batch: Batch) -> Outcome:
        """Return the task's outcome (loss and metrics) for a batch. Only the last stage can compute it.

        received: the tensors from the previous stage.
        """
        return self._worker.task.outcome(ResumedModel(self.model, _make_carried(received)), batch)

    def make_empty_tensors(self, tokens: int, device: torch.device, **options: Any) -> tuple[Tensor, ...]:
        """Return uninitialised tensors with the shapes of the tensors that one stage sends to the next.

        tokens: number of tokens in the batch.
        options: further arguments of ``torch.empty``.
        """
        dtype = HALVES.get(self._worker.config.update.precision, torch.float32)
        shape = tokens, self.model.config.hidden_size
        count = 2 if self.model.bert.norm_first else 1
        return tuple(torch.empty(shape, dtype=dtype, device=device, **options) for _ in range(count))

    def forward(self, *received: Tensor, number: Tensor) -> tuple[Tensor, ...]:
        """Return the tensors for the next stage. The last stage returns the scaled loss, with shape (1,).

        received: the tensors from the previous stage. Empty on the first stage.
        number: index of the micro-batch in ``batches``, a tensor with shape (1,).
        """
        place = int(number)
        seed_micro_batch(self._worker, self.at, place)
        compute = partial(self.encode, received)
        if self.is_last:
            compute = partial(self._compute_scaled_loss, received, self.divisors[place])
        return self._worker.device.forward(compute, self.batches[place])

    def _compute_scaled_loss(
        self, received: Sequence[Tensor], divisor: float | Tensor, batch: Batch
    ) -> tuple[Tensor, ...]:
        """Return a micro-batch's loss, scaled for the backward pass. Append its loss and metric sums to
        ``self.values``.

        received: outputs of the stage before.
        divisor: the number that the loss is divided by.
        """
        assert self._scale is not None
        outcome = self.outcome(received, batch)
        self.values.append(join_loss_and_sums(outcome))
        return (torch.stack([self._scale.scale(outcome.loss / divisor)]),)


def _make_carried(received: Sequence[Tensor]) -> LayerOutput | None:
    """Return the received tensors in the form that the encoder continues from.

    None on the first stage, which receives nothing.
    """
    return LayerOutput(received[0], received[-1]) if received else None


def make_schedule(worker: Worker, stage: WorkerStage, group: Subgroup, tokens: int, count: int) -> Any:
    """Return PyTorch's pipeline schedule for a stage, for updates of ``count`` micro-batches
    with ``tokens`` tokens.

    The schedule is 1F1B (Narayanan et al. 2019). If there are fewer micro-batches than stages, it is GPipe
    (Huang et al. 2018), which makes all forward passes first. All stages make the same choice.
    group: the workers of the pipeline.
    """
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    division, meta = worker.model_share, torch.device("meta")
    # Example tensors on the meta device tell PyTorch the shapes, so that the stages need not exchange shapes
    # first.
    handed = stage.make_empty_tensors(tokens, meta, requires_grad=True)
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
    return kind(own, count, loss_fn=_extract_loss, scale_grads=False)


def _extract_loss(outputs: Sequence[Tensor] | Tensor, _: Tensor) -> Tensor:
    """Return the last stage's loss as a 0-dimensional tensor, which PyTorch's schedule expects."""
    loss = outputs if isinstance(outputs, Tensor) else outputs[0]
    return loss.sum()


def count_tokens(batch: Batch) -> int:
    """Return the number of tokens in the batch, padding included.

    This is also the number of rows of the model's activations.
    """
    return batch.input_ids.numel()


def pad_to_same_length(batches: Sequence[Batch], prepare: Prepare = lambda batch: batch) -> list[Batch]:
    """Return the batches, each padded to the number of tokens of the largest batch.

    PyTorch's pipelining needs equal shapes. Batches that already have the largest number of tokens are
    returned unchanged. The padding does not change what the model computes for other tokens. All batches must
    be of the same type. Batches of padded rows must have the same number of rows.
    prepare: function that is applied to each batch that gets padding.
    """
    longest = max(batch.input_ids.shape[-1] for batch in batches)
    padded = []
    for batch in batches:
        if more := longest - batch.input_ids.shape[-1]:
            batch = prepare(_pad_batch(batch, more))
        padded.append(batch)
    return padded


def _pad_batch(batch: Batch, more: int) -> Batch:
    """Return the batch with ``more`` additional positions of padding.

    In a batch of padded rows, the positions are added at the end of each row. In a flat batch (sequences one
    after the other without padding), the new tokens form as few additional sequences as possible. They are of
    nearly equal length, and none is longer than the longest sequence in the batch.
    """
    tensors = batch.tensors()
    padded = {name: F.pad(tensors[name], (0, more)) for name in _TENSORS_OF_TOKENS if name in tensors}
    if isinstance(batch, FlatBatch):
        tokens, parts = len(batch.input_ids), -(-more // batch.longest)
        # For example, 10 tokens of padding in sequences of at most 4 tokens make 3 sequences, which end after
        # 3, 6 and 10 tokens.
        ends = tokens + more * torch.arange(1, parts + 1, dtype=torch.int32) // parts
        sizes = torch.cat([torch.tensor([tokens], dtype=torch.int32), ends]).diff()
        positions = [torch.arange(size, dtype=torch.int32) for size in sizes.tolist()]
        padded["position_ids"] = torch.cat([batch.position_ids, *positions])
        padded["ends"] = torch.cat([batch.ends, ends.to(torch.int32)])
    return batch.changed(**padded)
