"""The calls of --device cuda to PyTorch, without a GPU; test_gpu.py runs on one."""

import os
import re
import warnings
from copy import deepcopy
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.backends import cuda as backend
from torch.nn.attention import SDPBackend

from bertdata.errors import SettingsError
from bertdata.records import ShardLayout
from tests.support.flat import flatten
from tests.support.padded_examples import PaddedForm
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import FlatBatch
from trainer.data.examples import Rows
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.devices.cuda import _NAMES, Cuda
from trainer.devices.cuda_attention import KERNELS
from trainer.devices.cuda_losses import cross_entropy
from trainer.devices.device import Device
from trainer.model.compiled_parts import CompilePart
from trainer.model.headed import BertForPreTraining
from trainer.tasks.pretraining import Pretraining, compute_pretraining_loss
from trainer.tasks.task import Outcome

SHAPE = ModelConfig(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=32,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
ENABLED = {
    "flash": (backend.enable_flash_sdp, backend.flash_sdp_enabled),
    "efficient": (backend.enable_mem_efficient_sdp, backend.mem_efficient_sdp_enabled),
    "cudnn": (backend.enable_cudnn_sdp, backend.cudnn_sdp_enabled),
    "math": (backend.enable_math_sdp, backend.math_sdp_enabled),
}


COMPILE = torch.compile


class Parts:
    """A learner that records how it is compiled."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def compile(self, **options: object) -> None:
        self._calls.append(f"compile whole {options}")

    def compile_parts(self, compile_part: CompilePart) -> None:
        self._calls.append("compile_parts")
        compile_part(len)


class About:
    name, total_memory = "a GPU", 80 * 2**30


@pytest.fixture
def calls(monkeypatch) -> list[str]:
    """Two pretended GPUs, and the recorded calls to them; settings are restored."""
    made: list[str] = []

    def counted() -> int:
        made.append(f"device_count with {os.environ.get('CUBLAS_WORKSPACE_CONFIG')}")
        return 2

    monkeypatch.setattr(torch.cuda, "device_count", counted)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: made.append(f"set_device {device}"))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: About)
    monkeypatch.setattr(
        torch.compiler, "cudagraph_mark_step_begin", lambda: made.append("cudagraph_mark_step_begin")
    )
    monkeypatch.setattr(torch, "compile", lambda function, **options: made.append(f"compile {options}"))
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    precision = torch.get_float32_matmul_precision()
    enabled = {name: is_enabled() for name, (_, is_enabled) in ENABLED.items()}
    yield made
    torch.set_float32_matmul_precision(precision)
    for name, (enable, _) in ENABLED.items():
        enable(enabled[name])


def device(local_rank: int = 1, **settings: object) -> Cuda:
    """The GPU, with tensors on the processor."""
    options = {name: settings.pop(name) for name in ("attention", "cuda_graphs") if name in settings}
    made = Cuda(Config.of(device="cuda", device_options=options, **settings), local_rank)
    assert made.torch_device == torch.device("cuda", local_rank)
    made.torch_device = torch.device("cpu")
    return made


def batch() -> FlatBatch:
    """Examples of several lengths."""
    layout = ShardLayout(max_seq_length=32, max_predictions_per_seq=4)
    loader = Loader(Rows(generate_data(layout, vocabulary_size=100, seed=1)), form=PaddedForm(), batch_size=6)
    try:
        made = next(loader).batches[0]
    finally:
        loader.close()
    lengths = torch.tensor([32, 20, 7, 32, 11, 9])
    used = (torch.arange(32) < lengths[:, None]).int()
    made.attention_mask.copy_(used)
    made.masked_lm_positions.remainder_(7)
    return flatten(made, budget=128)


# Starting


def test_each_worker_takes_its_own_gpu_before_anything_else_is_done_there(calls):
    device(1)
    assert calls == ["device_count with None", "set_device cuda:1"]
    assert torch.get_float32_matmul_precision() == "high"  # TF32


def test_deterministic_tells_cublas_before_cuda_starts_and_only_then(calls, monkeypatch):
    device(deterministic=True)
    assert calls[0] == "device_count with :4096:8"
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    device(deterministic=True)
    assert calls[2] == "device_count with :16:8"


@pytest.mark.parametrize(("capability", "number"), [((8, 0), "8.0"), ((7, 5), "7.5")])
def test_a_gpu_without_fp8_is_refused_in_one_line_and_may_emulate_it(calls, monkeypatch, capability, number):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr("trainer.devices.device.require_fp8_library", lambda: None)
    said = f"precision fp8: a GPU has compute capability {number}, FP8 needs 8.9: give --precision bf16, or "
    with pytest.raises(SettingsError, match=re.escape(said)) as error:
        device(precision="fp8")
    assert "\n" not in str(error.value)
    device(precision="fp8", fp8_emulation=True)


@pytest.mark.parametrize("capability", [(8, 9), (9, 0), (10, 0)])
def test_a_gpu_with_fp8_computes_everything_else_in_bf16(calls, monkeypatch, capability):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr("trainer.devices.device.require_fp8_library", lambda: None)
    made = device(precision="fp8")
    assert calls[:2] == ["device_count with None", "set_device cuda:1"]
    with made.autocast("fp8"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


def test_a_setting_that_contradicts_deterministic_is_an_error(calls, monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":0:0")
    with pytest.raises(
        SettingsError, match="CUBLAS_WORKSPACE_CONFIG is ':0:0', expected :4096:8 or :16:8, or nothing"
    ):
        device(deterministic=True)
    assert calls == []
    device()  # without it the setting is not touched


def test_workers_join_through_nccl(calls, monkeypatch):
    joined = []
    store = torch.distributed.HashStore()
    monkeypatch.setattr(
        torch.distributed, "init_process_group", lambda *words, **keys: joined.append((words, keys))
    )
    device().join(lambda: (store, 1, 2))
    assert joined == [(("nccl",), {"store": store, "rank": 1, "world_size": 2})]


# Attention


@pytest.mark.parametrize("attention", ["auto", *ENABLED])
def test_an_attention_kernel_that_is_asked_for_is_the_only_one_allowed(calls, attention):
    device(attention=attention, precision="bf16")
    allowed = {name for name, (_, is_enabled) in ENABLED.items() if is_enabled()}
    assert allowed == (set(ENABLED) if attention == "auto" else {attention})


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        (SDPBackend.EFFICIENT_ATTENTION, "efficient"),
        (SDPBackend.CUDNN_ATTENTION, "cudnn"),
        (SDPBackend.FLASH_ATTENTION, "flash"),
        (SDPBackend.MATH, "math"),
    ],
)
def test_for_padded_rows_the_kernel_is_pytorchs_choice_and_logged(calls, monkeypatch, choice, name):
    asked = []

    def choose(query, key, value, mask, dropout) -> int:
        asked.append((query.dtype, tuple(query.shape), query.requires_grad, tuple(mask.shape), dropout))
        return choice.value

    monkeypatch.setattr(torch, "_fused_sdp_choice", choose)
    made = device(precision="bf16", max_seq_length=16, rows=True)
    made.attention_for(SHAPE)
    assert asked == [(torch.bfloat16, (2, 2, 16, 16), True, (2, 1, 1, 16), 0.0)]
    assert f", TF32, {name} attention" in made.describe()


@pytest.mark.parametrize("able", list(ENABLED))
def test_without_padding_the_first_kernel_that_works_is_used(calls, monkeypatch, able):
    """Flash and memory-efficient attention are asked for sequences without a mask, the others with one."""
    asked = []

    def choose(query, key, value, mask, dropout) -> int:
        (allowed,) = (name for name, (_, is_enabled) in ENABLED.items() if is_enabled())
        asked.append((allowed, mask is not None))
        if allowed != able:
            raise RuntimeError("No available kernel. Aborting execution.")
        return {name: backend.value for backend, name in _NAMES.items()}[allowed]

    monkeypatch.setattr(torch, "_fused_sdp_choice", choose)
    made = device(precision="bf16")
    model = made.place(BertForPreTraining(SHAPE, made.attention_for(SHAPE)))
    order = ["flash", "efficient", "cudnn", "math"]
    wanted = [(name, name in ("cudnn", "math")) for name in order[: order.index(able) + 1]]
    assert asked == wanted
    assert f", TF32, {able} attention" in made.describe()
    assert model.bert.attention is KERNELS[able]


def test_a_kernel_that_cannot_be_used_is_refused_with_the_reason(calls):
    """The reason is PyTorch's own; only this function reports it to Python."""
    case = "attention flash cannot be used with precision bf16, heads of 16, dropout 0.1"
    with pytest.raises(SettingsError, match=f"^{case}: Both fused kernels do not support non-zero dropout.$"):
        device(attention="flash", precision="bf16").attention_for(
            replace(SHAPE, attention_probs_dropout_prob=0.1)
        )


def test_the_reason_is_that_of_the_kernel_asked_for(calls, monkeypatch):
    """The warnings are those that PyTorch gives on a GPU, for every kernel in turn."""
    said = [
        "Memory efficient kernel not used because: (Triggered internally at sdp_utils.cpp:1.)",
        "Memory Efficient attention has been runtime disabled. (Triggered internally at sdp_utils.h:2.)",
        "Flash attention kernel not used because:",
        "Flash attention has been runtime disabled.",
        "cuDNN attention kernel not used because:",
        "cuDNN dropout probability resolution is limited to 1/16. (Triggered internally at sdp_utils.cpp:3.)",
    ]

    def refuse(query, key, value, mask, dropout) -> int:
        assert (tuple(mask.shape), dropout) == ((2, 1, 1, 32), 0.0)
        for line in said:
            warnings.warn(line, stacklevel=1)
        raise RuntimeError("No available kernel. Aborting execution.")

    monkeypatch.setattr(torch, "_fused_sdp_choice", refuse)
    case = "attention cudnn cannot be used with precision fp32, heads of 16, dropout 0"
    with pytest.raises(
        SettingsError, match=f"^{case}: cuDNN dropout probability resolution is limited to 1/16.$"
    ):
        device(attention="cudnn").attention_for(SHAPE)
    del said[5:]
    with pytest.raises(SettingsError, match=f"^{case}: no reason given$"):
        device(attention="cudnn").attention_for(SHAPE)


# Batches, graphs, compilation


def test_batches_are_pinned_in_the_loaders_thread_and_copied_without_waiting(calls, monkeypatch):
    examples, copies = batch(), []

    def pin(tensor: torch.Tensor) -> torch.Tensor:
        calls.append("pin_memory")
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    made = device(1)
    made.torch_device = torch.device("cuda", 1)
    made.prepare(examples)
    # A new thread's current GPU is the first one: pinning there would use its memory.
    assert calls[1:] == ["set_device cuda:1", "set_device cuda:1"] + ["pin_memory"] * 9

    def copy(tensor: torch.Tensor, place: object, **options: object) -> torch.Tensor:
        copies.append((place, options))
        return tensor

    monkeypatch.setattr(torch.Tensor, "to", copy)
    made.move(examples)
    assert copies == [(torch.device("cuda", 1), {"non_blocking": True})] * 9


@pytest.fixture
def tools(monkeypatch) -> None:
    """Triton and a C compiler, as far as they are looked for."""
    monkeypatch.setattr("trainer.devices.cuda.find_spec", lambda name: name)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    ("settings", "compiles"),
    [
        ({}, True),
        ({"compile": True}, True),
        ({"compile": False}, False),
        ({"strategy": "replicated"}, True),
        ({"strategy": "sharded"}, False),
        ({"plan": "plan.json"}, False),
        ({"task": "squad"}, False),
        ({"task": "squad", "compile": True}, True),
    ],
)
def test_pre_training_is_compiled_unless_told_otherwise(calls, settings, compiles):
    made = device(**settings)
    assert made.compiles is compiles
    assert made.describe().endswith(", compiled" if compiles else ", not compiled")


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        (("trainer.devices.cuda.find_spec",), "not compiled: Triton is not installed"),
        (("shutil.which",), "not compiled: there is no C compiler"),
    ],
)
def test_what_compiling_lacks_is_said(calls, monkeypatch, missing, reason):
    for name in missing:
        monkeypatch.setattr(name, lambda _: None)
    assert device().describe().endswith(reason)
    assert device(compile=True).compiles


@pytest.mark.usefixtures("tools")
def test_a_model_that_is_split_is_not_compiled_though_it_would_be(calls):
    """A plan may divide the model after the device is there."""
    split = device()
    split.compiles = False  # as by a plan
    assert split.describe().endswith(", not compiled")


def test_the_end_of_an_update_is_fused_and_weights_are_cast_once_but_for_graphs(calls):
    assert device(compile=True).fused_step
    assert device(compile=True).casts_once
    assert not device(cuda_graphs=True).casts_once
    assert device().row_losses is cross_entropy
    assert device().step_chunk > Device.step_chunk


def test_compile_keeps_shapes_and_says_so(calls):
    made = device(compile=True)
    made.attention_for(SHAPE)
    made.compile(Parts(calls))
    assert not made.needs_rows
    assert calls[-2:] == ["compile_parts", "compile {'dynamic': False}"]
    assert made.describe().endswith(" attention, compiled")


def test_graphs_are_pytorchs_and_keep_no_gradient_in_their_memory(calls):
    made = device(cuda_graphs=True, deterministic=True, attention="math")
    model = made.place(BertForPreTraining(SHAPE))
    made.compile(Parts(calls))
    assert not made.needs_rows
    assert calls[-1] == "compile whole {'mode': 'reduce-overhead', 'dynamic': False}"
    assert made.describe().endswith(", compiled, CUDA graphs, deterministic")
    for _ in range(2):
        losses = outcome(made, model, batch())
        assert calls[-1] == "cudagraph_mark_step_begin"
        losses.loss.backward()
    weight = torch.nn.Parameter(torch.ones(3))
    weight.register_hook(torch.clone)
    memory = torch.ones(3)
    weight.backward(memory)
    assert weight.grad.data_ptr() != memory.data_ptr()


@pytest.mark.thorough
def test_gradients_add_up_in_the_mode_of_graphs(calls, monkeypatch):
    """Really compiled; on the processor PyTorch leaves out only the graphs."""
    monkeypatch.setattr(torch, "compile", COMPILE)
    plain, examples = BertForPreTraining(replace(SHAPE, num_hidden_layers=1)), batch()
    made = device(cuda_graphs=True, attention="math")
    model = made.place(deepcopy(plain))
    made.compile(model)
    for _ in range(2):
        outcome(made, model, examples).loss.backward()
        compute_pretraining_loss(plain(examples), examples).loss.backward()
    for weight, expected in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(weight.grad, expected.grad, rtol=1e-3, atol=1e-5)


def test_without_graphs_nothing_is_marked_and_no_gradient_copied(calls):
    made = device(attention="math")
    model = made.place(BertForPreTraining(SHAPE))
    outcome(made, model, batch())
    assert not any("mark" in call or "compile" in call for call in calls)
    assert all(weight._backward_hooks is None for weight in model.parameters())


def outcome(device: Cuda, model: BertForPreTraining, examples: FlatBatch) -> Outcome:
    """The device's forward pass and loss."""
    return device.forward(partial(Pretraining().outcome, model), examples)
