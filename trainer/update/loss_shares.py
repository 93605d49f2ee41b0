"""The weight of each micro-batch's loss in an update: by micro-batches, masked words or sequences."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bertdata.config.settings import check
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatBatch
from trainer.data.row_batches import RowBatch
from trainer.update.worker import Worker

_LEAST = 1e-6
"""The weight of a micro-batch without any words, whose loss is 0."""


def loss_divisors(worker: Worker, batches: Sequence[Batch], copies: int) -> Sequence[float | Tensor]:
    """Return the divisor of the loss of each micro-batch of this worker's update.

    The gradients of the divided losses are added up, then averaged over the workers. batches: in host memory.
    copies: of the model, over which gradients are averaged. Every worker must call this, as it exchanges the
    number of words.
    """
    config, workers = worker.config, worker.workers
    over = config.update.loss_over
    if over in ("micro_batch", "sum"):
        divisor = loss_divisor(config, len(batches), copies)
        return [divisor] * len(batches)
    check(config.ipu.reduction_type != "sum", f"loss_over is {over}: expected reduction_type mean")
    if over == "sequences":
        size, _ = config.update.micro_batches(copies)
        counts = [float(count_sequences(batch, size)) for batch in batches]
        return [sum(counts) / max(count, _LEAST) for count in counts]
    is_task = worker.task.is_fine_tuned
    counts = [count_learned(batch, is_task=is_task) for batch in batches]
    # The words of all workers' updates over the number of workers, like the average of the gradients.
    mean = torch.tensor(sum(counts), dtype=torch.float32, device=worker.device.torch_device)
    workers.average([mean])
    return [mean.clamp(min=_LEAST) / max(count, _LEAST) for count in counts]


def loss_divisor(config: Config, count: int, copies: int) -> float:
    """Return the divisor of the loss of each of a worker's ``count`` micro-batches in an update.

    Where micro-batches are added up, replicas says over how many workers; there may be another number, as one
    may do the work of several.
    """
    is_sum = config.ipu.reduction_type == "sum" or config.update.loss_over == "sum"
    return (config.update.replicas or copies) / copies if is_sum else count


def count_learned(batch: Batch, *, is_task: bool) -> float:
    """Return the masked words of a batch, or the examples of a task that is fine-tuned."""
    if is_task:
        return float((batch.next_sentence_labels >= 0).sum())
    return float(batch.masked_lm_weights.sum())


def count_sequences(batch: Batch, rows: int) -> int:
    """Return the sequences of a batch as ModernBERT's program counts them.

    rows: those of a full batch. In packed ones the padding behind the sequences of all counts as one more
    sequence. Its own micro-batches have one row.
    """
    count = int((batch.next_sentence_labels >= 0).sum())
    if isinstance(batch, FlatBatch):
        is_packed = len(batch) > rows
        return count + int(is_packed and batch.tokens < rows * batch.longest)
    if isinstance(batch, RowBatch) and batch.next_sentence_positions is not None:
        return count + int((batch.attention_mask == 0).any(dim=1).sum())
    return count
