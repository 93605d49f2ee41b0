"""Program of one worker in test_collectives.py. Usage: ``collective_worker.py TASK DIRECTORY [PATIENCE]``."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from trainer.config.settings import Config
from trainer.devices.opening import find_device
from trainer.errors import TrainerError
from trainer.update.averaging import GradientBuckets, average_weights
from trainer.workers import heartbeat
from trainer.workers.choice import find_collective
from trainer.workers.collective import Collective

MEGABYTES = 1
"""Size of a bucket (gradients averaged together). The model of ``buckets`` fills two buckets."""


def operations(collective: Collective, place: Path) -> None:
    """Write the result of every collective operation as JSON."""
    rank = collective.rank
    weights = [torch.full((3, 2), float(rank)), torch.tensor(rank + 7)]
    weights.append(torch.ones(2) if rank else torch.tensor([-0.0, 2.0**-149]))
    weights.append(torch.arange(6.0).reshape(2, 3).t() + rank)  # not contiguous in memory
    collective.broadcast(weights)
    generator = torch.Generator().manual_seed(rank)
    gradients = [torch.randn(shape, generator=generator) for shape in ((300, 7), (), (5,), (0,), (2, 3))]
    gradients.append(torch.full((2,), 40000.0))  # twice this value overflows 16 bits
    averages = {}
    for name, dtype in {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}.items():
        averaged = [gradient.clone() for gradient in gradients]
        collective.average(averaged, dtype)
        averages[name] = [tensor.tolist() for tensor in averaged]
    layer = torch.nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.fill_(rank)
        layer.bias.fill_(rank)
    layer.bias.requires_grad_(False)
    os.environ["FORCE_WEIGHT_SYNC"] = "true"
    average_weights(collective.average, layer.parameters())
    collective.barrier()
    result = {
        "name": collective.name,
        "local_rank": collective.local_rank,
        "size": collective.size,
        "broadcast": [tensor.tolist() for tensor in weights],
        "object": collective.broadcast_object({"rank": rank, "word": "wörd"}),
        "gradients": [tensor.tolist() for tensor in gradients],
        "averages": averages,
        "gathered": collective.gather(["x" * rank * 10, rank, None, rank + 0.1, 1e300]),
        "synchronised": [layer.weight.tolist(), layer.bias.tolist()],
    }
    (place / f"{rank}.json").write_text(json.dumps(result), encoding="utf-8")


def buckets(collective: Collective, place: Path) -> None:
    """Compare gradients averaged during the backward pass with gradients averaged after it.

    Write the results by type.
    """
    equal = {}
    for name, dtype in {"fp32": None, "bf16": torch.bfloat16}.items():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(700, 300), torch.nn.Tanh(), torch.nn.Linear(300, 900))
        weights = list(model.parameters())
        inputs = torch.randn(8, 700, generator=torch.Generator().manual_seed(collective.rank))
        model(inputs).square().mean().backward()
        gradients = [weight.grad.clone() for weight in weights if weight.grad is not None]
        collective.average(gradients, dtype)
        averaging = GradientBuckets(weights, collective, MEGABYTES, dtype)
        averaging.reset()
        with averaging.averaging():
            model(inputs).square().mean().backward()
        pairs = zip(weights, gradients, strict=True)
        equal[name] = [torch.equal(weight.grad, gradient) for weight, gradient in pairs]
    (place / f"{collective.rank}.json").write_text(json.dumps(equal), encoding="utf-8")


def steps(collective: Collective, place: Path) -> None:
    """Average again and again until one worker is gone."""
    (place / f"{collective.rank}.ready").write_text(str(os.getpid()))
    signal.signal(
        signal.SIGTERM, lambda *_: None
    )  # as in the trainer, which only acts on it at the end of an update
    tensors = [torch.ones(1000)]
    for _ in range(10000):
        collective.average(tensors)
        collective.gather([0.0])
        time.sleep(0.01)


def stuck(collective: Collective, place: Path) -> None:
    """Hang in a way that no communication library can notice.

    A child process keeps the inherited files open.
    """
    if os.fork() == 0:
        for descriptor in (1, 2):  # the test waits until these are closed
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        time.sleep(40)
        os._exit(0)
    (place / f"{collective.rank}.ready").write_text(str(os.getpid()))
    signal.signal(signal.SIGTERM, lambda *_: None)
    while True:
        time.sleep(1)


Task = Callable[[Collective, Path], None]
TASKS: dict[str, Task] = {
    "operations": operations,
    "buckets": buckets,
    "steps": steps,
    "stuck": stuck,
}


def main(task: Task, place: str, patience: str = "60") -> int:
    """Run the task. Returns the exit status that the trainer would have."""
    try:
        heartbeat.TIMEOUT_SECONDS = float(patience)
        device = find_device(Config.of())
        device.bucket_mb = MEGABYTES
        collective = find_collective(None, device)
        task(collective, Path(place))
        collective.close()
    except TrainerError as error:
        sys.stderr.write(f"trainer: error: {error}\n")
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(TASKS[sys.argv[1]], *sys.argv[2:]))
