"""BERT-Large on one GPU: tokens a second and share of the limit, for each option, as Markdown.

``python -m benchmarks.gpu [--only NAME,...] [--batch-sizes N N] [--updates N] [--tflops N]``. The updates are
the trainer's own, in bf16, with dropout, on generated examples whose lengths are distributed like those of
real datasets: fill 0.9 in phase 1, 0.5 in phase 2. Tokens and operations are counted for real tokens only,
never for padding, so that rows and flat batches compare. Each option runs in a process of its own.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

from bertdata.errors import BertDataError
from bertdata.records import ShardLayout
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatBatch
from trainer.data.generated import generated_data
from trainer.data.loader import Loader
from trainer.devices.registry import find_device
from trainer.run.checkpoint import new_state
from trainer.run.runtime import begin, find_model_config, make_model
from trainer.run.training import Training

PHASES: dict[str, dict[str, Any]] = {
    "phase 1": {"max_seq_length": 128, "max_predictions_per_seq": 20, "batch_size": 256, "fill": 0.9},
    "phase 2": {"max_seq_length": 512, "max_predictions_per_seq": 80, "batch_size": 64, "fill": 0.5},
}
"""Sizes of both phases; fill: tokens over those of full sequences."""

TFLOPS = 989.0
"""Dense bf16 operations a second of an H100 or H200, in 10^12."""

LARGE = {
    "vocab_size": 30522,
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}
CUDNN = {"device_options": {"attention": "cudnn"}, "attention_probs_dropout_prob": 0.125}
"""cuDNN refuses dropout that is not a multiple of 1/16, and so BERT's 0.1."""

OPTIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "compile": {"compile": True},
    "cuda_graphs": {"device_options": {"cuda_graphs": True}},
    "compile + attention efficient": {"compile": True, "device_options": {"attention": "efficient"}},
    "compile + attention cudnn (dropout 1/8)": {"compile": True, **CUDNN},
    "attention efficient": {"device_options": {"attention": "efficient"}},
    "attention math": {"device_options": {"attention": "math"}},
    "rows": {"rows": True},
    "rows + compile": {"rows": True, "compile": True},
    "deterministic": {"deterministic": True},
    "fp16": {"precision": "fp16"},
    "fp32 (TF32)": {"precision": "fp32"},
}
WARM_UP = 5


def measure(settings: dict[str, Any], updates: int) -> dict[str, Any]:
    """Speed over so many updates, fill of the batches, peak memory in GiB, the device's description."""
    given = dict(settings)
    fill = given.pop("fill", 1.0)  # not a key of the trainer
    config = Config.of(generated_data=True, optimiser="lamb-nvidia", **given)
    runtime = begin(config)
    layout = ShardLayout(
        max_seq_length=config.data.max_seq_length or 128,
        max_predictions_per_seq=config.data.max_predictions_per_seq or 20,
    )
    data = generated_data(layout, vocabulary_size=config.model.settings()["vocab_size"], fill=fill)
    shape = find_model_config(config, data)
    training = Training(runtime, make_model(runtime, shape), new_state(config, shape, data.digest))
    size = config.update.batch_size or 32
    loader = Loader(
        data,
        form=runtime.form(data, size, 1),
        batch_size=size,
        seed=config.data.seed,
        prepare=runtime.device.prepare,
    )
    try:
        drawn = [next(loader) for _ in range(WARM_UP + updates)]
    finally:
        loader.close()
    # Each token budget is compiled at its first update, so every one has an update before the clock starts.
    first_of_shape = {update.batches[0].input_ids.shape: update for update in drawn}
    for update in [*first_of_shape.values(), *drawn[:WARM_UP]]:
        training.update([update])
        training.advance(update.position, size)
    _wait()
    start = time.perf_counter()
    for update in drawn[WARM_UP:]:
        training.update([update])
        training.advance(update.position, size)
    _wait()
    seconds = time.perf_counter() - start
    batches = [batch for update in drawn[WARM_UP:] for batch in update.batches]
    memory = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
    lengths = [length for batch in batches for length in lengths_of(batch)]
    return {
        "sequences": len(lengths) / seconds,
        "tokens": sum(lengths) / seconds,
        "operations": sum(operations_of(batch, shape) for batch in batches) / seconds,
        "fill": sum(lengths) / (len(lengths) * layout.max_seq_length),
        "fed": sum(lengths) / sum(batch.input_ids.numel() for batch in batches),
        "memory": memory,
        "device": runtime.device.describe(),
    }


def lengths_of(batch: Batch) -> list[int]:
    """The tokens of each sequence."""
    if isinstance(batch, FlatBatch):
        return [int(length) for length in batch.ends.diff()[: len(batch)]]
    return [int(length) for length in batch.attention_mask.sum(1)]


def operations_of(batch: Batch, shape: ModelConfig) -> float:
    """Floating-point operations of the matrix products for real tokens and masks, forward and backward."""
    lengths = lengths_of(batch)
    masks = int(batch.masked_lm_weights.sum())
    return 3.0 * forward_operations(lengths, masks, shape)


def forward_operations(lengths: Sequence[int], masks: int, shape: ModelConfig) -> int:
    """Operations of one forward pass: two for each multiplication with an addition."""
    width, inner = shape.hidden_size, shape.intermediate_size
    tokens = sum(lengths)
    layer = tokens * (4 * width * width + 2 * width * inner)
    attention = 2 * width * sum(length * length for length in lengths)
    heads = masks * width * (width + shape.vocab_size) + len(lengths) * width * (width + 2)
    return 2 * (shape.num_hidden_layers * (layer + attention) + heads)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def row(option: str, found: dict[str, dict[str, Any]], tflops: float) -> str:
    """A row of the table: speed, fill, share of the limit and memory of each phase, or its error."""
    cells = [option]
    for result in found.values():
        if "error" in result:
            cells += [str(result["error"]), "", "", "", "", ""]
        else:
            share = result["operations"] / (tflops * 1e12)
            cells += [f"{result['sequences']:,.0f}", f"{result['tokens']:,.0f}"]
            cells += [f"{result['fill']:.2f}", f"{result['fed']:.2f}"]
            cells += [f"{result['operations'] / 1e12:.0f} ({share:.0%})", f"{result['memory']:.0f} GiB"]
    return f"| {' | '.join(cells)} |"


def head(phases: dict[str, dict[str, Any]]) -> str:
    """The first two lines of the table."""
    titles = ["option"]
    for name, settings in phases.items():
        titles += [f"{name}: sequences/s at batch {settings['batch_size']}", "tokens/s", "fill"]
        titles += ["real share of the tokens fed", "TFLOP/s (of the limit)", "memory"]
    return f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"


def in_a_process(settings: dict[str, Any], updates: int) -> dict[str, Any]:
    """The result of ``measure`` in a process of its own; "error" and the reason where it failed."""
    given = json.dumps({"settings": settings, "updates": updates})
    command = [sys.executable, "-m", "benchmarks.gpu", "--measure", given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    if done.returncode == 0:
        result: dict[str, Any] = json.loads(lines[-1])
        return result
    return {"error": lines[-1].replace("|", "/")[:120] if lines else f"exit status {done.returncode}"}


def table(
    base: dict[str, Any], phases: dict[str, dict[str, Any]], options: list[str], updates: int, tflops: float
) -> None:
    """Measure and print the table, row by row."""
    print(head(phases), flush=True)
    for option in options:
        found = {
            name: in_a_process(base | phase | OPTIONS[option], updates) for name, phase in phases.items()
        }
        print(row(option, found, tflops), flush=True)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--only", default=",".join(OPTIONS), help="options to measure, separated by commas")
    sizes = [phase["batch_size"] for phase in PHASES.values()]
    parser.add_argument("--batch-sizes", type=int, nargs=2, default=sizes, help="of phase 1 and 2")
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--tflops", type=float, default=TFLOPS, help="the GPU's dense bf16 limit")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    try:
        if given.measure:
            print(json.dumps(measure(**json.loads(given.measure))))
            return 0
        print(find_device(Config.of(device="cuda")).describe(), end="\n\n")
    except BertDataError as error:
        print(f"benchmarks.gpu: {error}", file=sys.stderr)
        return error.exit_status
    phases = {
        name: phase | {"batch_size": size}
        for (name, phase), size in zip(PHASES.items(), given.batch_sizes, strict=True)
    }
    base = {"device": "cuda", "precision": "bf16", **LARGE}
    table(base, phases, given.only.split(","), given.updates, given.tflops)
    return 0


if __name__ == "__main__":
    sys.exit(main())
