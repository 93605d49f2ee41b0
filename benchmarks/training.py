"""CPU time of a training step of BERT (128 ids, 20 masks) on one core, compared with transformers' model.

A step is forward, backward, clipping and a LAMB update, in fp32 with dropout. This project's step is the
trainer's, including its bookkeeping. transformers' BertForPreTraining uses the same optimiser and computes
the logits of the vocabulary at every position. In a third row of the table it computes them at masked
positions only, which shows how much of the difference is due to the logits. All three run alternately on the
same batches of a real shard. The least CPU time of each counts, because other work on the machine only adds
to it.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import transformers

from benchmarks import corpus, measure
from bertdata.dataset.reader import open_dataset
from trainer.checkpoints.checkpoint import State
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.loader import Loader, Update
from trainer.data.order import Position
from trainer.data.padded_rows import RowForm
from trainer.data.row_batches import RowBatch
from trainer.devices.clipping import clip_
from trainer.plugins import find
from trainer.run.runtime import make_model, open_runtime
from trainer.run.training_state import Training
from trainer.update.optimiser import group_parameters
from trainer.update.optimisers import build_optimiser

PART_BYTES = 500_000
BATCH = 32
ROUNDS = 5
FED_STEPS = 20
SHAPE = {
    "vocab_size": 30522,
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}
OPTIMISER = "lamb-nvidia"
Step = Callable[[RowBatch], object]


def make_our_step(batch_size: int = BATCH, compiled: bool = False) -> Callable[[Batch], object]:
    """Return a function that makes an update with this trainer.

    compiled: True to compile the model with torch.compile.
    """
    config = Config.of(optimiser=OPTIMISER, batch_size=batch_size, compile=compiled)
    runtime = open_runtime(config)
    shape = ModelConfig(**SHAPE)
    fresh = State(
        step=0, seed=1, open_files=1, optimiser=OPTIMISER, model=shape.as_json(), config=config.as_json()
    )
    training = Training(runtime, make_model(runtime, shape), fresh)
    return lambda batch: training.update([Update([batch], Position(0, 0))])


def make_their_step(masked_only: bool = False) -> Step:
    """Return a function that makes a step of transformers' model with this trainer's optimiser.

    masked_only: True to compute logits at masked positions only.
    """
    model = transformers.BertForPreTraining(transformers.BertConfig(**SHAPE)).train()
    preset = find("optimiser", OPTIMISER)
    optimiser = build_optimiser(preset, group_parameters(preset, model.named_parameters()))
    loss_of = _compute_masked_loss if masked_only else _compute_loss

    def step(batch: RowBatch) -> None:
        """Make a step on this batch."""
        loss_of(model, batch).backward()
        clip_([weight.grad for weight in model.parameters() if weight.grad is not None], 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return step


def _make_inputs(batch: RowBatch) -> dict[str, torch.Tensor]:
    """Return the batch under the names of the arguments of transformers' model."""
    names = ("input_ids", "token_type_ids", "attention_mask")
    return {name: getattr(batch, name).long() for name in names}


def _compute_loss(model: transformers.BertForPreTraining, batch: RowBatch) -> torch.Tensor:
    """Return the loss that transformers' model computes, with logits at every position."""
    labels = torch.full(batch.input_ids.shape, -100)
    rows, slots = batch.masked_lm_weights.nonzero(as_tuple=True)
    labels[rows, batch.masked_lm_positions[rows, slots].long()] = batch.masked_lm_ids[rows, slots].long()
    following = batch.next_sentence_labels.long()
    loss: torch.Tensor = model(**_make_inputs(batch), labels=labels, next_sentence_label=following).loss
    return loss


def _compute_masked_loss(model: transformers.BertForPreTraining, batch: RowBatch) -> torch.Tensor:
    """Return the loss with logits computed at masked positions only."""
    rows, slots = batch.masked_lm_weights.nonzero(as_tuple=True)
    hidden, pooled = model.bert(**_make_inputs(batch))[:2]
    words, pairs = model.cls(hidden[rows, batch.masked_lm_positions[rows, slots].long()], pooled)
    cross_entropy = torch.nn.functional.cross_entropy
    return cross_entropy(words, batch.masked_lm_ids[rows, slots].long()) + cross_entropy(
        pairs, batch.next_sentence_labels.long()
    )


def measure_cpu_seconds(step: Callable[..., object], batch: Batch) -> float:
    """Make a step and return its CPU seconds."""
    start = time.process_time()
    step(batch)
    return time.process_time() - start


def measure_loading(step: Callable[[Batch], object], directory: str) -> tuple[float, float]:
    """Make steps on batches from the loader.

    Returns the seconds that all steps took together, and for how many seconds of these they waited for
    batches.
    """
    data = open_dataset(directory)
    loader = Loader(Rows(data), form=make_form(Rows(data), batch_size=BATCH), batch_size=BATCH)
    start = time.perf_counter()
    for _ in range(FED_STEPS):
        step(next(loader).batches[0])
    seconds = time.perf_counter() - start
    loader.close()
    return seconds, loader.waited


def main() -> None:
    """Print the times of a step, and how long the steps wait for the loader."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    ends_updates = make_our_step()
    runners = {
        "transformers": make_their_step(),
        "transformers, head on masks": make_their_step(masked_only=True),
    }
    least = dict.fromkeys(("ours", *runners), float("inf"))
    with tempfile.TemporaryDirectory() as place:
        part, shards = Path(place, "part"), str(Path(place, "shards"))
        part.write_bytes(corpus.make_long_text(PART_BYTES)[:PART_BYTES].rpartition(b"\n\n")[0] + b"\n")
        words = ["--vocab", str(corpus.find_vocabulary()), "--recipe", "nvidia", "--phase", "1"]
        measure.measure_command(
            sys.executable, "-m", "bertdata", "create", str(part), "--output", shards, *words
        )
        data = open_dataset(shards)
        flat_form = make_form(Rows(data), batch_size=BATCH)
        flat_loader = Loader(Rows(data), form=flat_form, batch_size=BATCH)
        row_loader = Loader(Rows(data), form=RowForm(), batch_size=BATCH)
        for _ in range(ROUNDS):  # These are the same examples, as flat batches and as padded rows.
            flat, rows = next(flat_loader).batches[0], next(row_loader).batches[0]
            least["ours"] = min(least["ours"], measure_cpu_seconds(ends_updates, flat))
            for name, step in runners.items():
                least[name] = min(least[name], measure_cpu_seconds(step, rows))
        flat_loader.close()
        row_loader.close()
        seconds, waited = measure_loading(ends_updates, shards)
    print(f"training steps of {BATCH} examples, hidden 256, 4 layers, vocabulary 30522, one thread, fp32:")
    for name, cpu in least.items():
        print(f"  {name:<28} {BATCH / cpu:6.1f} sequences a CPU second, {cpu:5.2f} s a step; "
              f"ours is {cpu / least['ours']:4.2f} times as fast")  # fmt: skip
    print(f"  wanted of ours over transformers: 1.3; {FED_STEPS} steps fed by the loader: {seconds:.1f} s, "
          f"{waited * 1e3:.2f} ms of them waiting for data (wanted: never)")  # fmt: skip


if __name__ == "__main__":
    main()
