"""BERT-Large on one GPU: sequences a second and share of the limit, for each option, as Markdown.

``python -m benchmarks.gpu [--only NAME,...] [--batch-sizes N N] [--updates N] [--tflops N]``. The updates are
the trainer's own, in bf16, with dropout, on generated examples. These have no padding; in the rows that say
so, every tenth example is half as long, and padding is removed and restored. Each option runs in a process of
its own. Fixed shapes need an attention mask, which PyTorch's flash attention does not accept.
"""

import argparse
import json
import subprocess
import sys
import time
from typing import Any

import torch

from bertdata.errors import BertDataError
from trainer.config.settings import Config
from trainer.data.batches import RowBatch
from trainer.data.forms import RowForm
from trainer.data.loader import Loader
from trainer.data.opening import open_configured
from trainer.devices.registry import find_device
from trainer.run.checkpoint import new_state
from trainer.run.runtime import begin, find_model_config, make_model
from trainer.run.training import Training

PHASES = {
    "phase 1": {"max_seq_length": 128, "max_predictions_per_seq": 20, "batch_size": 256},
    "phase 2": {"max_seq_length": 512, "max_predictions_per_seq": 80, "batch_size": 64},
}
GFLOP = {"phase 1": 240.6, "phase 2": 1020.5}
"""Work of one sequence, forward and backward, with the head on masked positions only."""

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
    "as it is (some padding)": {"padded": True},
    "compile": {"compile": True},
    "cuda_graphs": {"device_options": {"cuda_graphs": True}},
    "compile + attention efficient": {"compile": True, "device_options": {"attention": "efficient"}},
    "compile + attention cudnn (dropout 1/8)": {"compile": True, **CUDNN},
    "attention flash": {"device_options": {"attention": "flash"}},
    "attention flash (some padding)": {"padded": True, "device_options": {"attention": "flash"}},
    "attention efficient": {"device_options": {"attention": "efficient"}},
    "attention cudnn (dropout 1/8)": CUDNN,
    "attention math": {"device_options": {"attention": "math"}},
    "deterministic": {"deterministic": True},
    "fp16": {"precision": "fp16"},
    "fp32 (TF32)": {"precision": "fp32"},
}
WARM_UP = 5


def measure(settings: dict[str, Any], updates: int) -> dict[str, Any]:
    """Sequences a second over so many updates, peak memory in GiB, and the device's description."""
    padded = settings.get("padded", False)  # not a key of the trainer
    given = {name: value for name, value in settings.items() if name != "padded"}
    config = Config.of(generated_data=True, optimiser="lamb-nvidia", **given)
    runtime = begin(config)
    data = open_configured(config, None)
    shape = find_model_config(config, data)
    training = Training(runtime, make_model(runtime, shape), new_state(config, shape, data.digest))
    ready = runtime.device.prepare
    prepare = (lambda batch: ready(shorten(batch))) if padded else ready
    loader = Loader(
        data, form=RowForm(), batch_size=config.update.batch_size, seed=config.data.seed, prepare=prepare
    )
    try:
        for number in range(WARM_UP + updates):
            if number == WARM_UP:
                _wait()
                start = time.perf_counter()
            update = next(loader)
            training.update([update])
            training.advance(update.position, config.update.batch_size)
        _wait()
        seconds = time.perf_counter() - start
    finally:
        loader.close()
    memory = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
    return {
        "speed": updates * config.update.batch_size / seconds,
        "memory": memory,
        "device": runtime.device.describe(),
    }


def shorten(batch: RowBatch) -> RowBatch:
    """Make every tenth example of the batch half as long, its masks included."""
    half = batch.attention_mask.shape[1] // 2
    batch.attention_mask[::10, half:] = 0
    batch.masked_lm_positions[::10] %= half
    return batch


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def row(option: str, found: dict[str, dict[str, Any]], tflops: float) -> str:
    """A row of the table: speed, share of the limit and memory of each phase, or its error."""
    cells = [option]
    for phase, result in found.items():
        if "error" in result:
            cells += [str(result["error"]), "", ""]
        else:
            share = result["speed"] * GFLOP[phase] / (tflops * 1e3)
            cells += [f"{result['speed']:.0f}", f"{share:.0%}", f"{result['memory']:.0f} GiB"]
    return f"| {' | '.join(cells)} |"


def head(phases: dict[str, dict[str, Any]]) -> str:
    """The first two lines of the table."""
    titles = ["option"]
    for name, settings in phases.items():
        titles += [f"{name}: sequences/s at batch {settings['batch_size']}", "of the limit", "memory"]
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
