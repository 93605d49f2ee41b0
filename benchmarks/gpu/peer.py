"""Speed of transformers' BertForPreTraining and ModernBertForMaskedLM, compiled, on padded rows.

The model gets the same examples as this trainer's model, and has scaled-dot-product attention, bf16 autocast
and dropout. Clipping and the fused optimiser are this trainer's. transformers' models compute the logits of
the whole vocabulary at every position. With ``masked_only`` the logits are computed at masked positions only,
which shows how much of the difference in speed is due to them.
"""

import time
from collections.abc import Callable, Sequence

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.gpu.clock import add_peak_memory, wait_for_device
from benchmarks.gpu.figures import Figures
from benchmarks.gpu.optimiser import make_clipping_and_step
from benchmarks.gpu.sizes import Sizes
from benchmarks.gpu.updates import WARM_UP, TimedWork, add_speed, draw_updates, make_phase_data, time_updates
from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig
from trainer.data.loader import Update
from trainer.data.row_batches import RowBatch
from trainer.run.runtime import find_model_config, open_runtime
from trainer.update.worker import Runtime

MOST_DIVISION = 8
"""Largest number by which the size of micro-batches is divided so that they fit into memory."""


def measure_transformers(
    figures: Figures, sizes: Sizes, phase: str, masked_only: bool = False, divide: int = 1
) -> None:
    """Measure speed and memory of updates of transformers' model.

    phase: name of the configuration.
    masked_only: True to compute logits at masked positions only.
    divide: number by which the size of micro-batches is divided. It is doubled if memory runs out.
    """
    while True:
        try:
            return measure_with_micro_batch_size(figures, sizes, phase, masked_only, divide)
        except torch.OutOfMemoryError:
            if divide == MOST_DIVISION:
                raise
        divide *= 2
        torch.compiler.reset()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def measure_with_micro_batch_size(
    figures: Figures, sizes: Sizes, phase: str, masked_only: bool, divide: int
) -> None:
    """Measure speed and memory of updates with micro-batches of a fixed size.

    divide: number by which the configuration's size of micro-batches is divided.
    """
    config = sizes.config(phase, rows=True)
    size = (config.update.batch_size or 1) // divide
    accumulation = sizes.accumulation * divide
    config = config.changed(batch_size=size)
    data = make_phase_data(config, sizes.phases[phase].fill)
    runtime = open_runtime(config).changed(config, data)
    shape = find_model_config(runtime.config, data)
    drawn = draw_updates(data, runtime, size, accumulation, WARM_UP + sizes.updates)
    make = TransformersUpdate(runtime, make_peer_model(shape, masked_only), masked_only)
    wait_for_device(sizes.device)
    start = time.perf_counter()
    make(Update(drawn[0].batches[:1], drawn[0].position))
    wait_for_device(sizes.device)
    figures.add("first micro-batch of a shape", time.perf_counter() - start, "s", batch_size=size)
    timed = drawn[WARM_UP:]
    seconds = time_updates(make, drawn[:WARM_UP], timed, sizes.device)
    work = TimedWork.count([batch for update in timed for batch in update.batches], shape)
    add_speed(figures, sizes, work, seconds, len(timed))
    add_peak_memory(figures, sizes.device)


class TransformersUpdate:
    """Callable that makes an update of transformers' model."""

    def __init__(self, runtime: Runtime, model: nn.Module, masked_only: bool) -> None:
        self._device, self._config = runtime.device, runtime.config
        self._model = model.to(runtime.device.torch_device).train()
        has_pairs = isinstance(model, transformers.BertForPreTraining)
        loss = compute_masked_loss if masked_only and has_pairs else compute_published_loss
        self._loss: Callable[[nn.Module, RowBatch], Tensor] = torch.compile(loss, dynamic=False)
        self._step = make_clipping_and_step(self._config, self._device, self._model, fused=True)
        self._made = 0

    def __call__(self, update: Update) -> None:
        for batch in update.batches:
            assert isinstance(batch, RowBatch)
            with self._device.autocast(self._config.update.precision):
                loss = self._loss(self._model, self._device.move(batch))
            (loss / len(update.batches)).backward()  # type: ignore[no-untyped-call]
        gradients = [weight.grad for weight in self._model.parameters() if weight.grad is not None]
        self._made += 1
        self._step.take(gradients, 1e-4, self._made)
        for weight in self._model.parameters():
            weight.grad = None


def make_peer_model(shape: ModelConfig, masked_only: bool) -> nn.Module:
    """Return transformers' model of this shape.

    masked_only: for ModernBERT, True to compute logits at masked positions only. BERT has no such setting.
    """
    torch.manual_seed(1)
    if isinstance(shape, ModernBertConfig):
        config = transformers.ModernBertConfig(**shape.for_transformers(), sparse_prediction=masked_only)
        config._attn_implementation = "sdpa"
        return transformers.ModernBertForMaskedLM(config)
    names = transformers.BertConfig().to_dict()
    given = {name: value for name, value in shape.as_json().items() if name in names}
    return transformers.BertForPreTraining(transformers.BertConfig(**given, attn_implementation="sdpa"))


def compute_published_loss(model: nn.Module, batch: RowBatch) -> Tensor:
    """Return the loss that transformers computes, with labels at every position."""
    size, length = batch.input_ids.shape
    labels = torch.full((size, length + 1), -100, device=batch.input_ids.device)
    unused = batch.masked_lm_weights == 0
    places = batch.masked_lm_positions.long().masked_fill(
        unused, length
    )  # Unused slots for masks go to an extra column, which is cut off.
    labels = labels.scatter(1, places, batch.masked_lm_ids.long())[:, :length].contiguous()
    given = make_inputs(batch)
    if batch.next_sentence_labels is None:
        del given["token_type_ids"]
    else:
        given["next_sentence_label"] = batch.next_sentence_labels.long()
    loss: Tensor = model(**given, labels=labels).loss
    return loss


def compute_masked_loss(model: nn.Module, batch: RowBatch) -> Tensor:
    """Return the loss of BERT, computed by applying the head for masked words to masked positions only."""
    hidden, pooled = model.bert(**make_inputs(batch))[:2]
    places = batch.masked_lm_positions.long()[:, :, None].expand(-1, -1, hidden.shape[-1])
    words, pairs = model.cls(hidden.gather(1, places), pooled)
    losses = F.cross_entropy(
        words.flatten(0, 1).float(), batch.masked_lm_ids.long().flatten(), reduction="none"
    )
    weights = batch.masked_lm_weights.flatten()
    following = F.cross_entropy(pairs.float(), batch.next_sentence_labels.long())
    return (losses * weights).sum() / weights.sum() + following


def make_inputs(batch: RowBatch) -> dict[str, Tensor]:
    """Return the model's inputs under transformers' names."""
    names: Sequence[str] = ("input_ids", "token_type_ids", "attention_mask")
    return {name: getattr(batch, name).long() for name in names}
