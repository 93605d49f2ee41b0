"""The share that each micro-batch has in an update's loss.

The shares are equal, or proportional to the numbers of masked words or of sequences.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bertdata.config.settings import require
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatBatch
from trainer.data.row_batches import RowBatch
from trainer.update.worker import Worker

_LEAST = 1e-6
"""Smallest count of words or sequences, and smallest mean of such counts, from which a divisor is computed.

A micro-batch without masked words has the loss 0, and must not cause a division by 0.
"""


def compute_loss_divisors(worker: Worker, batches: Sequence[Batch], copies: int) -> Sequence[float | Tensor]:
    """Return for each micro-batch of this worker's update the number by which its loss is divided.

    The gradients of the divided losses are added up, and then averaged over the workers. Every worker must
    call this, because the workers may exchange their numbers of masked words.
    batches: micro-batches in host memory.
    copies: number of copies of the model whose gradients are averaged.
    """
    config, workers = worker.config, worker.collective
    over = config.update.loss_over
    # Equal shares: each of 4 micro-batches has the divisor 4, so that the sum of the gradients is their mean.
    if over in ("micro_batch", "sum"):
        divisor = compute_equal_divisor(config, len(batches), copies)
        return [divisor] * len(batches)
    require(config.ipu.reduction_type != "sum", f"loss_over is {over}: expected reduction_type mean")
    # Shares by the sequences of this worker: micro-batches with 8 and 24 sequences have the divisors 32/8 and
    # 32/24.
    if over == "sequences":
        size, _ = config.update.micro_batches(copies)
        counts = [float(count_sequences(batch, size)) for batch in batches]
        return [sum(counts) / max(count, _LEAST) for count in counts]
    is_task = worker.task.is_fine_tuned
    counts = [count_loss_terms(batch, is_task=is_task) for batch in batches]
    # Shares by the masked words of all workers. If worker 0 has 6 words and worker 1 has 10, the mean is 8. A
    # micro-batch with 2 words has the divisor 8/2. The average over the 2 workers makes its share 2/16, as if
    # one machine had computed all 16 words.
    mean = torch.tensor(sum(counts), dtype=torch.float32, device=worker.device.torch_device)
    workers.average([mean])
    return [mean.clamp(min=_LEAST) / max(count, _LEAST) for count in counts]


def compute_equal_divisor(config: Config, count: int, copies: int) -> float:
    """Return the number by which every micro-batch's loss is divided if all micro-batches have equal shares.

    Usually it is the number of micro-batches, so that the sum of the gradients is their mean. If losses are
    summed instead of averaged, the gradients are averaged only over the workers. The setting ``replicas``
    then says over how many workers the original program summed. This run may have fewer workers, each of
    which does the work of several.
    count: number of micro-batches of a worker's update.
    copies: number of copies of the model whose gradients are averaged.
    """
    is_sum = config.ipu.reduction_type == "sum" or config.update.loss_over == "sum"
    return (config.update.replicas or copies) / copies if is_sum else count


def count_loss_terms(batch: Batch, *, is_task: bool) -> float:
    """Return the number of masked words in a batch, or of examples if the task is a fine-tuning task.

    is_task: whether the task is a fine-tuning task.
    """
    if is_task:
        return float((batch.next_sentence_labels >= 0).sum())
    return float(batch.masked_lm_weights.sum())


def count_sequences(batch: Batch, rows: int) -> int:
    """Return the number of sequences in a batch, counted as ModernBERT's program does.

    That program counts the padding behind packed sequences as one more sequence.
    rows: number of rows of a full micro-batch.
    """
    count = int((batch.next_sentence_labels >= 0).sum())
    if isinstance(batch, FlatBatch):
        is_packed = len(batch) > rows
        return count + int(is_packed and batch.tokens < rows * batch.longest)
    if isinstance(batch, RowBatch) and batch.next_sentence_positions is not None:
        return count + int((batch.attention_mask == 0).any(dim=1).sum())
    return count
