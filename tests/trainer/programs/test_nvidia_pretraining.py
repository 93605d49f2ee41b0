"""NVIDIA's run_pretraining.py for PyTorch: its published phases, its batches, its restarts."""

import json

import pytest

from bertdata.errors import UsageError
from tests.support.published_commands import assert_equal, understood
from trainer.programs.choice import find_program
from trainer.programs.nvidia.run_pretraining import translate

NAME = "nvidia/run_pretraining.py"
PROGRAM = find_program(NAME)
LARGE = {
    "vocab_size": 30522,
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "hidden_act": "gelu",
}
REQUIRED = ("--input_dir", "data", "--config_file", "bert_config.json", "--output_dir", "run")


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert_config.json").write_text(json.dumps(LARGE))


@pytest.fixture
def eight_workers(monkeypatch):
    """The environment of the first of eight workers, as torch.distributed.launch sets it."""
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "8"}.items():
        monkeypatch.setenv(name, value)


def phase(*words: str) -> dict[str, object]:
    (found,) = understood(NAME, [*REQUIRED, "--do_train", *words])["phases"]
    return dict(found)


def warnings(*words: str) -> str:
    given = PROGRAM.read([*REQUIRED, "--do_train", *words])
    translate(given)
    return "\n".join(given.warnings)


def refusal(*words: str) -> str:
    with pytest.raises(UsageError) as caught:
        translate(PROGRAM.read([*REQUIRED, *words]))
    return str(caught.value)


def test_the_published_phases_train_on_65536_and_32768_examples_an_update(eight_workers):
    one, two = (understood(NAME, line.split())["phases"][0] for line in PROGRAM.published)
    common = LARGE | {"device": "cuda", "precision": "fp16", "gelu": "exact", "world_size": 8}
    common |= {"optimiser": "lamb-nvidia", "beta1": 0.9, "beta2": 0.999, "optimiser_epsilon": 1e-6}
    common |= {"weight_decay": 0.01, "decay_skips": ["bias", "gamma", "beta", "LayerNorm"]}
    common |= {"clipping": "per_update", "max_grad_norm": 1.0, "lr_schedule": "nvidia-poly", "power": 0.5}
    common |= {"allreduce_post_accumulation": True, "allreduce_post_accumulation_fp16": True}
    common |= {"init_loss_scale": 1048576.0, "loss_scaling": 0.0, "checkpoint_every": 200, "seed": 42}
    common |= {"keep_checkpoints": 3, "log_every": 1, "eval_data": None, "unverified": True}
    common |= {"output_dir": "results/checkpoints", "json_summary": "results/dllogger.json"}
    assert_equal(one, common | {"batch_size": 64, "accumulation": 128, "update_examples": 65536})
    assert_equal(one, {"steps": 7038, "warmup": 0.2843, "base_learning_rate": 6e-3, "phase2": False})
    assert_equal(one, {"train_data": "phase1", "max_seq_length": 128, "resume": False})
    assert_equal(two, common | {"batch_size": 8, "accumulation": 512, "update_examples": 32768})
    assert_equal(two, {"steps": 1563, "warmup": 0.128, "base_learning_rate": 4e-3, "phase2": True})
    assert_equal(two, {"train_data": "phase2", "max_predictions_per_seq": 80, "phase1_end_step": 7038})


def test_gelu_is_that_of_the_commit():
    assert phase()["gelu"] == "exact"  # 65211bd9 computes it with the error function
    words = [*REQUIRED, "--do_train", "--vocab_file=vocab.txt"]
    (found,) = understood(f"{NAME}@a9e2c1d5", words)["phases"]
    assert found["gelu"] == "tanh"


def test_moments_of_another_checkpoint_count_updates_from_0():
    found = phase("--resume_from_checkpoint", "--init_checkpoint=other.pt")
    assert_equal(found, {"start_moments": True, "moments_updates": 0})


def test_defaults_are_the_programs():
    found = phase()
    assert_equal(found, {"steps": 1000, "warmup": 0.01, "base_learning_rate": 5e-5, "precision": "fp32"})
    assert_equal(found, {"batch_size": 32, "accumulation": 1, "update_examples": 32, "world_size": 1})
    assert_equal(found, {"max_seq_length": 512, "max_predictions_per_seq": 80, "checkpoint_every": 100})
    assert_equal(found, {"allreduce_post_accumulation": False, "allreduce_post_accumulation_fp16": False})
    assert_equal(found, {"steps_this_run": None, "resume": False, "start_from_ckpt": None})


def test_the_batch_is_that_of_a_gpu_and_accumulation_divides_it(eight_workers):
    found = phase("--train_batch_size=96", "--gradient_accumulation_steps=6")
    assert_equal(found, {"batch_size": 16, "accumulation": 6, "update_examples": 768, "world_size": 8})


def test_a_restart_takes_the_newest_checkpoint_or_the_named_one():
    assert_equal(phase("--resume_from_checkpoint"), {"resume": True, "resume_step": None, "phase2": False})
    found = phase("--resume_from_checkpoint", "--resume_step", "400")
    assert_equal(found, {"resume": True, "resume_step": 400})


def test_a_given_checkpoint_hands_over_its_moments_to_a_phase_that_begins():
    found = phase("--resume_from_checkpoint", "--init_checkpoint", "ckpt_7038.pt", "--phase2")
    assert_equal(found, {"start_from_ckpt": "ckpt_7038.pt", "start_moments": True, "phase2": True})
    assert found["resume"] is False


@pytest.mark.parametrize("words", [["--init_checkpoint", "a.pt"], ["--phase2"], ["--resume_step", "3"]])
def test_what_acts_only_with_a_restart_is_ignored_without_one(words):
    assert_equal(phase(*words), {"start_from_ckpt": None, "phase2": False, "resume_step": None})
    assert f"{words[0]} acts only with --resume_from_checkpoint" in warnings(*words)


def test_runs_end_early_save_less_and_scale_as_they_are_told():
    assert phase("--steps_this_run", "50")["steps_this_run"] == 50
    assert phase("--skip_checkpoint")["checkpoint_every"] == 0
    assert phase("--max_steps", "1e3", "--log_freq", "2.0")["log_every"] == 2
    assert phase("--checkpoint_activations")["recompute"] == "always"
    found = phase("--amp", "--init_loss_scale", str(2**26))
    assert_equal(found, {"precision": "fp16", "init_loss_scale": 2.0**26, "max_loss_scale": 2.0**26})


def test_a_later_version_has_flags_of_its_own():
    words = [*REQUIRED, "--do_train", "--vocab_file=v.txt", "--cuda_graphs", "--disable_jit_fusions", "--amp"]
    (found,) = understood(f"{NAME}@a9e2c1d5", words)["phases"]
    assert_equal(found, {"vocab": "v.txt", "device_options": {"cuda_graphs": True}, "precision": "fp16"})


def test_what_is_otherwise_here_is_told():
    assert "--skip_checkpoint: one checkpoint is saved" in warnings("--skip_checkpoint")
    assert "here one: torchrun starts more" in warnings()
    assert "--loss_scale is kept" in warnings("--fp16", "--loss_scale", "128")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "`do_train` must be True."),
        (["--gradient_accumulation_steps=0"], "parameter: 0, should be >= 1"),
        (["--gradient_accumulation_steps=5"], "parameter: 5, batch size 32 should be divisible"),
        (["--max_step", "many"], "argument --max_steps: invalid float value: 'many'"),
        (["--vocab_file", "v"], "--vocab_file is a flag of version a9e2c1d5"),
    ],
)
def test_what_the_program_refuses_is_refused_in_its_words(words, message):
    assert message in refusal(*words)
