"""The keys of vendors' devices, and the configurations that have them."""

import json

import pytest

from bertdata.config.declared import derive_schemas
from bertdata.errors import SettingsError
from tests.support.configurations import CONFIGS, assert_declared, warmup_updates
from trainer.config import flags
from trainer.config.files import find_shipped_configs
from trainer.config.flags import make_config
from trainer.config.help import read_with_argparse
from trainer.config.idle import find_idle_keys
from trainer.config.settings import Config, get_device_key_schemas, get_section_classes

VENDORS = ("hpu", "ipu", "xla")
GRAPHCORES = [name for name in find_shipped_configs() if name.startswith("graphcore")]


@pytest.mark.parametrize("name", VENDORS)
def test_every_field_of_a_section_is_declared(name):
    assert_declared(get_section_classes()[name])


def test_a_key_of_several_devices_is_declared_alike():
    options = get_device_key_schemas()
    for device in VENDORS:
        for name, item in derive_schemas(get_section_classes()[device]).items():
            assert {**item, "devices": options[name]["devices"]} == options[name]
            assert device in options[name]["devices"]
    assert options["executable_cache_dir"]["devices"] == ["ipu", "xla"]


def test_a_key_of_several_devices_is_in_the_section_of_each():
    config = Config.of(executable_cache_dir="x", device_options={"mode": "lazy"})
    assert (config.ipu.executable_cache_dir, config.xla.executable_cache_dir) == ("x", "x")
    assert config.hpu.mode == "lazy"
    assert list(Config.of(mode="lazy").as_json()) == list(Config.of().as_json())


def test_a_configuration_with_a_devices_keys_survives_json():
    config = make_config(["--config=mlperf", "--decay-skips=bias,LayerNorm", "--mode=lazy"])
    assert Config.of(**json.loads(json.dumps(config.as_json()))) == config


def test_a_value_is_checked_as_any_other():
    with pytest.raises(SettingsError, match="batches_per_step is 0, expected 1 or more"):
        Config.of(device_options={"batches_per_step": 0})


@pytest.mark.parametrize(
    "line",
    [
        "--labels A,B --decay-skips=bias,norm --device-mapping [0,1]",
        "--mode lazy --batches-per-step 2 --no-fp-exceptions --cuda-graphs",
    ],
)
def test_keys_of_devices_are_read_alike_by_the_parser_of_all_flags(line):
    named = [flags._normalise_flag(word) if word[:2] == "--" else word for word in line.split()]
    read = {"config": None} | flags.read_flags(line.split(), "trainer")
    assert read == read_with_argparse(named, "trainer", {})


@pytest.mark.parametrize("name", GRAPHCORES)
def test_graphcores_configurations_have_its_batch_on_any_number_of_workers(name):
    given = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    config = make_config(["--config", name])
    assert config.update.optimiser == "lamb-graphcore"
    assert config.update.clipping_point == "none"
    assert config.update.precision == "fp16"
    assert config.update.examples(1) == given["batch_size"] * given["accumulation"] * given["replicas"]
    assert config.update.examples(given["replicas"]) == config.update.examples(1)
    ignored = find_idle_keys(config, "cpu")
    assert {"pipeline_schedule", "hidden_layers_per_stage"} <= set(ignored)
    assert "hidden_layers_per_stage" not in find_idle_keys(config, "ipu")


@pytest.mark.parametrize(
    ("preset", "workers", "batch", "steps", "warmup", "rate", "shape"),
    [
        ("graphcore_tiny_128_lamb", 1, 128, 100, 10, 1e-3, (128, 20)),
        ("graphcore_base_128", 4, 65280, 7032, 2000, 6e-3, (128, 20)),
        ("graphcore_base_384", 4, 16320, 2142, 277, 0.002828, (384, 56)),
        ("graphcore_large_128", 4, 65600, 7032, 2000, 6e-3, (128, 20)),
        ("graphcore_large_384", 4, 16380, 2142, 277, 0.002828, (384, 56)),
    ],
)
def test_graphcores_configurations_have_the_published_numbers(
    preset, workers, batch, steps, warmup, rate, shape
):
    config = make_config(["--config", preset])
    assert config.update.examples(workers) == batch
    assert (config.schedule.steps, warmup_updates(config), config.schedule.base_learning_rate) == (
        steps,
        warmup,
        rate,
    )
    assert (config.data.max_seq_length, config.data.max_predictions_per_seq) == shape


def test_the_table_of_graphcores_configurations_is_complete():
    table = test_graphcores_configurations_have_the_published_numbers.pytestmark[0].args[1]
    assert sorted(row[0] for row in table) == GRAPHCORES
