"""NVIDIA's run_squad.py and run_glue.py for PyTorch: their published commands, and what they refuse."""

import json

import pytest

from bertdata.cli.common.programs.program import Program
from bertdata.errors import UsageError
from tests.support.published_commands import assert_equal, understood
from trainer.programs.choice import find_program, translate_command_line

SQUAD, GLUE = find_program("nvidia/run_squad.py"), find_program("nvidia/run_glue.py")
SHAPE = {"vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
MODEL = ("--bert_model=b", "--init_checkpoint=b.pt", "--vocab_file=v.txt", "--config_file=bert_config.json")
REQUIRED = {
    SQUAD.name: [*MODEL, "--output_dir=run", "--train_file=train.json", "--predict_file=dev.json"],
    GLUE.name: [*MODEL, "--output_dir=run", "--data_dir=MRPC", "--task_name=mrpc"],
}


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert_config.json").write_text(json.dumps(SHAPE | {"hidden_act": "gelu"}))


def keys(program: Program, *words: str) -> dict[str, object]:
    (found,) = understood(program.name, [*REQUIRED[program.name], *words])["phases"]
    return dict(found)


def warnings(program: Program, *words: str) -> str:
    given = program.read([*REQUIRED[program.name], *words])
    translate_command_line(program, given)
    return "\n".join(given.warnings)


def test_the_published_command_for_squad_trains_predicts_and_evaluates(monkeypatch):
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "8"}.items():
        monkeypatch.setenv(name, value)
    (found,) = understood(SQUAD.name, SQUAD.published[0].split())["phases"]
    assert_equal(found, SHAPE | {"task": "squad", "device": "cuda", "precision": "fp16", "gelu": "exact"})
    assert_equal(found, {"batch_size": 4, "accumulation": 1, "world_size": 8, "update_examples": 32})
    assert_equal(found, {"optimiser": "adamw-bert", "use_debiasing": False, "optimiser_epsilon": 1e-8})
    assert_equal(found, {"beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01, "base_learning_rate": 3e-5})
    assert_equal(found, {"decay_skips": ["bias", "LayerNorm.bias", "LayerNorm.weight"]})
    assert_equal(found, {"lr_schedule": "nvidia-linear", "warmup": 0.1, "num_train_epochs": 2.0, "seed": 1})
    assert_equal(found, {"clipping": "per_update", "max_grad_norm": 1.0, "steps_this_run": None})
    assert_equal(found, {"do_train": True, "do_predict": True, "do_eval": True, "eval_every": 0})
    assert_equal(found, {"task_train_file": "train-v1.1.json", "task_eval_file": "dev-v1.1.json"})
    assert_equal(found, {"task_predict_file": "dev-v1.1.json", "eval_batch_size": 4, "lower_case": True})
    assert_equal(found, {"max_seq_length": 384, "doc_stride": 128, "max_query_length": 64})
    assert_equal(found, {"n_best_size": 20, "max_answer_length": 30, "vocab": "vocab.txt", "log_every": 50})
    assert_equal(found, {"start_from_ckpt": "bert_large.pt", "output_dir": "results/SQuAD"})


def test_the_published_command_for_mrpc_warms_up_over_a_hundredth():
    (found,) = understood(GLUE.name, GLUE.published[0].split())["phases"]
    assert_equal(found, SHAPE | {"task": "mrpc", "device": "cuda", "precision": "fp16", "gelu": "exact"})
    assert_equal(found, {"batch_size": 8, "update_examples": 8, "eval_batch_size": 8, "seed": 2})
    assert_equal(found, {"optimiser": "adamw-bert", "optimiser_epsilon": 1e-8, "clipping": "none"})
    assert_equal(found, {"lr_schedule": "nvidia-linear", "warmup": 0.01, "num_train_epochs": 3.0})
    assert_equal(found, {"do_train": True, "do_eval": True, "do_predict": False, "eval_every": 0})
    assert_equal(found, {"task_train_file": "MRPC/train.tsv", "task_eval_file": "MRPC/dev.tsv"})


@pytest.mark.parametrize(("program", "seed", "length"), [(SQUAD, 42, 384), (GLUE, 1, 128)])
def test_defaults_are_the_programs(program, seed, length):
    found = keys(program, "--do_train")
    assert_equal(found, {"batch_size": 32, "base_learning_rate": 5e-5, "num_train_epochs": 3.0})
    assert_equal(found, {"warmup": 0.1, "seed": seed, "max_seq_length": length, "eval_batch_size": 8})
    assert_equal(found, {"precision": "fp32", "optimiser_epsilon": 1e-6, "lower_case": False})
    assert_equal(found, {"do_train": True, "do_eval": False, "do_predict": False, "device": "cuda"})


@pytest.mark.parametrize("program", [SQUAD, GLUE])
def test_max_steps_stops_within_the_schedule_of_the_epochs(program):
    found = keys(program, "--do_train", "--max_steps", "100", "--num_train_epochs", "2")
    assert_equal(found, {"steps_this_run": 100, "num_train_epochs": 2.0})
    assert "one update more" in warnings(program, "--do_train", "--max_steps", "100")


@pytest.mark.parametrize("program", [SQUAD, GLUE])
def test_accumulation_divides_the_batch_of_a_gpu(program):
    found = keys(program, "--do_train", "--train_batch_size=24", "--gradient_accumulation_steps=4")
    assert_equal(found, {"batch_size": 6, "accumulation": 4, "update_examples": 24})


def test_only_what_is_asked_for_is_done():
    assert_equal(keys(SQUAD, "--do_predict"), {"do_train": False, "do_predict": True, "do_eval": False})
    found = keys(SQUAD, "--do_train", "--do_eval")
    assert_equal(found, {"do_eval": False, "task_eval_file": None, "task_predict_file": None})
    assert "nothing is evaluated" in warnings(SQUAD, "--do_train", "--do_eval")
    assert_equal(keys(GLUE, "--do_predict"), {"do_train": False, "do_eval": False, "do_predict": True})


def test_other_tasks_have_their_own_files_and_names():
    found = keys(GLUE, "--do_eval", "--task_name=MNLI", "--data_dir=MNLI")
    assert_equal(found, {"task": "mnli", "task_eval_file": "MNLI/dev_matched.tsv"})
    assert keys(SQUAD, "--do_train", "--version_2_with_negative")["version_2_with_negative"] is True


def test_colas_predictions_are_those_of_its_evaluation():
    found = keys(GLUE, "--do_predict", "--task_name=cola", "--data_dir=CoLA")
    assert_equal(found, {"do_predict": False, "do_eval": True, "task_eval_file": "CoLA/dev.tsv"})


def test_a_processor_is_taken_where_the_command_says_so():
    assert keys(SQUAD, "--do_train", "--no_cuda")["device"] == "cpu"


@pytest.mark.parametrize(
    ("program", "words", "message"),
    [
        (SQUAD, [], "At least one of `do_train` or `do_predict` must be True."),
        (SQUAD, ["--do_train", "--train_file="], "then `train_file` must be specified."),
        (SQUAD, ["--do_predict", "--predict_file="], "then `predict_file` must be specified."),
        (SQUAD, ["--do_train", "--gradient_accumulation_steps=0"], "parameter: 0, should be >= 1"),
        (GLUE, [], "At least one of `do_train`, `do_eval` or `do_predict` must be True."),
        (GLUE, ["--do_train", "--gradient_accumulation_steps=64"], "cannot be larger train_batch_size (32)"),
        (GLUE, ["--do_train", "--task_name=rte"], "argument --task_name: invalid choice: 'rte'"),
    ],
)
def test_what_the_programs_refuse_is_refused_in_their_words(program, words, message):
    with pytest.raises(UsageError) as caught:
        translate_command_line(program, program.read([*REQUIRED[program.name], *words]))
    assert message in str(caught.value)
