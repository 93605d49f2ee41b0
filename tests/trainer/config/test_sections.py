"""Sections of the configuration: fields, checks, and what follows from them."""

import json
from dataclasses import fields

import pytest

from bertdata.config.declared import derive_schemas
from bertdata.errors import SettingsError
from tests.support.configurations import OWN_KEYS, assert_declared
from trainer.config.flags import make_config
from trainer.config.idle import find_idle_keys
from trainer.config.settings import (
    DEVICES,
    SECTIONS,
    Config,
    get_device_key_schemas,
    get_key_schemas,
    get_section_classes,
    list_section_keys,
)

MARKS = {"section", "common", "by_phase", "phases", "other_names"}
STANDARD = {
    *(
        "description",
        "default",
        "type",
        "enum",
        "examples",
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ),
    *("minLength", "minItems", "items", "required", "propertyNames", "properties", "additionalProperties"),
}
KINDS = get_section_classes()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_field_of_a_section_is_declared(kind):
    assert_declared(kind)


def test_a_key_has_no_mark_that_nobody_reads():
    for name, item in get_key_schemas().items():
        assert set(item) <= MARKS | STANDARD, name
    for name, item in get_device_key_schemas().items():
        assert set(item) <= {"devices", "everywhere"} | STANDARD, name


def test_a_key_is_in_one_section_or_in_those_of_devices():
    own = [name for section in SECTIONS for name in list_section_keys(section)]
    assert sorted([*own, "device_options"]) == sorted(OWN_KEYS)
    assert OWN_KEYS.isdisjoint(get_device_key_schemas())
    options = get_device_key_schemas()
    for name, item in derive_schemas(KINDS["cuda"]).items():
        assert {**item, "devices": options[name]["devices"]} == options[name]
        assert "cuda" in options[name]["devices"]


def test_the_keys_are_in_the_order_of_the_sections():
    assert [field.name for field in fields(Config)] == [*SECTIONS, *DEVICES]
    names = [name for section in SECTIONS for name in derive_schemas(KINDS[section])]
    assert list(Config.of(cuda_graphs=True).as_json()) == [*names, "device_options"]


def test_each_section_holds_the_keys_of_the_configuration():
    config = Config.of(warmup=0.1, bins=4, task="mrpc", cuda_graphs=True)
    keys = config.values()
    of_device = config.cuda.values()
    assert {name: value for name, value in of_device.items() if value is not None} == {"cuda_graphs": True}
    assert keys["device_options"] == {"cuda_graphs": True}
    for name in SECTIONS:
        section = getattr(config, name)
        assert repr(section.values()) == repr({key: keys[key] for key in list_section_keys(name)})


def test_a_configuration_never_changes():
    config = Config.of()
    with pytest.raises(AttributeError, match="cannot assign to field 'steps'"):
        config.schedule.steps = 5
    config.as_json()["device_options"]["use_lazy_mode"] = True
    assert config == Config.of()


def test_defaults_are_valid_and_every_optimiser_has_a_schedule_and_clipping():
    config = Config.of()
    keys = get_key_schemas()
    assert (config.schedule_name, config.update.clipping_point) == ("nvidia-poly", "per_update")
    for optimiser in keys["optimiser"]["examples"]:
        config = Config.of(optimiser=optimiser)
        assert config.schedule_name in keys["lr_schedule"]["examples"]
        assert config.update.clipping_point in keys["clipping"]["enum"]
        config = Config.of(optimiser=optimiser, lr_schedule="mlperf", clipping="none")
        assert (config.schedule_name, config.update.clipping_point) == ("mlperf", "none")


def test_data_that_generated_examples_stand_in_for_are_named():
    assert find_idle_keys(Config.of(generated_data=True, train_data="shards"), "cpu") == ["train_data"]
    assert find_idle_keys(Config.of(train_data="shards"), "cpu") == []


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
    assert Config.of(global_batch_size=batch).evaluation.interval(batch) == examples
    assert Config.of(global_batch_size=batch, eval_every=10).evaluation.interval(batch) == 10 * batch
    assert Config.of(eval_every=0).evaluation.interval(32) == 0


def test_model_settings_are_the_files_under_the_inline_keys(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text('{"hidden_size": 768, "intermediate_size": 3072, "vocab_size": 30522}', encoding="utf-8")
    assert Config.of(model_config=str(path)).model.settings()["hidden_size"] == 768
    settings = Config.of(model_config=str(path), hidden_size=64).model.settings()
    assert settings == {"hidden_size": 64, "intermediate_size": 256, "vocab_size": 30522}
    assert Config.of(hidden_size=64, intermediate_size=3).model.settings()["intermediate_size"] == 3
    assert {"vocab_size", "hidden_size", "deep_weight_init"} <= set(list_section_keys("model"))


def test_what_a_command_needs_is_asked_for_by_its_flag():
    Config.of(train_data="x").require("train_data")
    with pytest.raises(SettingsError, match="output_dir is missing: give --output-dir"):
        Config.of(train_data="x").require("train_data", "output_dir")


def test_a_configuration_survives_json():
    config = make_config(["--config=mlperf", "--decay-skips=bias,LayerNorm", "--cuda-graphs"])
    assert Config.of(**json.loads(json.dumps(config.as_json()))) == config


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"memory_margin": 0.1, "task": "pretraining", "mask_share": 0.8, "mode": None},
        {"memory_margin": 0.2},
        {"null_score_diff_threshold": 0},  # an integer, not the default 0.0
        {"cuda_graphs": True, "attention": None},
        {"device_options": {"cuda_graphs": True}},
    ],
)
def test_keys_keep_their_values_and_types_in_json(keys):
    config = Config.of(**keys)
    whole = config.as_json()
    found, given = whole | whole["device_options"], keys | keys.get("device_options", {})
    names = given.keys() - {"device_options", "mode", "attention"}
    assert {name: repr(found[name]) for name in names} == {name: repr(given[name]) for name in names}
    assert list(whole) == list(get_key_schemas())
    assert Config.of(**whole) == config


def test_a_value_of_any_section_is_checked():
    with pytest.raises(SettingsError, match="do_eval is 1, expected true or false"):
        Config.of(do_eval=1)
    with pytest.raises(SettingsError, match="cuda_graphs is 1, expected true or false"):
        Config.of(device_options={"cuda_graphs": 1})


def test_task_masks_and_plan_are_read_from_their_sections():
    usual, tuned = Config.of(), Config.of(task="mrpc", masking="dynamic", plan="plan.json")
    assert (usual.task, usual.is_finetuning, usual.masking_at_load) == ("pretraining", False, None)
    assert (tuned.task, tuned.is_finetuning, tuned.masking_at_load) == ("mrpc", True, "dynamic")
    assert (usual.split.plan, tuned.split.plan) == (None, "plan.json")
