"""The trainer's configuration: precedence of its sources, names of other trainers, and refusals."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from shlex import split
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from bertdata.config.value_check import types_of
from bertdata.errors import MissingInputError, SettingsError
from schemas import load_schema
from tests.support.paths import ROOT
from trainer.config.flags import make_config, make_configs, shipped_configs
from trainer.config.foreign.tables import ignored_names, other_names, programs, translations
from trainer.config.foreign.translate import known_names
from trainer.config.help import TITLES
from trainer.config.schema import device_option_properties, phase_names, properties, section_keys
from trainer.config.settings import DEVICE_SECTIONS, SECTIONS, Config

CONFIGS = ROOT / "trainer" / "config" / "shipped"
FOREIGN = ROOT / "trainer" / "config" / "foreign"
SCHEMAS = ROOT / "schemas"
OWN = set(load_schema("trainer")["properties"])
GRAPHCORE_KEYS = split(
    "task attention_probs_dropout_prob hidden_act hidden_dropout_prob hidden_size initializer_range "
    "max_position_embeddings num_attention_heads num_hidden_layers hidden_layers_per_stage type_vocab_size "
    "vocab_size seq_length batch_size batches_per_step steps max_predictions_per_seq lr_schedule "
    "base_learning_rate warmup optimiser parallell_io_threads pipeline_depth pipeline_schedule replicas "
    "precision seed steps_per_ckpts steps_per_logs weight_decay disable_graph_outlining restoring no_logs "
    "do_validation do_train available_memory_proportion embeddings_placement checkpoint_path "
    "checkpoint_model log_dir"
)
NVIDIA_FLAGS = split(
    "--input_dir=shards --config_file=bert_config.json --output_dir=run --max_seq_length=128 "
    "--max_predictions_per_seq=20 --train_batch_size=8192 --learning_rate=6e-3 --max_steps=7038 "
    "--warmup_proportion=0.2843 --gradient_accumulation_steps=128 --num_steps_per_checkpoint=200 "
    "--log_freq=1.0 --seed=12439 --fp16 --init_loss_scale=1048576 --allreduce_post_accumulation "
    "--allreduce_post_accumulation_fp16 --do_train --json-summary=run/log.json --disable_progress_bar "
    "--steps_this_run=-1 --bert_model=bert-large-uncased --use_env --local_rank=0"
)
MLPERF_FLAGS = split(
    "--bert_config_file=bert_config.json --nodo_eval --do_train --eval_batch_size=640 "
    "--init_checkpoint=start --input_file=shards/part* --iterations_per_loop=3 --lamb_beta_1=0.88 "
    "--lamb_beta_2=0.88 --lamb_weight_decay_rate=0.0166629 --learning_rate=0.00288293 --log_epsilon=-6 "
    "--max_eval_steps=125 --max_predictions_per_seq=76 --max_seq_length=512 --num_tpu_cores=128 "
    "--num_train_steps=2400 --num_warmup_steps=1148 --optimizer=lamb --output_dir=run "
    "--save_checkpoints_steps=12 --start_warmup_step=-304 --steps_per_update=4 --train_batch_size=2048 "
    "--poly_power=1.0 --nouse_tpu --clip_by_global_norm_after_gradient_allreduce=False"
)


def config_file(folder: Path, **keys: Any) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(keys), encoding="utf-8")
    return str(path)


def refusal(arguments: list[str]) -> str:
    with pytest.raises(SettingsError) as caught:
        make_config(arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def assert_keys(config: Config, **wanted: Any) -> None:
    keys = config.as_json()
    keys |= {"schedule": config.schedule_name, "clipping_point": config.update.clipping_point}
    keys |= {"warmup_steps": config.schedule.warmup_steps}
    assert {name: keys[name] for name in wanted} == wanted


JSON_TYPES = {
    "integer": {int},
    "number": {int, float},
    "boolean": {bool},
    "string": {str},
    "null": {type(None)},
    "object": {Mapping},
    "array": {Sequence},
}


def python_types(annotation: Any) -> set[Any]:
    """The types of a field without what its containers hold; float takes whole numbers too."""
    parts = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    plain = {get_origin(part) or part for part in parts}
    return plain | ({int} if float in plain else set())


@pytest.mark.parametrize(("section", "kind"), [*SECTIONS.items(), *DEVICE_SECTIONS.items()])
def test_the_fields_of_a_section_are_the_schemas_keys_in_name_type_and_default(section, kind):
    schema = properties() | device_option_properties()
    hints = get_type_hints(kind)
    assert sorted(hints) == sorted(section_keys(section))
    for name, default in kind().values().items():
        item = schema[name]
        kinds = {*types_of(item)} | ({"null"} if section in DEVICE_SECTIONS else set())
        assert python_types(hints[name]) == set().union(*(JSON_TYPES[kind] for kind in kinds)), name
        assert default == item.get("default"), name
        assert type(default) is type(item.get("default")), name
        assert item["description"]


def test_every_key_is_in_a_section():
    own = [name for section in SECTIONS for name in section_keys(section)]
    assert sorted([*own, "device_options"]) == sorted(OWN)
    options = {name for section in DEVICE_SECTIONS for name in section_keys(section)}
    assert options == set(device_option_properties())
    assert [field.name for field in fields(Config)] == [*SECTIONS, *DEVICE_SECTIONS, "ignored"]


def test_a_configuration_never_changes():
    config = Config.of()
    with pytest.raises(AttributeError, match="cannot assign to field 'steps'"):
        config.schedule.steps = 5
    config.as_json()["device_options"]["use_lazy_mode"] = True
    assert config == Config.of()


def test_every_name_means_one_thing():
    kinds = [OWN, device_option_properties(), ignored_names(), other_names(), set(translations()) - OWN]
    names = [name for kind in kinds for name in kind]
    assert len(names) == len(set(names))
    for kind in ("names", "translations", "ignored"):
        meanings: dict[str, Any] = {}
        for program in programs():
            for name, meaning in getattr(program, kind).items():
                assert meanings.setdefault(name, meaning) == meaning, name


def test_every_program_has_a_table_of_names_of_existing_keys():
    assert {path.stem for path in FOREIGN.glob("*.json")} == {
        *("google", "graphcore", "habana", "mlperf", "nvidia")
    }
    assert set(other_names().values()) <= OWN
    keys = {item["key"] for item in translations().values() if "key" in item}
    assert keys | {key for item in translations().values() for key in item.get("sets", ())} <= OWN


def test_defaults_are_valid_and_every_optimiser_has_habits():
    config = Config.of()
    optimisers = load_schema("trainer")["properties"]["optimiser"]
    assert set(optimisers["habits"]) == set(optimisers["enum"])
    assert (config.schedule_name, config.update.clipping_point) == ("nvidia-poly", "per_update")
    for optimiser in optimisers["enum"]:
        assert Config.of(optimiser=optimiser).schedule_name
        config = Config.of(optimiser=optimiser, lr_schedule="mlperf", clipping="none")
        assert (config.schedule_name, config.update.clipping_point) == ("mlperf", "none")


def test_the_command_line_overrides_the_file_and_the_file_the_defaults(tmp_path):
    place = config_file(tmp_path, steps=50, seed=7, open_files=3)
    config = make_config(["--config", place, "--seed=9", "--open-files", "2"])
    assert (config.schedule.steps, config.data.seed, config.data.open_files, config.reports.log_every) == (
        50,
        9,
        2,
        Config.of().reports.log_every,
    )


def test_lanes_is_the_older_name_of_open_files(tmp_path):
    assert make_config(["--lanes=3"]).data.open_files == 3
    assert make_config(["--config", config_file(tmp_path, lanes=5)]).data.open_files == 5


def test_an_alias_on_the_command_line_overrides_the_files_own_name(tmp_path):
    place = config_file(tmp_path, base_learning_rate=0.5, accumulation=3)
    config = make_config(["--config", place, "--learning_rate=0.25", "--gradient_accumulation_steps=2"])
    assert (config.schedule.base_learning_rate, config.update.accumulation) == (0.25, 2)


@pytest.mark.parametrize("flag", ["--train-data=x", "--train_data=x", "--input-dir=x", "--input_file=x"])
def test_hyphens_and_underscores_are_alike_in_flags(flag):
    assert make_config([flag]).data.train_data == "x"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--wandb", True),
        ("--wandb=true", True),
        ("--wandb=False", False),
        ("--nowandb", False),
        ("--no-wandb", False),
    ],
)
def test_switches_stand_alone_take_a_value_or_are_negated(flag, value):
    assert make_config([flag]).reports.wandb is value


def test_switches_that_begin_with_no_are_no_negations():
    assert_keys(make_config(["--no-progress-bar", "--no_logs"]), no_progress_bar=True, no_logs=True)


@pytest.mark.parametrize(("alias", "name"), sorted(other_names().items()))
def test_every_other_name_sets_its_key(alias, name):
    samples = {"integer": ("6", 6), "number": ("0.5", 0.5), "boolean": ("true", True), "string": ("x", "x")}
    text, value = samples[types_of(known_names()[name])[0]]
    if name == "precision":
        text = value = "bf16"
    assert_keys(make_config([f"--{alias}={text}"]), **{name: value})


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (["--fp16"], {"precision": "fp16"}),
        (["--amp"], {"precision": "fp16"}),
        (["--use_autocast"], {"precision": "bf16"}),
        (["--use_autocast=false"], {"precision": "fp32"}),
        (["--hmp"], {"precision": "bf16"}),
        (["--precision=16"], {"precision": "fp16"}),
        (["--precision=32"], {"precision": "fp32"}),
        (["--use_habana"], {"device": "hpu"}),
        (["--use_tpu=True"], {"device": "xla"}),
        (["--nouse_tpu"], {"device": "cpu"}),
        (["--no_cuda"], {"device": "cpu"}),
        (["--num_gpus=8"], {"device": "cuda"}),
        (["--num_gpus=0"], {"device": "cpu"}),
        (["--skip_checkpoint"], {"checkpoint_every": 0}),
        (["--init_checkpoint=x"], {"start_from_ckpt": "x"}),
        (["--init_checkpoint="], {"start_from_ckpt": None}),
        (["--restore_dir=x"], {"resume": True}),
        (["--resume_step=-1"], {"resume_step": None}),
        (["--resume_step=7038"], {"resume_step": 7038}),
        (["--steps_this_run=5"], {"steps_this_run": 5}),
        (["--task=pretraining"], {}),
        (["--log_epsilon=-6"], {"optimiser_epsilon": 1e-6}),
        (["--clipping=none"], {"clipping_point": "none"}),
        (["--optimizer=lamb"], {"optimiser": "lamb-mlperf"}),
        (["--optimizer=adamw"], {"optimiser": "adamw-bert"}),
        (["--optimiser=adamw"], {"optimiser": "adamw"}),
        (["--optimiser=lamb"], {"optimiser": "lamb-graphcore"}),
        (["--optimiser=lamb-poptorch"], {"optimiser": "lamb-graphcore-pytorch"}),
        (["--clip_by_global_norm_after_gradient_allreduce"], {"clipping": "per_update"}),
        (["--max_eval_steps=10"], {"eval_examples": 80}),
        (["--max_eval_steps=10", "--eval_batch_size=4"], {"eval_examples": 40}),
        (["--num_train_steps=40", "--steps_per_update=4"], {"steps": 10, "accumulation": 4}),
        (["--num_train_steps=40", "--num_warmup_steps=8"], {"steps": 40, "warmup": 8}),
        (["--save_checkpoints_steps=8", "--steps_per_update=4"], {"checkpoint_every": 2}),
        (["--start_warmup_step=-8", "--steps_per_update=4"], {"start_warmup_step": -2}),
        (["--train_batch_size=24"], {"batch_size": 24, "accumulation": 1}),
        (["--max_steps=1e3"], {"steps": 1000}),
        (["--global-batch-size=none"], {"global_batch_size": None}),
        (["--data_dir=x"], {"train_data": "x"}),
    ],
)
def test_names_of_other_trainers_have_their_meaning(flags, wanted):
    assert_keys(make_config(flags), **wanted)


def test_every_translation_is_in_the_table_above():
    table = next(
        mark
        for mark in test_names_of_other_trainers_have_their_meaning.pytestmark
        if mark.name == "parametrize"
    )
    given = {flag[2:].split("=")[0] for flags, _ in table.args[1] for flag in flags}
    assert set(translations()) <= given


def test_nvidias_command_line_is_understood():
    config = make_config(NVIDIA_FLAGS)
    assert_keys(
        config,
        train_data="shards",
        model_config="bert_config.json",
        batch_size=64,  # 8192 a worker in an update, in 128 micro-batches
        accumulation=128,
        steps=7038,
        steps_this_run=None,
        warmup_steps=2000,
        base_learning_rate=6e-3,
        optimiser="lamb-nvidia",
        schedule="nvidia-poly",
        clipping_point="per_update",
        precision="fp16",
        allreduce_post_accumulation_fp16=True,
        checkpoint_every=200,
        log_every=1,
        no_progress_bar=True,
        json_summary="run/log.json",
    )
    assert config.update.examples(8) == 65536
    assert config.keys_without_effect("cuda") == ["bert_model", "local_rank", "use_env"]


def test_nvidias_phase_2_is_understood():
    flags = ["--phase2", "--phase1_end_step=7038", "--resume_from_checkpoint", "--resume_step=7038"]
    assert_keys(make_config(flags), phase2=True, phase1_end_step=7038, resume=True, resume_step=7038)


def test_mlperfs_command_line_counts_micro_steps_of_all_workers():
    config = make_config(MLPERF_FLAGS)
    assert_keys(
        config,
        train_data="shards/part*",
        start_from_ckpt="start",
        steps=600,
        warmup=287,
        start_warmup_step=-76,
        checkpoint_every=3,
        global_batch_size=8192,
        accumulation=4,
        optimiser="lamb-mlperf",
        schedule="mlperf",
        clipping_point="per_micro_batch",
        beta1=0.88,
        beta2=0.88,
        weight_decay=0.0166629,
        optimiser_epsilon=1e-6,
        eval_examples=80_000,
        device="cpu",
    )
    assert config.update.micro_batches(16) == (128, 4)


def test_values_may_stand_apart_from_their_flags():
    arguments = ["--start_warmup_step", "-76", "--log_epsilon", "-6", "--fp16", "--steps", "300"]
    assert_keys(
        make_config(arguments), start_warmup_step=-76, optimiser_epsilon=1e-6, precision="fp16", steps=300
    )


def test_a_files_micro_steps_count_for_flags_too(tmp_path):
    place = config_file(tmp_path, steps_per_update=4, num_train_steps=400)
    assert make_config(["--config", place]).schedule.steps == 100
    assert make_config(["--config", place, "--num_train_steps=800"]).schedule.steps == 200


def test_data_that_generated_examples_stand_in_for_are_named():
    assert Config.of(generated_data=True, train_data="shards").keys_without_effect("cpu") == ["train_data"]
    assert Config.of(train_data="shards").keys_without_effect("cpu") == []


@pytest.mark.parametrize(
    "path",
    [path for folder in (SCHEMAS, CONFIGS, FOREIGN) for path in folder.glob("*.json")],
    ids=lambda path: path.name,
)
def test_nothing_is_declared_twice(path):
    """JSON keeps the second of two equal keys and drops the first without an error."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), [name for name, _ in pairs]
        return dict(pairs)

    json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=once)


@pytest.mark.parametrize("name", [name for name in shipped_configs() if name.startswith("graphcore")])
def test_graphcores_shipped_configs_hold_graphcores_keys_unchanged(name):
    given = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    assert set(GRAPHCORE_KEYS) <= set(given)
    config = make_config(["--config", name])
    assert config.update.optimiser == "lamb-graphcore"
    assert config.update.clipping_point == "none"
    assert config.update.precision == "fp16"
    assert config.update.examples(1) == given["batch_size"] * given["pipeline_depth"] * given["replicas"]
    assert config.update.examples(given["replicas"]) == config.update.examples(1)
    ignored = config.keys_without_effect("cpu")
    assert {"parallell_io_threads", "pipeline_schedule", "hidden_layers_per_stage"} <= set(ignored)
    assert "hidden_layers_per_stage" not in config.keys_without_effect("ipu")


def test_every_key_of_graphcores_files_is_read_and_all_but_a_few_reach_an_ipu(tmp_path):
    keys = json.loads((CONFIGS / "graphcore_tiny_128_lamb.json").read_text(encoding="utf-8"))
    more = {
        "lr_schedule_by_step": {"0": 1e-4, "100": 1e-5},
        **{"decay_steps": 512, "decay_rate": 0.051, "loss_scaling": 1.0, "optimiser_epsilon": 1e-6},
        "duplication_factor": 6,
    }
    assert set(GRAPHCORE_KEYS) <= set(keys)
    config = make_config(["--config", config_file(tmp_path, **keys | more)])
    read = {name: value for name, value in {**keys, **more}.items() if name in OWN}
    kept_apart = {"precision", "optimiser"}  # 16 and lamb have other names here
    assert_keys(config, **{name: value for name, value in read.items() if name not in kept_apart})
    for name, value in {**keys, **more}.items():
        if name not in read and name not in other_names() and name not in translations():
            assert config.as_json()["device_options"][name] == value
    few = ["checkpoint_model", "do_validation", "duplication_factor", "log_dir", "parallell_io_threads"]
    assert config.keys_without_effect("ipu") == few


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"lr_schedule": "custom", "lr_schedule_by_step": {"0": 1e-4, "100": 1e-5}},
        {"lr_schedule": "natural_exponential", "decay_steps": 512, "decay_rate": 0.051, "loss_scaling": 1.0},
        {"optimiser": "momentum", "duplication_factor": 6, "optimiser_epsilon": 1e-6},
        {"optimiser": "adamw", "precision": "32", "available_memory_proportion": [0.2, 0.3]},
        {"warmup": 0.1, "loss_scaling": 512, "optimiser": "sgd"},
    ],
)
def test_files_with_graphcores_keys_are_read(tmp_path, more):
    keys = json.loads((CONFIGS / "graphcore_tiny_128_lamb.json").read_text(encoding="utf-8"))
    config = make_config(["--config", config_file(tmp_path, **keys | more)])
    assert_keys(
        config, max_seq_length=128, checkpoint_every=100, log_every=1, output_dir="./checkpoint/phase1"
    )
    assert config.schedule.warmup_steps == 10


@pytest.mark.parametrize(
    ("preset", "batch", "steps", "warmup", "rate", "shape"),
    [
        ("nvidia_large_phase1", 65536, 7038, 2000, 6e-3, (128, 20)),
        ("nvidia_large_phase2", 32768, 1563, 200, 4e-3, (512, 80)),
        ("habana_large_phase1", 65536, 7038, 2000, 6e-3, (128, 20)),
        ("habana_large_phase2", 32768, 1563, 200, 4e-3, (512, 80)),
        ("mlperf", 8192, 600, 287, 0.00288293, (512, 76)),
        ("graphcore_tiny_128_lamb", 128, 100, 10, 1e-3, (128, 20)),
        ("graphcore_base_128", 65280, 7032, 2000, 6e-3, (128, 20)),
        ("graphcore_base_384", 16320, 2142, 277, 0.002828, (384, 56)),
        ("graphcore_large_128", 65600, 7032, 2000, 6e-3, (128, 20)),
        ("graphcore_large_384", 16380, 2142, 277, 0.002828, (384, 56)),
        ("tiny", 32, 800, 80, 1e-2, (None, None)),
        ("bert_large_phase1_h100", 65536, 7038, 2000, 6e-3, (128, 20)),
        ("bert_large_phase2_h100", 32768, 1563, 200, 4e-3, (512, 80)),
    ],
)
def test_shipped_configs_have_the_published_numbers(preset, batch, steps, warmup, rate, shape):
    config = make_config(["--config", preset])
    workers = 4 if preset.startswith("graphcore") and "tiny" not in preset else 2
    assert config.update.examples(1 if "tiny_128" in preset else workers) == batch
    assert (config.schedule.steps, config.schedule.warmup_steps, config.schedule.base_learning_rate) == (
        steps,
        warmup,
        rate,
    )
    assert (config.data.max_seq_length, config.data.max_predictions_per_seq) == shape


def test_the_table_of_shipped_configs_is_complete():
    table = test_shipped_configs_have_the_published_numbers.pytestmark[0].args[1]
    both = ["habana_large"]  # tested in tests/trainer/run/test_two_phases.py
    assert sorted([*both, *(row[0] for row in table)]) == list(shipped_configs())


def test_mlperfs_preset_is_the_record_run():
    wanted = {"beta1": 0.88, "beta2": 0.88, "weight_decay": 0.0166629, "start_warmup_step": -76}
    assert_keys(make_config(["--config=mlperf"]), **wanted, eval_examples=10_000, target_accuracy=0.72)


@pytest.mark.parametrize("workers", [1, 8, 64])
def test_mlperfs_micro_batches_fit_any_number_of_workers(workers):
    assert make_config(["--config=mlperf"]).update.micro_batches(workers) == (16, 512 // workers)


@pytest.mark.parametrize(
    ("keys", "workers", "wanted"),
    [
        ({}, 2, (32, 1)),
        ({"batch_size": 8, "accumulation": 4}, 3, (8, 4)),
        ({"batch_size": 8, "global_batch_size": 64}, 2, (8, 4)),
        ({"accumulation": 4, "global_batch_size": 64}, 2, (8, 4)),
        ({"global_batch_size": 64}, 2, (32, 1)),
        ({"batch_size": 8, "accumulation": 16, "replicas": 4}, 1, (8, 64)),
        ({"batch_size": 8, "accumulation": 4, "global_batch_size": 64}, 2, (8, 4)),
    ],
)
def test_what_is_not_given_of_the_batch_follows_from_the_rest(keys, workers, wanted):
    config = Config.of(**keys)
    assert config.update.micro_batches(workers) == wanted
    assert config.update.examples(workers) == workers * wanted[0] * wanted[1]


@pytest.mark.parametrize(
    ("keys", "workers"),
    [
        ({"batch_size": 8, "global_batch_size": 64}, 3),
        ({"batch_size": 7, "global_batch_size": 64}, 1),
        ({"global_batch_size": 64}, 3),
        ({"accumulation": 4, "global_batch_size": 64}, 5),
        ({"batch_size": 8, "accumulation": 1, "replicas": 1}, 2),
    ],
)
def test_a_batch_that_does_not_divide_over_the_workers_is_refused(keys, workers):
    with pytest.raises(SettingsError, match="a batch size that does not divide"):
        Config.of(**keys).update.micro_batches(workers)


def test_a_contradictory_batch_is_refused_with_its_numbers():
    config = Config.of(global_batch_size=64, batch_size=8, accumulation=2)
    with pytest.raises(
        SettingsError, match=r"is 64, expected 2 \(workers\) \* 8 \(batch_size\) \* 2 .* = 32"
    ):
        config.update.micro_batches(2)


@pytest.mark.parametrize(("batch", "examples"), [(256, 150_000), (3072, 175_000), (8192, 225_000)])
def test_evaluation_is_as_frequent_as_mlperfs(batch, examples):
    assert Config.of(global_batch_size=batch).evaluation_interval(1) == examples
    assert Config.of(global_batch_size=batch, eval_every=10).evaluation_interval(2) == 10 * batch
    assert Config.of(eval_every=0).evaluation_interval(1) == 0


def test_only_habanas_schedule_multiplies_the_rate_by_the_workers():
    assert Config.of(optimiser="lamb-habana-tf", base_learning_rate=0.5).learning_rate(8) == 4.0
    assert Config.of(optimiser="lamb-nvidia", base_learning_rate=0.5).learning_rate(8) == 0.5


@pytest.mark.parametrize(
    ("warmup", "updates"), [(0, 0), (10, 10), (0.0, 0), (0.29, 29), (0.5, 50), (0.999, 99), (1, 1)]
)
def test_warmup_is_updates_or_a_share(warmup, updates):
    assert Config.of(steps=100, warmup=warmup).schedule.warmup_steps == updates


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--warmup=1.5"], "warmup is 1.5, expected an integer (updates) or a share of steps"),
        (["--warmup=1.0"], "warmup is 1.0, expected an integer"),
        (["--warmup=-1"], "warmup is -1, expected 0 or more"),
        (["--warmup=100", "--steps=100"], "expected fewer than steps (100)"),
        (["--lerning-rate=1"], "--lerning-rate is not a known key; the nearest known is --learning-rate"),
        (["--gradient_acumulation_steps=1"], "nearest known is --gradient-accumulation-steps"),
        (["--steps=many"], "--steps is 'many', expected the type integer"),
        (["--steps=1.5"], "--steps is '1.5', expected the type integer"),
        (["--steps=0"], "steps is 0, expected 1 or more"),
        (["--wandb=perhaps"], "--wandb is 'perhaps', expected the type boolean"),
        (["--device=gpu"], "device is 'gpu', expected one of cpu, cuda, hpu, ipu, xla"),
        (["--clipping=maybe"], "clipping is 'maybe', expected one of usual, none, per_micro_batch"),
        (["--learning-rate=nan"], "learning_rate is nan, expected a finite number"),
        (["--learning-rate=0"], "learning_rate is 0, expected more than 0"),
        (["--beta1=1"], "beta1 is 1, expected less than 1"),
        (["--max-seq-length=70000"], "max_seq_length is 70000, expected at most 65535"),
        (["--lr-schedule=custom"], "lr_schedule custom needs lr_schedule_by_step"),
        (["--lr-schedule=natural_exponential"], "needs decay_steps"),
        (["--lr-schedule-by-step={}"], "'0' is a required property"),
        (['--lr-schedule-by-step={"0": 1, "x": 2}'], "lr_schedule_by_step: 'x' does not match"),
        (["--noallreduce-post-accumulation", "--allreduce-post-accumulation-fp16"], "needs allreduce_post"),
        (["--init-loss-scale=0.5"], "expected min_loss_scale (1) to max_loss_scale (1.67772e+07)"),
        (["--train_batch_size=10", "--num_accumulation_steps=4"], "of gradient_accumulation_steps (4)"),
        (["--num_train_steps=10", "--steps_per_update=4"], "a multiple of steps_per_update (4)"),
        (["--learning_rate=1", "--base-learning-rate=2"], "contradict each other: both set base_learning"),
        (["--task=squad"], "task is 'squad', expected one of pretraining"),
    ],
)
def test_wrong_flags_are_refused_in_one_line(arguments, words):
    assert words in refusal(arguments)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"hidden_sise": 3}, "hidden_sise is not a known key; the nearest known is hidden_size"),
        ({"parallel_io_thread": 3}, "the nearest known is parallel_io_threads"),
        ({"steps": "100"}, "steps is '100', expected an integer"),
        ({"steps": True}, "steps is True, expected an integer"),
        ({"seed": -1}, "seed is -1, expected 0 or more"),
        ({"num_train_steps": "x"}, "num_train_steps is 'x', expected an integer"),
        (
            {"train_batch_size": 8, "steps_per_update": "4"},
            "steps_per_update is '4', expected an integer",
        ),
        ({"train_batch_size": True}, "train_batch_size is True, expected an integer"),
        ({"eval_batch_size": "4", "max_eval_steps": 8}, "eval_batch_size is '4', expected an integer"),
        ({"steps_per_update": 0}, "steps_per_update is 0, expected 1 or more"),
        ({"available_memory_proportion": 2}, "available_memory_proportion is 2, expected at most 1"),
        ({"warmup": 1.5}, "warmup is 1.5"),
        ({"max_steps": 1, "steps": 2}, "max_steps and steps contradict each other"),
    ],
)
def test_wrong_keys_are_refused_with_file_and_key(tmp_path, keys, words):
    place = config_file(tmp_path, **keys)
    message = refusal(["--config", place])
    assert message.startswith(f"{place}: ")
    assert words in message


@pytest.mark.parametrize("text", ["{", "[]", "3", "\xff"])
def test_a_file_that_is_no_json_object_is_refused(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_bytes(text.encode("latin-1"))
    assert refusal(["--config", str(path)]).startswith(f"{path}: is not")


def test_a_missing_file_is_named():
    with pytest.raises(MissingInputError, match=r"nowhere\.json"):
        make_config(["--config", "nowhere.json"])


def test_null_in_a_file_takes_back_nothing_but_what_may_be_null(tmp_path):
    config = make_config(["--config", config_file(tmp_path, batch_size=None, init_checkpoint=None)])
    assert config.update.batch_size is None
    assert "steps is None" in refusal(["--config", config_file(tmp_path, steps=None)])


def test_model_settings_are_the_files_under_the_inline_keys(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text('{"hidden_size": 768, "intermediate_size": 3072, "vocab_size": 30522}', encoding="utf-8")
    assert Config.of(model_config=str(path)).model.settings()["hidden_size"] == 768
    settings = Config.of(model_config=str(path), hidden_size=64).model.settings()
    assert settings == {"hidden_size": 64, "intermediate_size": 256, "vocab_size": 30522}
    assert Config.of(hidden_size=64, intermediate_size=3).model.settings()["intermediate_size"] == 3
    assert {"vocab_size", "hidden_size", "deep_weight_init"} <= set(section_keys("model"))


def test_what_a_command_needs_is_asked_for_by_its_flag():
    Config.of(train_data="x").require("train_data")
    with pytest.raises(SettingsError, match="output_dir is missing: give --output-dir"):
        Config.of(train_data="x").require("train_data", "output_dir")


def test_a_configuration_survives_json():
    config = make_config([*MLPERF_FLAGS])
    assert Config.of(**json.loads(json.dumps(config.as_json()))) == config


def help_text(capsys: pytest.CaptureFixture[str], flag: str) -> str:
    with pytest.raises(SystemExit) as caught:
        make_config([flag])
    assert caught.value.code == 0
    return capsys.readouterr().out


def test_the_full_help_names_every_key_by_section_and_other_programs_names_last(capsys):
    text = help_text(capsys, "--help-all")
    words = text.split()
    for name in known_names():
        assert words.count(f"--{name.replace('_', '-')}") >= 1
    titles = re.findall(r"^(\S.*):$", text, re.MULTILINE)[1:]
    devices = ["device cuda", "device hpu", "device ipu", "device ipu or xla"]
    assert titles[1 : 1 + len(SECTIONS) + len(devices)] == [*TITLES.values(), *devices]
    assert titles[-len(programs()) :] == [f"names of {program.program}" for program in programs()]
    assert "--bert-config-file X  same as --model-config" in text


def test_the_short_help_shows_the_keys_that_people_use(capsys):
    shown = re.findall(r"^  (?:-h, )?--([\w-]+)", help_text(capsys, "--help"), re.MULTILINE)
    assert 30 <= len(shown) <= 45
    known = {name.replace("_", "-") for name in known_names()}
    own = {name.replace("_", "-") for name in [*properties(), *phase_names()]}
    assert set(shown) - known == {"help", "help-all", "config"}
    assert set(shown) & known <= own
    assert {"output-dir", "steps", "optimiser", "precision", "train-data-phase2"} <= set(shown)


def test_phases_are_named_with_their_data():
    first, second = make_configs(["--train-data-phase1", "a", "--train-data-phase2=b", "--eval-data=e"])
    assert [one.data.train_data for one in (first, second)] == ["a", "b"]
    assert [one.data.eval_data for one in (first, second)] == ["e", "e"]
    assert [one.run.phase2 for one in (first, second)] == [False, True]
    first, second = make_configs(["--train-data=a", "--eval-data-phase2=f"])
    assert [one.data.train_data for one in (first, second)] == ["a", "a"]
    assert [one.data.eval_data for one in (first, second)] == [None, "f"]


def test_data_of_phase_1_alone_make_one_phase_and_phase_2_alone_takes_its_own(tmp_path):
    (only,) = make_configs(["--train-data-phase1=a"])
    assert (only.data.train_data, only.run.phase2) == ("a", False)
    place = config_file(tmp_path, train_data_phase1="a", train_data_phase2="b")
    (second,) = make_configs(["--config", place, "--phase2"])
    assert (second.data.train_data, second.run.phase2) == ("b", True)
    assert [one.data.train_data for one in make_configs(["--config", place])] == ["a", "b"]
    flags = ["--config", place, "--train-data-phase1=c"]
    assert [one.data.train_data for one in make_configs(flags)] == ["c", "b"]


@pytest.mark.parametrize(
    "arguments",
    [["--train-data", "a+b"], ["--train-data=a", "--train_data", "b"], ["--input-dir=a", "--input_dir=b"]],
)
def test_datasets_are_united_with_plus_or_a_repeated_flag(arguments):
    (config,) = make_configs(arguments)
    assert config.data.train_data == "a+b"


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["--train-data", "a", "b", "--steps=5"], "train-data"),
        (["--steps=5", "--train_data=a", "b"], "train-data"),
        (["--input-dir", "a", "b"], "train-data"),
        (["--eval-data", "a", "b"], "eval-data"),
        (["--eval-data-phase1", "a", "b"], "eval-data"),
    ],
)
def test_two_datasets_in_one_flag_are_refused_with_both_remedies(arguments, key):
    message = refusal(arguments)
    assert f"--{key}-phase1 a --{key}-phase2 b" in message
    assert f"--{key} a+b" in message


def test_two_datasets_in_a_file_are_refused_with_both_remedies(tmp_path):
    message = refusal(["--config", config_file(tmp_path, train_data=["a", "b"])])
    assert message.endswith(
        "train_data has 2 values: for one in each phase give train_data_phase1 a train_data_phase2 b; "
        "for all together train_data a+b"
    )


def test_habanas_two_directories_are_one_in_each_phase():
    configs = make_configs(["--data_dir", "a", "b"])
    assert [config.data.train_data for config in configs] == ["a", "b"]


@pytest.mark.parametrize("name", ["mlprf", "mlperf.json", "nvidia_large_phase"])
def test_a_misspelt_configuration_names_the_nearest(name):
    with pytest.raises(MissingInputError) as caught:
        make_config(["--config", name])
    assert str(caught.value).startswith(f"{name}: ")
    near = "mlperf" if name.startswith("ml") else "nvidia_large_phase"
    assert f"the nearest configuration of the trainer's own is {near}" in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["--device=cudas"], "cuda"),
        (["--optimiser=lamb-nvidea"], "lamb-nvidia"),
        (["--lr-schedule=polynomial"], "polynomial_decay"),
        (["--clipping=per_updates"], "per_update"),
    ],
)
def test_a_misspelt_choice_names_the_nearest(arguments, nearest):
    assert refusal(arguments).endswith(f"; the nearest known is {nearest}")
