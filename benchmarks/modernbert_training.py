"""CPU time of a training step of ModernBERT with 1,024 ids on one core, compared with transformers' model.

A step is forward, backward, clipping and an AdamW update, in fp32. This trainer also draws the original's
dropout after the attention, which transformers' model does not have. The examples are blocks of documents
with 30 % of the tokens masked.

transformers' model computes the logits of the vocabulary at every position. With sparse_prediction it
computes them at masked positions only. To run without padding it needs flash attention, which exists only for
GPUs. So here the model is also run on one sequence after another, without padding.

All variants run alternately on the same batches. The least CPU time of each variant counts, because other
work on the machine only adds to the time. The last table compares the operations that PyTorch counts with the
operations that are needed for the tokens alone.
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
import transformers
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import corpus, measure
from benchmarks.training import measure_cpu_seconds
from bertdata.dataset.reader import OpenedDataset, open_dataset
from trainer.checkpoints.checkpoint import State
from trainer.config.modernbert import ModernBertConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.loader import Loader, Update
from trainer.data.order import Position
from trainer.data.padded_rows import RowForm
from trainer.data.row_batches import RowBatch
from trainer.devices import counting
from trainer.devices.clipping import clip_
from trainer.model.bert import PASSES
from trainer.model.headed import BertForMaskedLM, count_operations
from trainer.model.modernbert import count_seen_pairs
from trainer.plugins import find
from trainer.run.runtime import make_model, open_runtime
from trainer.run.training_state import Training
from trainer.tasks.pretraining import MaskedWords
from trainer.update.optimiser import group_parameters
from trainer.update.optimisers import build_optimiser

PART_BYTES = 400_000
LENGTH, MASKS = 1024, 307
BATCH, ROUNDS = 4, 3
OPTIMISER = "adamw"
SHAPE = ModernBertConfig(
    vocab_size=30522,
    hidden_size=256,
    num_hidden_layers=7,
    num_attention_heads=4,
    intermediate_size=384,
    max_position_embeddings=LENGTH,
)
"""The smallest of the models called Ettin, which are ModernBERT in several sizes."""

WIDTHS = {
    "this model": SHAPE,
    "three layers of the base model": replace(
        SHAPE, hidden_size=768, num_attention_heads=12, intermediate_size=1152, num_hidden_layers=3
    ),
}
"""Shapes of models whose operations are counted."""

Loss = Callable[[transformers.ModernBertForMaskedLM, RowBatch], Tensor]


def make_our_step(data: OpenedDataset) -> Callable[[Batch], object]:
    """Return a function that makes an update with this trainer."""
    config = Config.of(optimiser=OPTIMISER, batch_size=BATCH)
    runtime = open_runtime(config).changed(config, data)
    fresh = State(
        step=0, seed=1, open_files=1, optimiser=OPTIMISER, model=SHAPE.as_json(), config=config.as_json()
    )
    training = Training(runtime, make_model(runtime, SHAPE), fresh)
    return lambda batch: training.update([Update([batch], Position(0, 0))])


def make_their_step(loss_of: Loss, sparse: bool) -> Callable[[RowBatch], object]:
    """Return a function that makes a step of transformers' model with this trainer's optimiser.

    loss_of: function that computes the loss of a batch.
    sparse: True to compute logits at masked positions only.
    """
    config = transformers.ModernBertConfig(**SHAPE.for_transformers(), sparse_prediction=sparse)
    model = transformers.ModernBertForMaskedLM(config).train()
    preset = find("optimiser", OPTIMISER)
    optimiser = build_optimiser(preset, group_parameters(preset, model.named_parameters()))

    def step(batch: RowBatch) -> None:
        """Make a step on this batch."""
        loss_of(model, batch).backward()
        clip_([weight.grad for weight in model.parameters() if weight.grad is not None], 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return step


def compute_padded_loss(model: transformers.ModernBertForMaskedLM, batch: RowBatch) -> Tensor:
    """Return the loss of the padded rows of a batch, computed by transformers' model."""
    mask, labels = batch.attention_mask.long(), make_labels(batch)
    loss: Tensor = model(input_ids=batch.input_ids.long(), attention_mask=mask, labels=labels).loss
    return loss


def compute_loss_one_by_one(model: transformers.ModernBertForMaskedLM, batch: RowBatch) -> Tensor:
    """Return the loss of a batch whose sequences go through the model one by one, without padding.

    A sequence counts in proportion to its number of masked tokens.
    """
    losses, labels = [], make_labels(batch)
    for row, length in enumerate(batch.attention_mask.sum(1).tolist()):
        if length:
            masks = int((labels[row] != -100).sum())
            ids = batch.input_ids[row : row + 1, :length].long()
            losses.append(model(input_ids=ids, labels=labels[row : row + 1, :length]).loss * masks)
    return torch.stack(losses).sum() / (labels != -100).sum()


def make_labels(batch: RowBatch) -> Tensor:
    """Return the labels of all positions.

    At positions that are not masked the label is -100, which is ignored.
    """
    labels = torch.full(batch.input_ids.shape, -100)
    rows, slots = batch.masked_lm_weights.nonzero(as_tuple=True)
    labels[rows, batch.masked_lm_positions[rows, slots].long()] = batch.masked_lm_ids[rows, slots].long()
    return labels


def compare_operations(batch: Batch, shape: ModernBertConfig) -> tuple[float, float, float]:
    """Compare the operations that PyTorch counts with the operations needed for the tokens alone.

    Three ratios are returned: for the forward pass, for both passes, and for both passes if the attention
    scores count as needed a second time. A fused backward pass computes these scores again.
    """
    model = BertForMaskedLM(shape)
    model.bert.attention = counting.host_attention
    with FlopCounterMode(display=False) as counter:
        loss = MaskedWords().outcome(model, batch).loss
        forward = counter.get_total_flops()
        loss.backward()  # type: ignore[no-untyped-call]
    of_tokens, both = count_operations([batch], shape).operations, counter.get_total_flops()
    return (
        PASSES * forward / of_tokens,
        both / of_tokens,
        both / (of_tokens + count_score_operations(batch, shape)),
    )


def count_score_operations(batch: Batch, shape: ModernBertConfig) -> int:
    """Return the number of operations that compute the attention scores once in each layer.

    They are the products of queries and keys.
    """
    lengths = batch.lengths()
    reaches = (None if shape.is_global(layer) else shape.reach for layer in range(shape.num_hidden_layers))
    return (
        2
        * shape.hidden_size
        * sum(count_seen_pairs(lengths, reach or int(lengths.max())) for reach in reaches)
    )


def main() -> None:
    """Print the table of times and the table of operations."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as place:
        data = open_dataset(make_data(Path(place)))
        steps: dict[str, Callable[..., object]] = {
            "ours": make_our_step(data),
            "transformers, padded": make_their_step(compute_padded_loss, sparse=False),
            "transformers, padded, head on masks": make_their_step(compute_padded_loss, sparse=True),
            "transformers, each alone": make_their_step(compute_loss_one_by_one, sparse=False),
            "transformers, each alone, head on masks": make_their_step(compute_loss_one_by_one, sparse=True),
        }
        flat = Loader(Rows(data), form=make_form(Rows(data), batch_size=BATCH), batch_size=BATCH)
        rows = Loader(Rows(data), form=RowForm(), batch_size=BATCH)
        least, tokens, slots = dict.fromkeys(steps, float("inf")), 0, 0
        shares: dict[str, list[tuple[float, float, float]]] = {name: [] for name in WIDTHS}
        for _ in range(ROUNDS):
            pair = next(flat).batches[0], next(rows).batches[0]
            tokens += int(pair[0].lengths().sum())
            slots += pair[0].input_ids.numel()
            for name, shape in WIDTHS.items():
                shares[name].append(compare_operations(pair[0], shape))
            for name, step in steps.items():
                spent = measure_cpu_seconds(step, pair[name != "ours"])
                least[name] = min(least[name], spent)
        flat.close()
        rows.close()
    fill = tokens / (ROUNDS * BATCH * LENGTH)
    print(f"training steps of {BATCH} blocks of at most {LENGTH:,} ids (fill {fill:.2f}),")
    print("ModernBERT of 7 layers, hidden 256, vocabulary 30522, one thread, fp32:")
    for name, cpu in least.items():
        print(f"  {name:<40} {cpu:5.2f} s a step; ours is {cpu / least['ours']:4.2f} times as fast")
    print(f"  padding in flat batches: {1 - tokens / slots:.1%}; operations over those of the tokens:")
    for name, found in shares.items():
        forward, both, alike = max(found)
        print(
            f"    {name}: forward {forward:.3f}; both passes, where only the tokens' count has scores once,"
        )
        print(f"    {both:.3f}, and where both have them twice, {alike:.3f}")


def make_data(place: Path) -> str:
    """Make a dataset whose examples are blocks of documents, and return its directory."""
    part, shards = place / "part", str(place / "shards")
    part.write_bytes(corpus.make_long_text(PART_BYTES)[:PART_BYTES].rpartition(b"\n\n")[0] + b"\n")
    words = ["--vocab", str(corpus.find_vocabulary()), "--objective", "mlm", "--blocks", "complete_doc"]
    sizes = ["--max-seq-length", str(LENGTH), "--max-predictions-per-seq", str(MASKS)]
    command = [sys.executable, "-m", "bertdata", "create", str(part), "--output", shards]
    measure.measure_command(*command, *words, *sizes, "--masked-lm-prob", "0.3", "--dupe-factor", "1")
    return shards


if __name__ == "__main__":
    main()
