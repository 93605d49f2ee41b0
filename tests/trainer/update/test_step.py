"""The end of an update: clipping, the optimiser's step, skipped updates."""

import math

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.operations import Operations
from tests.support.optimisers import OPTIMISERS_OF_RECIPES, make_optimiser
from trainer.config.settings import Config
from trainer.devices.clipping import clip_
from trainer.devices.cpu import Cpu
from trainer.devices.device import Device
from trainer.devices.stepping_device import SteppingDevice
from trainer.errors import NotFiniteError
from trainer.update.make_step import make_optimiser_step
from trainer.update.skipping import MOST_SKIPPED_IN_A_ROW

SHAPES = {
    "layer.weight": (4, 5),
    "layer.bias": (5,),
    "LayerNorm.weight": (5,),
    "other.weight": (3, 3),
}
OPTIMISERS = (
    *("lamb-nvidia", "lamb-nvlamb", "lamb-graphcore", "adamw-bert", "adamw", "momentum", "sgd"),
    *OPTIMISERS_OF_RECIPES,
)
WAITS = {"nonzero", "_local_scalar_dense", "is_nonzero", "equal", "masked_select", "_to_cpu"}
"""Operations that return only when the device has done everything before them."""


class Plain(Cpu):
    """A processor that runs the plain operations one by one."""

    fused_step = False


class Meta(Device):
    """PyTorch's meta device, whose tensors have no values: to read one is an error."""

    name = "meta"
    process_group = "gloo"


class Recording(SteppingDevice):
    """A device that records operations and has no fused kernels. Here they run on the processor at once."""

    name = "cpu"
    process_group = "gloo"

    def after_backward(self) -> None:
        """Nothing is recorded."""


class Fixture:
    """Some weights and the step that changes them."""

    def __init__(self, kind: type[Device] = Cpu, **settings: object) -> None:
        config = Config.of(**{"optimiser": "lamb-nvidia", **settings})
        device = kind(config)
        draw = torch.Generator().manual_seed(0)
        self.weights = {
            name: torch.nn.Parameter(torch.randn(shape, generator=draw).to(device.torch_device))
            for name, shape in SHAPES.items()
        }
        self.step = make_optimiser_step(config, device, self.weights.items())
        self.optimiser, self.scale = self.step.optimiser, self.step.scale
        self.number = 0

    def gradients(self) -> list[Tensor]:
        """Random gradients of the next update, not scaled."""
        draw = torch.Generator().manual_seed(self.number)
        return [torch.randn(shape, generator=draw) for shape in SHAPES.values()]

    def take(self, *, rate: float = 0.01, bad: float | None = None) -> None:
        """One update, one of whose gradients may be bad in one element."""
        for weight, gradient in zip(self.weights.values(), self.gradients(), strict=True):
            weight.grad = self.scale.scale(gradient)
        if bad is not None:
            next(iter(self.weights.values())).grad[0, 1] = bad
        self.number += 1
        self.step.take([weight.grad for weight in self.weights.values()], rate, self.number)

    def bits(self) -> list[list[int]]:
        """All bits of weights and moments; -0.0 and 0.0 differ."""
        moments = [moment for state in self.optimiser.state.values() for moment in state.values()]
        tensors = [*self.weights.values(), *moments]
        return [tensor.detach().view(torch.int32).flatten().tolist() for tensor in tensors]


# Arithmetic


@pytest.mark.parametrize("kind", [Cpu, Plain])
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_a_step_clips_once_and_changes_the_weights_as_the_optimiser_does(kind, optimiser):
    made = Fixture(kind, optimiser=optimiser, clipping="per_update", max_grad_norm=0.5)
    plain = Fixture(optimiser=optimiser)
    alone = make_optimiser(optimiser, plain.weights.items())
    for rate in (0.01, 0.02, 0.0):
        gradients = made.gradients()
        made.take(rate=rate)
        clip_(gradients, 0.5)
        for weight, gradient in zip(plain.weights.values(), gradients, strict=True):
            weight.grad = gradient
        for group in alone.param_groups:
            group["lr"] = rate
        alone.step()
    for name, weight in plain.weights.items():
        torch.testing.assert_close(made.weights[name], weight, rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.parametrize("kind", [Cpu, Plain])
def test_the_loss_scale_changes_no_bit_of_an_update(kind):
    scaled = Fixture(kind, precision="fp16", clipping="per_update")
    plain = Fixture(kind, precision="bf16", clipping="per_update")
    for made in (scaled, plain):
        for _ in range(3):
            made.take()
    assert scaled.scale.value == 65536
    assert scaled.bits() == plain.bits()


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_plain_operations_and_fused_kernels_end_at_the_same_weights(optimiser):
    runs = [Fixture(kind, optimiser=optimiser) for kind in (Cpu, Plain)]
    for made in runs:
        for number in range(4):
            made.take(rate=0.01 * (number + 1))
    for name in SHAPES:
        one, other = (made.weights[name] for made in runs)
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6, msg=name)


# Skipped updates


@pytest.mark.parametrize("kind", [Cpu, Plain])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_a_gradient_that_is_not_finite_leaves_every_bit(optimiser, precision, kind):
    made = Fixture(kind, optimiser=optimiser, precision=precision)
    with torch.no_grad():
        made.weights["layer.weight"][0, 0] = -0.0
        made.weights["layer.bias"].fill_(-0.0)
    for bad in (math.nan, None, math.inf, -math.inf):
        before = made.bits()
        made.take(bad=bad)
        after = made.bits()
        if bad is None:
            assert all(one != other for one, other in zip(before, after, strict=True))
        else:
            assert after[: len(before)] == before
            assert not any(map(any, after[len(before) :]))  # moments that did not exist are zeros
    assert made.step.applied == 1
    assert made.step.read_skipped() == 3


@pytest.mark.parametrize("kind", [Cpu, Plain])
def test_updates_after_a_skipped_one_are_those_of_a_run_without_it(kind):
    with_it, without = (Fixture(kind, precision="bf16") for _ in range(2))
    with_it.take()
    with_it.take(bad=math.inf)
    without.take()
    without.number += 1
    for made in (with_it, without):
        made.take(rate=0.02)
    assert with_it.bits() == without.bits()
    assert with_it.step.applied == without.step.applied == 2


def test_skipped_updates_are_told_once():
    made = Fixture(precision="fp16", init_loss_scale=1024.0)
    for skipped, scale in [(2, 256), (1, 128), (0, 128), (3, 16)]:
        for bad in [math.inf] * skipped + [None]:
            made.take(bad=bad)
        told = f"{skipped} of the last 5 updates skipped: a gradient was not finite"
        wanted = f"{told}; the loss scale is now {scale}" if skipped else ""
        assert made.step.describe_skipped(5) == wanted
    assert made.step.read_skipped() == 6


def test_in_fp32_nothing_is_skipped():
    made = Fixture()
    made.take(bad=math.nan)
    assert made.step.applied == 1
    assert made.step.describe_skipped(1) == ""
    assert not all(weight.isfinite().all() for weight in made.weights.values())


def test_the_loss_scale_is_halved_by_each_skipped_update():
    made = Fixture(precision="fp16", init_loss_scale=1024.0)
    for bad in (math.inf, None, math.nan):
        made.take(bad=bad)
    assert made.scale.state_dict() == {"value": 256.0, "good": 0}
    made.take()
    assert made.scale.state_dict() == {"value": 256.0, "good": 1}


@pytest.mark.parametrize("kind", [Cpu, Plain])
def test_the_error_names_the_first_update_with_an_overflow_at_the_least_scale(kind):
    made = Fixture(kind, precision="fp16", init_loss_scale=4.0, min_loss_scale=2.0)
    made.number = 10
    made.take(bad=math.inf)
    assert made.step.read_skipped() == 1
    made.take()
    made.take(bad=math.nan)
    made.take(bad=math.inf)
    message = "update 13: the gradients' norm is nan at loss scale 2, the least allowed; the training has"
    with pytest.raises(NotFiniteError, match=message):
        made.step.read_skipped()


def test_without_a_loss_scale_many_skipped_updates_in_a_row_are_an_error():
    made = Fixture(precision="bf16")
    for _ in range(2):
        for _ in range(MOST_SKIPPED_IN_A_ROW - 1):
            made.take(bad=math.inf)
        made.take()
    assert made.step.read_skipped() == 2 * (MOST_SKIPPED_IN_A_ROW - 1)
    for _ in range(MOST_SKIPPED_IN_A_ROW):
        made.take(bad=math.inf)
    message = (
        f"update {3 * MOST_SKIPPED_IN_A_ROW}: the gradients' norm is inf, as in the 19 updates before; the"
    )
    with pytest.raises(NotFiniteError, match=message):
        made.step.read_skipped()


def test_the_count_of_applied_updates_continues_where_a_checkpoint_left_it():
    made = Fixture(precision="bf16")
    made.step.applied = 7
    made.take()
    made.take(bad=math.inf)
    assert made.step.applied == 8


# The host never waits


@pytest.mark.parametrize("kind", [Cpu, Plain, Meta])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("optimiser", ["lamb-nvidia", "adamw-bert", "momentum"])
def test_a_step_reads_no_value(kind, precision, optimiser):
    made = Fixture(kind, precision=precision, optimiser=optimiser, clipping="per_update")
    gradients = [torch.ones_like(weight) for weight in made.weights.values()]
    for weight, gradient in zip(made.weights.values(), gradients, strict=True):
        weight.grad = gradient
    with Operations() as seen:
        for number in (1, 2):
            made.step.take(gradients, 0.01, number)
    assert seen.counts
    assert not WAITS & set(seen.counts)
    assert seen.copies == 0


@pytest.mark.parametrize("optimiser", ["adamw", "sgd", "lamb-nvidia"])
def test_a_device_without_fused_kernels_gets_plain_operations(optimiser):
    seen = {}
    for kind in (Cpu, Plain, Recording):
        made = Fixture(kind, optimiser=optimiser)
        with Operations() as counted:
            made.take()
        seen[kind] = any(name.startswith("_fused") for name in counted.counts)
    assert seen == {Cpu: True, Plain: False, Recording: False}


def test_no_list_of_scalars_reaches_an_operation_on_lists():
    """Such an operation runs tensor by tensor: its fast path needs tensors of one shape or one scalar."""

    class Lists(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.mixed = list[str]()

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            name = function.overloadpacket.__name__
            lists = [value for value in args if isinstance(value, (list, tuple)) and value]
            shapes = [[one.shape for one in some if isinstance(one, Tensor)] for some in lists]
            if name.startswith("_foreach") and any(shape != shapes[0] for shape in shapes):
                self.mixed.append(name)
            return function(*args, **kwargs or {})

    made = Fixture(precision="fp16", clipping="per_update")
    with Lists() as seen:
        made.take()
    assert seen.mixed == []
