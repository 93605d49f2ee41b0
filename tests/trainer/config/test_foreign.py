"""Names of other programs: each sets its key, and their command lines and files are understood."""

import json
from typing import Any

import pytest

from bertdata.config.value_check import types_of
from tests.support.configurations import (
    CONFIGS,
    GRAPHCORE_KEYS,
    MLPERF_FLAGS,
    NVIDIA_FLAGS,
    OWN_KEYS,
    assert_keys,
    config_file,
)
from tests.support.paths import ROOT
from trainer.config.flags import make_config
from trainer.config.foreign.tables import ignored_names, other_names, programs, translations
from trainer.config.foreign.translate import known_names
from trainer.config.schema import device_option_properties

FOREIGN = ROOT / "trainer" / "config" / "foreign"
SCHEMAS = ROOT / "schemas"


def test_every_name_means_one_thing():
    kinds = [
        OWN_KEYS,
        device_option_properties(),
        ignored_names(),
        other_names(),
        set(translations()) - OWN_KEYS,
    ]
    names = [name for kind in kinds for name in kind]
    assert len(names) == len(set(names))
    for kind in ("names", "translations", "ignored"):
        meanings: dict[str, Any] = {}
        for program in programs():
            for name, meaning in getattr(program, kind).items():
                assert meanings.setdefault(name, meaning) == meaning, name


def test_every_program_has_a_table_of_names_of_existing_keys():
    assert {path.stem for path in FOREIGN.glob("*.json")} == {
        *("google", "graphcore", "habana", "huggingface", "mlperf", "nvidia", "rannc")
    }
    assert set(other_names().values()) <= OWN_KEYS
    keys = {item["key"] for item in translations().values() if "key" in item}
    assert keys | {key for item in translations().values() for key in item.get("sets", ())} <= OWN_KEYS


def test_lanes_is_the_older_name_of_open_files(tmp_path):
    assert make_config(["--lanes=3"]).data.open_files == 3
    assert make_config(["--config", config_file(tmp_path, lanes=5)]).data.open_files == 5


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
        (["--autocast"], {"precision": "bf16"}),
        (["--autocast", "--fp16"], {"precision": "fp16"}),
        (["--bf16"], {"precision": "bf16"}),
        (["--model_variant=large"], {"start_from_ckpt": "large"}),
        (["--model_variant=large", "--checkpoint_folder=x"], {"start_from_ckpt": "x"}),
        (["--test_set=MRPC"], {"task": "mrpc"}),
        (["--test_set=bookswiki"], {"task": "pretraining"}),
        (["--task_name=STS_B"], {"task": "sts-b"}),
        (["--task_name=sst2"], {"task": "sst-2"}),
        (["--dataset_name=squad_v2"], {"task": "squad", "version_2_with_negative": True}),
        (["--dataset_name=squad"], {"task": "squad", "version_2_with_negative": False}),
        (["--use_horovod=8"], {"world_size": 8, "dist": True}),
        (["--use_horovod=1"], {"world_size": None, "dist": False}),
        (["--use_horovod"], {"world_size": None, "dist": False}),
        (["--optimizer_type=adam"], {"optimiser": "adamw-bert"}),
        (["--optim=adamw_hf"], {"optimiser": "adamw"}),
        (["--lr_scheduler_type=linear"], {"lr_schedule": "polynomial_decay"}),
        (["--save_steps=-1"], {"checkpoint_every": 0}),
        (["--save_steps=50"], {"checkpoint_every": 50}),
        (["--train_batch_size=24", "--bert_config_file=x"], {"global_batch_size": 24, "batch_size": None}),
        (["--train_batch_size=24", "--bert_config_file=x", "--horovod"], {"batch_size": 24}),
    ],
)
def test_names_of_other_trainers_have_their_meaning(flags, wanted):
    assert_keys(make_config(flags), **wanted)


RANNC_KEYS = {
    "load_deployment": "plan.json",
    "save_deployment": "kept.json",
    "mem_limit_gb": 32,
    "mem_margin": 0.2,
    "min_pipeline": 4,
    "max_pipeline": 16,
    "limit_dev_num_pot": False,
    "opt_param_factor": 2,
    "min_partition_num": 5,
    "max_partition_num": 32,
    "dp_search_all": True,
    "partitioning_dry_run_np": 8,
}


@pytest.mark.parametrize("as_flags", [False, True])
def test_rannc_settings_are_understood(tmp_path, as_flags):
    flags = [f"--{name}={str(value).lower()}" for name, value in RANNC_KEYS.items()]
    config = make_config(flags if as_flags else ["--config", config_file(tmp_path, **RANNC_KEYS)])
    assert_keys(
        config,
        plan="plan.json",
        save_plan="kept.json",
        device_memory=32,
        memory_margin=0.2,
        min_micro_batches=4,
        max_micro_batches=16,
        power_of_two=False,
    )
    assert config.split.memory_bytes == 32_000_000_000
    assert config.keys_without_effect("cuda") == [
        "dp_search_all",
        "max_partition_num",
        "min_partition_num",
        "opt_param_factor",
        "partitioning_dry_run_np",
    ]


def test_the_defaults_of_the_division_are_rannc_defaults():
    split = make_config([]).split
    assert split.memory_margin == 0.1
    assert (split.min_micro_batches, split.max_micro_batches) == (1, 32)
    assert split.power_of_two


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


def test_a_files_micro_steps_count_for_flags_too(tmp_path):
    place = config_file(tmp_path, steps_per_update=4, num_train_steps=400)
    assert make_config(["--config", place]).schedule.steps == 100
    assert make_config(["--config", place, "--num_train_steps=800"]).schedule.steps == 200


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


def test_every_key_of_graphcores_files_is_read_and_all_but_a_few_reach_an_ipu(tmp_path):
    keys = json.loads((CONFIGS / "graphcore_tiny_128_lamb.json").read_text(encoding="utf-8"))
    more = {
        "lr_schedule_by_step": {"0": 1e-4, "100": 1e-5},
        **{"decay_steps": 512, "decay_rate": 0.051, "loss_scaling": 1.0, "optimiser_epsilon": 1e-6},
        "duplication_factor": 6,
    }
    assert set(GRAPHCORE_KEYS) <= set(keys)
    config = make_config(["--config", config_file(tmp_path, **keys | more)])
    read = {name: value for name, value in {**keys, **more}.items() if name in OWN_KEYS}
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
