"""Graphcore's run_pretraining.py: its published commands, its files and flags, and what it refuses."""

import json
from pathlib import Path

import pytest

from bertdata.errors import MissingInputError, SettingsError, UsageError
from tests.support.paths import ROOT
from tests.support.published_commands import assert_equal, commands, understood
from trainer.config.settings import Config
from trainer.programs.choice import find_program
from trainer.programs.graphcore.run_pretraining import translate
from trainer.programs.translated_command import TranslatedCommand

NAME = "graphcore/run_pretraining.py"
PROGRAM = find_program(NAME)
PUBLISHED = {one["id"]: one for one in commands("graphcore run_pretraining.py")}
TINY = "configs/pretrain_tiny_128_lamb.json"
IPU = {
    "reduction_type": "sum",
    "batches_per_step": 1,
    "pipeline_schedule": "Grouped",
    "available_memory_proportion": 0.6,
    "embeddings_placement": "same_as_hidden_layers",
    "hidden_layers_per_stage": 2,
    "disable_graph_outlining": False,
    "stochastic_rounding": True,
    "fp_exceptions": False,
    "partials_type": "half",
}


def meaning(*words: str) -> TranslatedCommand:
    return translate(PROGRAM.read(words))


def tiny(*words: str) -> dict:
    (keys,) = meaning("--config", TINY, *words).phases
    Config.of(**keys)  # valid
    return keys


def written(
    tmp_path: Path, name: str = "mine.json", leave_out: tuple[str, ...] = (), **changes: object
) -> str:
    """The path of the tiny configuration with changes."""
    values = json.loads((ROOT / "trainer/programs/graphcore" / TINY).read_text(encoding="utf-8"))
    kept = {key: value for key, value in values.items() if key not in leave_out}
    path = tmp_path / name
    path.write_text(json.dumps(kept | changes), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_command_has_all_values_of_the_original(name):
    command = PUBLISHED[name]
    found = understood(NAME, command["argv"][1:])
    expected = command["expects"]["phases"]
    assert len(found["phases"]) == len(expected)
    for phase, wanted in zip(found["phases"], expected, strict=True):
        assert_equal(phase, wanted)


def test_the_readmes_first_command_is_graphcores_lamb_on_128_examples():
    found = understood(NAME, ["--config", TINY, "--train-file", "./Datasets/sample.tfrecord"])
    (phase,) = found["phases"]
    wanted = {
        "device": "ipu",
        "precision": "fp16",
        "loss_scaling": 1.0,
        "vocab_size": 30528,
        "hidden_size": 128,
        "intermediate_size": 512,
        "gelu": "tanh",
        "layer_norm_eps": 0.001,
        "use_qkv_bias": False,
        "use_attention_projection_bias": False,
        "use_cls_layer": False,
        "use_prediction_bias": False,
        "batch_size": 8,
        "accumulation": 16,
        "replicas": 1,
        "update_examples": 128,
        "steps": 100,
        "warmup": 10,
        "base_learning_rate": 0.001,
        "lr_schedule": "polynomial_decay",
        "optimiser": "lamb-graphcore",
        "optimiser_epsilon": 0.0001,
        "weight_decay": 0.0003,
        "use_debiasing": False,
        "clipping": "none",
        "seed": 1234,
        "checkpoint_every": 100,
        "log_every": 1,
        "output_dir": "./checkpoint/phase1",
        "train_data": "./Datasets/sample.tfrecord",
        "unverified": True,
        "device_options": IPU,
    }
    assert_equal(phase, wanted)


def test_flags_go_before_the_file_and_the_file_before_defaults(tmp_path):
    path = written(tmp_path, leave_out=("steps_per_ckpts", "batch_size"), batch_size=6)
    (keys,) = meaning("--config", path, "--pipeline-depth", "4", "--replicas=2").phases
    assert (keys["batch_size"], keys["accumulation"], keys["replicas"]) == (6, 4, 2)
    assert keys["checkpoint_every"] == 10
    assert keys["loss_scaling"] == 1.0


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["--optimiser=adamw"], {"optimiser": "adamw-bert", "weight_decay": 0.01, "clipping": "none"}),
        (["--optimiser=momentum"], {"optimiser": "momentum", "momentum": 0.984375}),
        (["--optimiser=SGD"], {"optimiser": "sgd", "clipping": "none"}),
        (["--use-nvlamb"], {"optimiser": "lamb-graphcore", "clipping": "per_update", "max_grad_norm": 1.0}),
        (["--use-debiasing"], {"use_debiasing": True}),
        (["--optimiser_beta1=0.8", "--optimiser_beta2=0.99"], {"beta1": 0.8, "beta2": 0.99}),
        (["--optimiser-epsilon=1e-6"], {"optimiser_epsilon": 1e-6}),
        (["--precision", "32"], {"precision": "fp32"}),
        (["--use_qkv_bias", "1", "--use_cls_layer=1"], {"use_qkv_bias": True, "use_cls_layer": True}),
        (["--use_attention_projection_bias=False"], {"use_attention_projection_bias": True}),
        (["--reduction-type=mean"], {"device_options": IPU | {"reduction_type": "mean"}}),
        (
            ["--available_memory_proportion", "0.2"],
            {"device_options": IPU | {"available_memory_proportion": 0.2}},
        ),
        (
            ["--available_memory_proportion", "0.2", "0.3"],
            {"device_options": IPU | {"available_memory_proportion": [0.2, 0.3]}},
        ),
        (["--train-file=a,b/*"], {"train_data": "a+b/*"}),
        (["--train-file=a", "--generated-data"], {"train_data": None, "generated_data": True}),
        (["--start-from-ckpt=x"], {"start_from_ckpt": "x", "start_moments": False}),
        (["--start-from-ckpt=x", "--restore-optimiser-from-ckpt"], {"start_moments": True}),
        (["--sequence-length", "384"], {"max_seq_length": 384}),
        (["--seq-length", "384"], {"max_seq_length": 384}),
        (["--max-predictions-per-seq=58"], {"max_predictions_per_seq": 58}),
        (["--max_predictions_per_seq=58"], {"max_predictions_per_seq": 58}),
        (["--hidden_size=256"], {"hidden_size": 256, "intermediate_size": 1024}),
        (["--wandb"], {"wandb": True, "wandb_project": "tf-bert"}),
        (["--compile-only"], {"compile_only": True}),
        (["--steps-per-logs=5", "--steps-per-ckpts=50"], {"log_every": 5, "checkpoint_every": 50}),
    ],
)
def test_a_flag_has_the_programs_meaning(words, wanted):
    found = tiny(*words)
    assert {name: found[name] for name in wanted} == wanted


def test_a_step_is_as_many_updates_as_batches_per_step():
    found = tiny("--batches_per_step=4", "--steps=50")
    assert (found["steps"], found["warmup"], found["checkpoint_every"], found["log_every"]) == (
        200,
        40,
        400,
        4,
    )
    assert found["device_options"]["batches_per_step"] == 4


def test_epochs_count_a_text_once_however_often_the_data_have_it(tmp_path):
    path = written(tmp_path, leave_out=("steps",), epochs=10)
    assert meaning("--config", path, "--train-file=a").phases[0]["num_train_epochs"] == 2.0
    path = written(tmp_path, leave_out=("steps",), epochs=10, duplication_factor=4)
    assert meaning("--config", path, "--train-file=a").phases[0]["num_train_epochs"] == 2.5


def test_generated_data_have_ten_million_examples():
    (keys,) = meaning("--config", "configs/pretrain_tiny_128_ADAM32_data.json", "--generated-data").phases
    assert keys["steps"] == 10_000_000 // 64
    assert (keys["lr_schedule"], keys["decay_steps"], keys["decay_rate"]) == (
        "natural_exponential",
        512,
        0.051,
    )
    assert keys["optimiser"] == "adamw-bert"


def test_a_run_shorter_than_the_warm_up_has_the_programs_rates():
    found = tiny("--steps=4")
    assert (found["steps"], found["warmup"]) == (4, 3)
    names = ("lr_schedule", "base_learning_rate", "steps", "warmup")
    schedule = Config.of(**{name: found[name] for name in names}).make_schedule(1)
    assert [schedule(step) for step in range(4)] == pytest.approx([0.001 * step / 10 for step in range(4)])
    assert tiny("--steps=1")["base_learning_rate"] == 1e-7


def test_the_published_table_of_rates_follows_the_record_of_nvidia():
    found = understood(NAME, ["--config", "configs/pretrain_large_128_phase1.json"])["phases"][0]
    table = found["lr_schedule_by_step"]
    assert len(table) == 439
    assert table["0"] == 1e-7
    assert (table["16"], table["2000"]) == (4.797832818915696e-05, 0.00599729102364462)
    assert (table["2016"], table["4080"], table["7008"]) == (
        *(0.0059820174979372046, 0.0035234583351051872),
        3.573487155279076e-05,
    )
    assert (found["update_examples"], found["accumulation"], found["replicas"]) == (65_600, 4100, 4)


def test_a_table_counts_updates_where_the_program_counts_steps():
    (keys,) = meaning("--config", "configs/pretrain_base_128_phase1.json").phases
    assert list(keys["lr_schedule_by_step"])[:3] == ["0", "200", "400"]
    assert keys["lr_schedule_by_step"]["2100"] == 0.009
    assert keys["num_train_epochs"] == 1.0
    assert keys["clipping"] == "per_update"


@pytest.mark.parametrize(
    ("path", "folder", "step"),
    [
        ("./checkpoint/phase1", "./checkpoint/phase1", None),
        ("checkpoint/phase1/BERT_pretraining_1/ckpt-40", "./checkpoint/phase1", 40),
        ("elsewhere/ckpt_last-100", "elsewhere", 100),
    ],
)
def test_restoring_goes_on_with_a_run(path, folder, step):
    found = tiny(f"--restore_path={path}")
    assert found["resume"]
    assert (found["output_dir"], found.get("resume_step")) == (folder, step)


def warnings(*words: str) -> str:
    given = PROGRAM.read(words)
    translate(given)
    return "\n".join(given.warnings)


def test_what_is_taken_otherwise_or_ignored_is_said_once(tmp_path):
    said = warnings("--config", TINY, "--sequence-length=384", "--use_cls_layer=False")
    assert f"{TINY} is not there: taking the values of Graphcore's published file" in said
    assert (
        "--sequence-length: the README prints it, but the program refuses it; taken as --seq-length" in said
    )
    assert "--use_cls_layer False: the program takes any word as true" in said
    assert "Neither generated-data nor train-file was passed" in said
    own = written(tmp_path, leave_out=("seed",), precision="32")
    said = warnings("--config", own, "--train-file=a")
    assert f"{own}: without effect here: checkpoint_model, do_validation, log_dir, no_logs" in said
    assert "no seed is given" in said
    assert meaning("--config", own).phases[0]["precision"] == "fp16"  # the text is never equal to 32


def test_a_file_that_is_there_goes_before_the_published_one(tmp_path, monkeypatch):
    (tmp_path / "configs").mkdir()
    written(tmp_path / "configs", "pretrain_tiny_128_lamb.json", batch_size=3)
    monkeypatch.chdir(tmp_path)
    assert tiny()["batch_size"] == 3
    assert "is not there" not in warnings("--config", TINY)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the following arguments are required: --config"),
        (
            ["--config", TINY, "--batch_size=8"],
            "unrecognized arguments: --batch_size=8 (did you mean --batch-size?)",
        ),
        (["--config", TINY, "--optimiser=adam"], "argument --optimiser: invalid choice: 'adam'"),
        (
            ["--config", TINY, "--pipeline-depth=1"],
            "Single-stage pipeline not supported by BERT pretraining.",
        ),
        (["--config", TINY, "--warmup=1.5"], "Warmup can be either an integer or a float between 0 and 1"),
        (["--config", TINY, "--restore_path=a", "--start-from-ckpt=b"], "give one of them"),
    ],
)
def test_a_command_that_the_program_refuses_is_refused_in_its_words(words, said):
    with pytest.raises(UsageError) as caught:
        meaning(*words)
    assert said in str(caught.value)


def test_an_unknown_key_of_a_file_is_an_error_that_names_the_nearest(tmp_path):
    with pytest.raises(
        SettingsError, match=r"mine\.json: batchsize is not a known key; the nearest known is batch_size"
    ):
        meaning("--config", written(tmp_path, batchsize=8))
    with pytest.raises(MissingInputError, match="nowhere.json"):
        meaning("--config", str(tmp_path / "nowhere.json"))
    with pytest.raises(UsageError, match="weight_decay is missing, which lamb needs"):
        meaning("--config", written(tmp_path, leave_out=("weight_decay",)))
