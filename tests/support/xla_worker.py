"""A short run on torch_xla or its stand-in. Usage: ``xla_worker.py DATASET PLACE [ARGUMENTS]``.

The run makes two updates, an evaluation and a checkpoint. A second start continues for two updates. The
stand-in's record also contains what PyTorch is asked to do. XLA_BREAK is the name of a device method to leave
out. With the real torch_xla, the last printed line is JSON: the number of graphs compiled so far, after each
update.
"""

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

sys.path.append(str(Path(__file__).parent / "stand_ins"))  # recording; a real torch_xla comes before
sys.path.append(str(Path(__file__).parent))

from recording import call, mark

from trainer.__main__ import main
from trainer.devices.xla import Xla
from trainer.model.headed import BertForPreTraining
from trainer.run.evaluation import Evaluation
from trainer.run.training_state import Training

TINY = ("--num-hidden-layers=1", "--hidden-size=32", "--num-attention-heads=2", "--intermediate-size=64")
RUN = ("--batch-size=4", "--accumulation=2", "--warmup=1", "--log-every=1", "--no-progress-bar")
compiled: list[int] = []


def before(kind: type, name: str, note: Callable[..., None]) -> None:
    """Replace the method by one that first calls ``note``."""
    method = getattr(kind, name)

    def noted(self: Any, *values: Any, **options: Any) -> Any:
        note(self, *values)
        return method(self, *values, **options)

    setattr(kind, name, noted)


def count_graphs(update: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the update function to note the number of compiled graphs after each update."""

    def counted(self: Training, *values: Any) -> Any:
        losses = update(self, *values)
        metrics = import_module("torch_xla.debug.metrics")
        compiled.append((metrics.metric_data("CompileTime") or [0])[0])
        return losses

    return counted


def record_torch() -> None:
    """Record PyTorch's operations among the device's calls."""
    before(Training, "update", lambda self, _: mark(f"update {self.state.step + 1}"))
    before(Evaluation, "measure", lambda self, _: mark("evaluation"))
    before(Training, "save", lambda self, *_: mark("checkpoint"))
    before(BertForPreTraining, "forward", lambda self, _: call("forward", training=self.training))
    before(torch.Tensor, "backward", lambda self: call("backward"))

    def stepped(optimiser: torch.optim.Optimizer, *_: Any) -> None:
        call("optimiser.step", lr=optimiser.param_groups[0]["lr"])

    register_optimizer_step_post_hook(stepped)


def start(dataset: str, place: str, *more: str) -> None:
    data = (f"--train-data={dataset}", f"--eval-data={dataset}", "--eval-examples=4", f"--output-dir={place}")
    status = main(["pretrain", "--device=xla", *TINY, *RUN, *data, "--eval-every=2", "--steps=4", *more])
    if status:
        sys.exit(status)


if __name__ == "__main__":
    dataset, place, *more = sys.argv[1:]
    if left_out := os.environ.get("XLA_BREAK"):
        setattr(Xla, left_out, lambda self, *_: None)
    if "BERTDATA_STAND_IN_RECORD" in os.environ:
        record_torch()
    else:
        Training.update = count_graphs(Training.update)  # type: ignore[method-assign]
    mark("init")
    start(dataset, place, "--steps-this-run=2", "--executable-cache-dir=cache", *more)
    mark("resume")
    start(dataset, place, "--resume", *more)
    print(json.dumps(compiled))
