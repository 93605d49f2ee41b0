"""Figures of the GPU stages, on a processor: counts, kinds of kernels, measured updates."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks.gpu.figures import Figures, find_value, read_figures
from benchmarks.gpu.kernels import sum_times_by_type
from benchmarks.gpu.peer import compute_masked_loss, compute_published_loss
from benchmarks.gpu.pytests import count_outcomes, find_gpu_modules
from benchmarks.gpu.sizes import FULL, SMALL, find_sizes
from benchmarks.gpu.stages import OPTIONS
from benchmarks.gpu.summary import summarise
from benchmarks.gpu.updates import list_kernel_times, measure_updates
from tests.support.flat import make_rows
from trainer.config.model_kinds import read_model_config
from trainer.model.bert import PASSES
from trainer.model.headed import count_forward_operations

TINY = {"vocab_size": 104, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


@pytest.mark.parametrize(("phase", "masks", "giga"), [("phase1", 20, 240.6), ("phase2", 80, 1020.5)])
def test_the_published_work_of_a_sequence_is_found(phase, masks, giga):
    config = FULL.config(phase)
    shape = read_model_config(config.model_settings, "model")
    done = PASSES * count_forward_operations(np.array([config.data.max_seq_length]), masks, shape)
    assert done == pytest.approx(giga * 1e9, rel=0.01)


def test_full_sizes_are_those_of_the_shipped_configurations():
    for phase, batch_size in (("phase1", 256), ("phase2", 128)):
        config = FULL.config(phase)
        assert (config.update.batch_size, config.run.compile, config.update.precision) == (
            batch_size,
            True,
            "bf16",
        )
        width, inner = config.model.hidden_size, config.model.intermediate_size
        assert {(width, width), (width, 3 * width), (width, inner), (inner, width)} == set(FULL.products)


def test_every_option_is_a_configuration():
    for keys in OPTIONS.values():
        config = FULL.config("phase1", **keys)
        dropout = config.model_settings["attention_probs_dropout_prob"]
        assert config.cuda.attention != "cudnn" or (dropout * 16).is_integer()


@pytest.mark.parametrize("divide", [1, 2])
@pytest.mark.parametrize("rows", [False, True])
def test_speed_is_of_the_tokens_that_exist(rows, divide, tmp_path):
    figures = Figures(folder=tmp_path, stage="phase1", step="eager", context={})
    measure_updates(figures, SMALL, "phase1", {"rows": rows, "compile": False, "max_seq_length": 64}, divide)
    found = {line["name"]: line["value"] for line in read_figures(tmp_path) if "value" in line}
    (update,) = (line for line in read_figures(tmp_path) if line["name"] == "update")
    assert update["sequences"] == 8 * 8
    assert found["sequences"] * found["update"] == pytest.approx(8 * 8)
    assert 0.7 < found["real tokens"] / found["sequences"] / 64 < 1
    fed = found["real share of the tokens fed"]
    if rows:
        assert fed == pytest.approx(found["real tokens"] / found["sequences"] / 64)
    absent = {line["name"] for line in read_figures(tmp_path) if "absent" in line}
    assert absent == {"peak memory", "share of the peak", "share of the measured ceiling"}


def test_kernels_are_told_by_their_names():
    kernels = [
        ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT", 4.0),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas", 2.0),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128>(Params)", 1.0),
        ("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits>", 3.0),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)", 0.5),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>", 0.25),
        ("triton_per_fused_add_native_layer_norm_3", 0.125),
        ("triton_poi_fused__flash_attention_forward__to_copy_mm_5", 64.0),
        ("triton_tem_fused_mm_7", 8.0),
        ("triton_for_fused_11", 128.0),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>", 0.0625),
        ("Memcpy HtoD (Pinned -> Device)", 16.0),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 32.0),
    ]
    assert sum_times_by_type(kernels) == {
        "attention": 3.5,
        "copies": 16.0,
        "elementwise and Triton": 64.1875,
        "matrix products": 15.0,
        "optimiser": 128.25,
        "other": 32.0,
    }


def test_a_profiles_ranges_are_no_kernels():
    events = [
        SimpleNamespace(key="gemm", self_device_time_total=2000.0, is_user_annotation=False),
        SimpleNamespace(key="cudaLaunchKernel", self_device_time_total=0.0, is_user_annotation=False),
        SimpleNamespace(key="ProfilerStep#3", self_device_time_total=9000.0, is_user_annotation=True),
    ]
    assert list_kernel_times(events) == [("gemm", 2.0)]


def test_a_profile_has_what_is_read_of_it():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.ones(3).add(1)
    assert profile.key_averages()
    assert list_kernel_times(profile.key_averages()) == []  # nothing ran on a GPU


def test_the_modules_with_tests_of_gpus_are_found():
    assert any(path.endswith("tests/trainer/devices/test_gpu.py") for path in find_gpu_modules())


def test_the_peers_losses_are_one_loss_with_equal_counts_of_masks():
    """As published it is the mean over all masked words, with the head on masks too."""
    transformers = pytest.importorskip("transformers")
    given = TINY | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    torch.manual_seed(1)
    model = transformers.BertForPreTraining(transformers.BertConfig(**given, intermediate_size=64))
    rows = make_rows([12, 7, 12], longest=12, slots=3, vocabulary=104)
    assert 0 < rows.masked_lm_weights.sum() <= 9
    with torch.no_grad():
        losses = [loss(model, rows).item() for loss in (compute_published_loss, compute_masked_loss)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_figures_are_lines_at_once_and_the_newest_counts(tmp_path):
    figures = Figures(folder=tmp_path, stage="smoke", step="ceiling", context={"device": "d"})
    assert find_value(tmp_path, "ceiling", "ceiling") is None
    for value in (1.0, 2.5):
        figures.add("ceiling", value, "TFLOP/s")
        assert find_value(tmp_path, "ceiling", "ceiling") == value
    figures.add_absent("fp8", "not on a processor")
    figures.add_end("failed", 3.04, error="one\ntwo")
    assert read_figures(tmp_path)[0] == {
        "stage": "smoke",
        "step": "ceiling",
        "name": "ceiling",
        "value": 1.0,
        "unit": "TFLOP/s",
        "context": {"device": "d"},
    }
    assert summarise(read_figures(tmp_path)) == [
        "smoke: ceiling, failed in 3 s",
        "    ceiling: 1 TFLOP/s",
        "    ceiling: 2.5 TFLOP/s",
        "    fp8: not on a processor",
        "    ! one",
        "    ! two",
    ]


def test_tests_that_have_ended_are_counted_also_if_others_have_not():
    output = """\
tests/test_one.py::test_starts
[gw1] [  4%] PASSED tests/test_one.py::test_starts
[gw0] [  8%] FAILED tests/test_one.py::test_ends
tests/test_one.py::test_PASSED
[gw0] [ 12%] SKIPPED tests/test_one.py::test_two_gpus
[gw1] [ 16%] PASSED tests/test_one.py::test_FAILED[fp16]
[gw1] [100%] ERROR tests/test_one.py::test_last
tests/test_one.py::test_hangs
"""
    assert count_outcomes(output) == {"passed": 2, "failed": 2, "skipped": 1}


def test_pytests_lines_are_those_that_are_counted(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\ndef test_one(): pass\n\ndef test_two(): assert False\n\n"
        "@pytest.mark.skip\ndef test_three(): pass\n"
    )
    words = [sys.executable, "-m", "pytest", "-n", "1", "-v", "--dist=worksteal", "-p", "no:cacheprovider"]
    done = subprocess.run([*words, "test_it.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert count_outcomes(done.stdout) == {"passed": 1, "failed": 1, "skipped": 1}


def test_small_sizes_run_on_any_device():
    assert (find_sizes("cuda", True).device, find_sizes("cuda", True).updates) == ("cuda", SMALL.updates)
    assert find_sizes("cuda", False) == FULL
