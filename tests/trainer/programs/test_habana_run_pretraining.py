"""Habana's run_pretraining.py of 0.15.4 and 1.23: batches, starts, devices, packs, and what it refuses."""

import json

import pytest

from tests.support.published_commands import assert_equal, refusal, told, understood

PROGRAM, LATER = "habana/run_pretraining.py", "habana/run_pretraining.py@1.23"
SHAPE = {
    "vocab_size": 30522,
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "hidden_act": "gelu",
}


@pytest.fixture
def given(tmp_path):
    """The flags that every command has, with paths in a new directory."""
    config = tmp_path / "bert_config.json"
    config.write_text(json.dumps(SHAPE), encoding="utf-8")
    data, out = tmp_path / "phase1", tmp_path / "out"
    return ["--do_train", f"--config_file={config}", f"--input_dir={data}", f"--output_dir={out}"]


def phase(program, words):
    (found,) = understood(program, words)["phases"]
    return found


def part(found, *names):
    return [found[name] for name in names]


def test_a_command_without_more_has_the_program_s_defaults(given):
    wanted = {
        "device": "hpu",
        "device_options": {"mode": "eager", "use_fused_lamb": False},
        "world_size": 1,
        "dist": False,
        "precision": "fp32",
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "gelu": "exact",
        "max_seq_length": 512,
        "max_predictions_per_seq": 80,
        "batch_size": 32,
        "accumulation": 1,
        "update_examples": 32,
        "steps": 1000,
        "warmup": 0.01,
        "base_learning_rate": 5e-5,
        "lr_schedule": "nvidia-poly",
        "power": 0.5,
        "optimiser": "lamb-nvidia",
        "optimiser_epsilon": 1e-6,
        "weight_decay": 0.01,
        "decay_skips": ["bias", "gamma", "beta", "LayerNorm"],
        "clipping": "per_update",
        "seed": 42,
        "checkpoint_every": 100,
        "keep_checkpoints": 3,
        "log_every": 1,
        "json_summary": "results/dllogger.json",
        "eval_data": None,
        "start_from_ckpt": None,
        "resume": False,
        "phase2": False,
        "unverified": True,
        "allreduce_post_accumulation": True,
        "allreduce_post_accumulation_fp16": False,
    }
    assert_equal(phase(PROGRAM, [*given, "--use_habana"]), wanted)


def test_train_batch_size_is_the_update_of_one_card(given, monkeypatch):
    words = [*given, "--use_habana", "--train_batch_size", "8192", "--gradient_accumulation_steps", "128"]
    names = ("batch_size", "accumulation", "update_examples", "world_size")
    assert part(phase(PROGRAM, words), *names) == [64, 128, 8192, 1]
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "8")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0")
    assert part(phase(PROGRAM, words), *names) == [64, 128, 65536, 8]


@pytest.mark.parametrize(
    ("words", "device", "options", "precision"),
    [
        (["--use_habana", "--use_lazy_mode", "--use_fused_lamb", "--hmp"], "hpu", {"mode": "lazy"}, "bf16"),
        (["--use_habana", "--use_jit_trace", "--use_fused_lamb"], "hpu", {"mode": "graph"}, "fp32"),
        (["--no_cuda", "--hmp"], "cpu", {}, "bf16"),
    ],
)
def test_devices_modes_and_precisions(given, words, device, options, precision):
    found = phase(PROGRAM, [*given, *words])
    assert part(found, "device", "device_options", "precision") == [device, options, precision]


def test_fp16_has_the_program_s_loss_scale(given):
    found = phase(PROGRAM, [*given, "--no_cuda", "--amp", "--loss_scale", "128"])
    assert part(found, "precision", "loss_scaling", "init_loss_scale") == ["fp16", 128.0, 1048576]


# --- checkpoints --------------------------------------------------------------------------------


def test_an_initial_checkpoint_acts_only_with_resume_from_checkpoint(given):
    words = [*given, "--use_habana", "--init_checkpoint", "a.pt"]
    assert phase(PROGRAM, words)["start_from_ckpt"] is None
    assert "--init_checkpoint acts only with --resume_from_checkpoint" in told(PROGRAM, words)
    found = phase(PROGRAM, [*words, "--resume_from_checkpoint"])
    assert part(found, "start_from_ckpt", "start_moments", "resume", "phase2") == ["a.pt", True, False, False]


def test_resuming_continues_the_last_checkpoint_or_a_given_one(given):
    words = [*given, "--use_habana", "--resume_from_checkpoint"]
    assert part(phase(PROGRAM, words), "resume", "resume_step", "phase2") == [True, None, False]
    found = phase(PROGRAM, [*words, "--resume_step", "300", "--steps_this_run", "500"])
    assert part(found, "resume", "resume_step", "steps_this_run") == [True, 300, 200]


def test_phase_2_begins_with_phase_1_s_last_checkpoint(given):
    words = [*given, "--use_habana", "--resume_from_checkpoint", "--phase2"]
    names = ("phase2", "phase1_end_step", "resume", "resume_step", "steps_this_run")
    assert part(phase(PROGRAM, words), *names) == [True, 7038, False, None, None]
    later = [*words, "--phase1_end_step", "100", "--resume_step", "130", "--steps_this_run", "50"]
    assert part(phase(PROGRAM, later), *names) == [True, 100, True, 130, 20]


def test_phase_2_is_continued_where_it_has_begun(given, tmp_path):
    (tmp_path / "out/checkpoints/step-00000140").mkdir(parents=True)
    words = [*given, "--use_habana", "--resume_from_checkpoint", "--phase2", "--phase1_end_step", "100"]
    found = phase(PROGRAM, [*words, "--steps_this_run", "50"])
    assert part(found, "phase2", "resume", "steps_this_run") == [True, True, 10]


def test_phase_2_without_resuming_is_a_new_run(given):
    words = [*given, "--use_habana", "--phase2"]
    assert part(phase(PROGRAM, words), "phase2", "resume", "start_from_ckpt") == [False, False, None]
    assert "--phase2 acts only with --resume_from_checkpoint" in told(PROGRAM, words)


# --- version 1.23 -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "count", "found"),
    [("128", "128", 107), ("512", "512", 256), ("512", "256", 128), ("128", "2", 2)],
)
def test_packs_divide_the_accumulation_by_the_usual_mean(given, length, count, found):
    words = [*given, "--use_habana", "--train_batch_size=4096", f"--max_seq_length={length}"]
    words += [f"--gradient_accumulation_steps={count}"]
    result = phase(LATER, words)
    assert part(result, "accumulation", "packed_accumulation") == [found, "rows"]
    assert result["batch_size"] == 4096 // int(count)
    assert "sequences a pack are assumed" in told(LATER, words)


def test_packs_divide_the_accumulation_by_the_mean_of_the_metadata(given, tmp_path):
    path = tmp_path / "phase1_metadata.json"
    path.write_text('{"avg_seq_per_sample": 1.6}', encoding="utf-8")
    words = [*given, "--use_habana", "--train_batch_size=256", "--gradient_accumulation_steps=16"]
    assert phase(LATER, words)["accumulation"] == 10
    path.write_text("{}", encoding="utf-8")
    assert "Key avg_seq_per_sample not present" in refusal(LATER, words)


def test_a_length_without_a_usual_mean_needs_the_metadata(given):
    words = [*given, "--use_habana", "--max_seq_length", "384"]
    assert "max_seq_length is 384, expected 128 or 512" in refusal(LATER, words)


def test_unpacked_data_keep_the_accumulation(given):
    words = [*given, "--use_habana", "--train_batch_size=8192", "--gradient_accumulation_steps=128"]
    found = phase(LATER, [*words, "--enable_packed_data_mode", "False"])
    assert part(found, "accumulation", "packed_accumulation") == [128, "sequences"]


@pytest.mark.parametrize(
    ("words", "variable", "mode"),
    [
        (["--use_torch_compile"], "0", "graph"),
        ([], "0", "eager"),
        ([], "1", "lazy"),
        ([], None, "lazy"),
        (["--use_lazy_mode", "false"], "1", "lazy"),
    ],
)
def test_the_mode_is_the_environment_s_unless_the_model_is_compiled(
    given, monkeypatch, words, variable, mode
):
    monkeypatch.delenv("PT_HPU_LAZY_MODE", raising=False)
    if variable is not None:
        monkeypatch.setenv("PT_HPU_LAZY_MODE", variable)
    unpacked = ["--use_habana", "--use_fused_lamb", "--enable_packed_data_mode=false", "--autocast"]
    found = phase(LATER, [*given, *unpacked, *words])
    assert part(found, "device_options", "precision") == [{"mode": mode}, "bf16"]


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gradient_accumulation_steps", "0"], "parameter: 0, should be >= 1"),
        (["--gradient_accumulation_steps", "5"], "parameter: 5, batch size 32 should be divisible"),
        (["--autocast"], "--autocast is a flag of version 1.23: append @1.23 to the program"),
        (["--max_steps", "many"], "invalid float value: 'many'"),
    ],
)
def test_wrong_values_are_refused_in_the_program_s_words(given, words, message):
    assert message in refusal(PROGRAM, [*given, "--use_habana", *words])


def test_do_train_must_be_given(given):
    assert "`do_train` must be True" in refusal(PROGRAM, [*given[1:], "--use_habana"])


def test_data_model_and_output_must_be_given():
    message = "the following arguments are required: --input_dir, --config_file, --output_dir"
    assert message in refusal(PROGRAM, ["--do_train"])
