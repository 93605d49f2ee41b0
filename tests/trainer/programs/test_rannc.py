"""RaNNC's run_pretraining_rannc.sh: its published command, its environment, and what it refuses."""

import json

import pytest

from bertdata.errors import UsageError
from tests.support.published_commands import assert_equal, commands, understood
from trainer.programs.choice import find_program
from trainer.programs.rannc.run_pretraining_rannc import translate

NAME = "rannc/run_pretraining_rannc.sh"
PROGRAM = find_program(NAME)
PUBLISHED = {one["id"]: one for one in commands("rannc run_pretraining_rannc.sh") if one["kind"] == "train"}
SMALL = {"vocab_size": 30522, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """The variables without which the script has no data and no place for results."""
    monkeypatch.setenv("CODEDIR", "/code")
    monkeypatch.setenv("BERT_PREP_WORKING_DIR", "/prep")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert_config.json").write_text(json.dumps(SMALL | {"intermediate_size": 128}))
    return tmp_path


def refusal() -> str:
    with pytest.raises(UsageError) as caught:
        translate(PROGRAM.read([]))
    return str(caught.value)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_command_has_all_values_of_the_original(name, monkeypatch):
    command = PUBLISHED[name]
    for variable, value in command["env"].items():
        monkeypatch.setenv(variable, value)
    found = understood(NAME, command["argv"][1:])
    assert len(found["phases"]) == len(command["expects"]["phases"])
    for phase, wanted in zip(found["phases"], command["expects"]["phases"], strict=True):
        assert_equal(phase, wanted)


def test_variables_set_batches_of_a_process_steps_rate_and_limits(monkeypatch):
    given = {"NP": "4", "BATCH_SIZE_PROC_P1": "16", "ACC_STEPS_P1": "2", "TRAIN_STEPS_P1": "7000"}
    given |= {"LR": "2e-4", "PREC": "fp32", "MIN_PIPELINE": "2", "MAX_PIPELINE": "8", "MEM_MARGIN": "0.2"}
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    one, two = understood(NAME, [])["phases"]
    wanted = {"batch_size": 8, "accumulation": 2, "update_examples": 64, "world_size": 4, "dist": True}
    wanted |= {"steps": 7000, "base_learning_rate": 2e-4, "precision": "fp32", "hidden_size": 64}
    wanted |= {"min_micro_batches": 2, "max_micro_batches": 8, "memory_margin": 0.2, "gelu": "exact"}
    wanted |= {"decay_skips": ["bias", "gamma", "beta", "LayerNorm"], "unverified": True}
    name = "rannc_NP4_P1BS16_P1ACC2_P1STEPS7000_P2BS4_P2ACC1_P2STEPS100000_PRECfp32"
    assert_equal(one, wanted | {"output_dir": f"/code/results/{name}/checkpoints"})
    assert_equal(two, {"batch_size": 4, "update_examples": 16, "phase2": True, "phase1_end_step": 7000})


@pytest.mark.parametrize(("variable", "length"), [("PHASE1_ONLY", 128), ("PHASE2_ONLY", 512)])
def test_one_phase_alone_starts_with_new_weights(variable, length, monkeypatch):
    monkeypatch.setenv(variable, "1")
    (phase,) = understood(NAME, [])["phases"]
    assert_equal(phase, {"max_seq_length": length, "phase2": False, "phase1_end_step": None})


def test_the_published_shape_stands_for_the_published_file_alone(monkeypatch, capsys):
    monkeypatch.setenv("BERT_CONFIG", "my_bert_config.json")
    phase = understood(NAME, [])["phases"][0]
    assert_equal(phase, {"hidden_size": 2048, "num_hidden_layers": 96, "model_config": None})
    said = capsys.readouterr().err
    assert "my_bert_config.json: no such file" in said
    assert "no norm after the last layer" in said
    monkeypatch.setenv("BERT_CONFIG", "other.json")
    assert translate(PROGRAM.read([])).phases[0]["model_config"] == "other.json"


def test_plans_are_kept_where_the_environment_names_a_file(monkeypatch):
    assert_equal(understood(NAME, [])["phases"][0], {"save_plan": None, "plan": None})
    monkeypatch.setenv("DEPLOYMENT_FILE", "plan.json")
    assert_equal(understood(NAME, [])["phases"][0], {"save_plan": "plan.json", "plan": None})
    monkeypatch.setenv("LOAD_DEPLOYMENT", "other.json")
    assert_equal(understood(NAME, [])["phases"][0], {"save_plan": "plan.json", "plan": "other.json"})


def test_without_places_the_script_runs_where_its_readme_runs_it(monkeypatch):
    monkeypatch.setenv("CODEDIR", "")
    monkeypatch.delenv("BERT_PREP_WORKING_DIR")
    given = PROGRAM.read([])
    meaning = translate(given)
    assert meaning.phases[0]["output_dir"].startswith("./results/rannc_NP8_")
    assert meaning.phases[0]["train_data"].startswith("data/prep/hdf5_lower_case_1_seq_len_128_max_pred_20_")
    said = [line.partition(" ")[0] for line in given.warnings]
    assert said == ["CODEDIR", "BERT_PREP_WORKING_DIR", "without"]


def test_wrong_variables_are_refused(monkeypatch):
    for given, message in [
        ({"PREC": "bf16"}, "Unknown <precision> argument"),
        ({"NP": "many"}, "NP is 'many', expected an integer"),
        ({"LR": "fast"}, "LR is 'fast', expected a number"),
        ({"ACC_STEPS_P2": "3"}, "batch size 4 should be divisible"),
        ({"ACC_STEPS_P1": "0"}, "should be >= 1"),
        ({"PHASE1_ONLY": "1", "PHASE2_ONLY": "1"}, "skips both phases"),
    ]:
        with monkeypatch.context() as patch:
            for variable, value in given.items():
                patch.setenv(variable, value)
            assert message in refusal()


def test_words_by_position_go_before_the_variables(monkeypatch):
    monkeypatch.setenv("TRAIN_STEPS_P1", "7000")
    words = "16 2e-4 fp32 8 0.02 500 50 false true true 4 7 name true true - 8 3e-4 0.1 60 2 /d1 /d2 /other"
    one, two = understood(NAME, words.split())["phases"]
    wanted = {
        "batch_size": 4,
        "accumulation": 4,
        "base_learning_rate": 2e-4,
        "precision": "fp32",
        "steps": 500,
    }
    wanted |= {"warmup": 0.02, "checkpoint_every": 50, "seed": 7, "train_data": "/d1", "resume": False}
    assert_equal(one, wanted)
    wanted = {"batch_size": 4, "accumulation": 2, "base_learning_rate": 3e-4, "warmup": 0.1, "steps": 60}
    assert_equal(two, wanted | {"train_data": "/d2", "phase2": True, "phase1_end_step": 500})
    assert one["output_dir"].startswith("/other/results/")


def test_an_empty_word_is_as_good_as_none_and_too_many_are_refused():
    one = understood(NAME, ["", "", "fp32"])["phases"][0]
    assert_equal(one, {"batch_size": 8, "base_learning_rate": 1e-4, "precision": "fp32"})
    with pytest.raises(UsageError, match="found 26 words, the script reads 25"):
        PROGRAM.read(["1"] * 26)


def test_resuming_is_asked_for_by_a_word_alone(tmp_path):
    (tmp_path / "results").mkdir()
    words = ["", "", "", "", "", "", "", "true", *[""] * 15, str(tmp_path), "start.pt"]
    one, two = understood(NAME, words)["phases"]
    assert_equal(one, {"start_from_ckpt": "start.pt", "start_moments": True, "moments_updates": 0})
    assert_equal(two, {"phase2": True, "phase1_end_step": 1000000, "start_from_ckpt": None})


def test_other_variables_of_the_script_are_known_and_one_that_would_change_updates_is_refused(monkeypatch):
    known = {flag.name for flag in PROGRAM.variables}
    assert {"NGPUS", "DECOMPOSER", "MAX_PARTITION_NUM", "DP_SEARCH_ALL", "TRACE_EVENTS", "PART"} <= known
    monkeypatch.setenv("SKIP_GRAD_SCALING", "true")
    assert "averages gradients" in refusal()


def test_the_vocabulary_is_padded_and_its_padding_is_in_the_softmax_as_in_the_program():
    assert_equal(understood(NAME, [])["phases"][0], {"softmax_over_padding": True})
