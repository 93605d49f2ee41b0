"""When gradients are averaged over the workers: during the last backward pass of an update, or after it."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from trainer.config.settings import Config
from trainer.update.averaging import WorkerAverages, find_sum_dtype


class Exchanges:
    """Two workers, of which the other has no gradients. Notes what is averaged."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def average(self, tensors: Iterable[Tensor], dtype: torch.dtype | None = None) -> None:
        self.made.append("all at once")
        for tensor in tensors:
            tensor /= 2

    def start_average(self, flat: Tensor, name: str, dtype: torch.dtype | None = None) -> Callable[[], None]:
        self.made.append(name)

        def finish() -> None:
            flat.div_(2)

        return finish


CASES = {
    "usually": ({}, False, ["bucket.0"]),
    "the device ends updates": ({}, True, ["all at once"]),
    "clipped micro-batches": ({"clipping": "per_micro_batch"}, False, ["all at once"]),
    "averaged micro-batches": ({"allreduce_post_accumulation": False}, False, []),
}
"""Settings, whether the device ends updates itself, and the exchanges of an update."""


@pytest.mark.parametrize(("settings", "ends_updates", "wanted"), CASES.values(), ids=CASES)
def test_each_gradient_is_averaged_once(settings, ends_updates, wanted):
    model, exchanges = nn.Linear(3, 2, bias=False), Exchanges()
    worker = SimpleNamespace(
        config=Config.of(**{"optimiser": "adamw", "clipping": "per_update", **settings}),
        collective=exchanges,
        device=SimpleNamespace(ends_updates=ends_updates, bucket_mb=1),
    )
    averages = WorkerAverages(worker, list(model.parameters()))
    for _ in range(2):  # updates
        exchanges.made.clear()
        model.zero_grad()
        averages.begin()
        with averages.last_backward():
            model(torch.ones(1, 3)).sum().backward()
        averages.finish([model.weight.grad])
        assert exchanges.made == wanted
        # MicroBatchSums has averaged the micro-batches if nothing is exchanged here
        assert torch.equal(model.weight.grad, torch.full((2, 3), 0.5 if wanted else 1.0))


@pytest.mark.parametrize(
    ("precision", "wanted"), [("fp32", torch.float16), ("fp16", torch.float16), ("bf16", torch.bfloat16)]
)
def test_gradients_are_summed_in_16_bits_if_asked_for(precision, wanted):
    assert find_sum_dtype(Config.of(precision=precision)) is None
    assert find_sum_dtype(Config.of(precision=precision, allreduce_post_accumulation_fp16=True)) == wanted
