"""Configurations that come with the trainer."""

import pytest
import torch

from tests.support.configurations import assert_keys, warmup_updates
from trainer.config.files import find_shipped_configs
from trainer.config.flags import make_config, make_configs
from trainer.config.model_kinds import read_model_config
from trainer.model.headed import BertForPreTraining


@pytest.mark.parametrize(
    ("preset", "batch", "steps", "warmup", "rate", "shape"),
    [
        ("nvidia_large_phase1", 65536, 7038, 2000, 6e-3, (128, 20)),
        ("nvidia_large_phase2", 32768, 1563, 200, 4e-3, (512, 80)),
        ("habana_large_phase1", 65536, 7038, 2000, 6e-3, (128, 20)),
        ("habana_large_phase2", 32768, 1563, 200, 4e-3, (512, 80)),
        ("mlperf", 8192, 600, 287, 0.00288293, (512, 76)),
        ("tiny", 32, 800, 80, 1e-2, (None, None)),
        ("bert_large_phase1_h100", 65536, 7038, 2000, 6e-3, (128, 20)),
        ("bert_large_phase2_h100", 32768, 1563, 200, 4e-3, (512, 80)),
        ("rannc_4.9b", 256, 1_000_000, 10_000, 1e-4, (512, 80)),
    ],
)
def test_shipped_configs_have_the_published_numbers(preset, batch, steps, warmup, rate, shape):
    config = make_config(["--config", preset])
    assert config.update.examples(2) == batch
    assert (config.schedule.steps, warmup_updates(config), config.schedule.base_learning_rate) == (
        steps,
        warmup,
        rate,
    )
    assert (config.data.max_seq_length, config.data.max_predictions_per_seq) == shape


@pytest.mark.parametrize(
    ("preset", "batches", "lengths", "rates", "tokens", "layers"),
    [
        ("modernbert_base", (4608, 576), (1024, 8192), (8e-4, 3e-4), (1719, 300), 22),
        ("modernbert_large", (4928, 616), (1024, 8192), (5e-4, 5e-5), (1719, 300), 28),
    ],
)
def test_modernberts_have_the_published_numbers(preset, batches, lengths, rates, tokens, layers):
    phases = make_configs(["--config", preset])
    assert tuple(config.update.examples(8) for config in phases) == batches
    assert tuple(config.data.max_seq_length for config in phases) == lengths
    assert tuple(config.schedule.base_learning_rate for config in phases) == rates
    assert tuple(config.recipe.train_tokens // 10**9 for config in phases) == tokens
    shapes = [read_model_config(config.model_settings) for config in phases]
    assert {shape.num_hidden_layers for shape in shapes} == {layers}
    assert [shape.global_rope_theta for shape in shapes] == [10_000, 160_000]
    assert {shape.local_rope_theta for shape in shapes} == {10_000}
    assert phases[1].recipe.lr_end_share == 0.001
    assert phases[0].recipe.batch_warmup_from % phases[0].update.batch_size == 0
    assert all(config.masking.masked_lm_prob == 0.3 for config in phases)


@pytest.mark.parametrize("preset", ["modernbert_small", "roberta_small", "roberta_base"])
def test_later_encoders_keep_their_optimisers_constants(preset):
    config = make_config(["--config", preset])
    own = config.optimiser
    assert (own.beta1, own.beta2, own.optimiser_epsilon) == (0.9, 0.98, 1e-6)
    assert config.update.clipping_point == "none"
    assert config.model.settings()["model_type"] == preset.partition("_")[0]


def test_the_table_of_shipped_configs_is_complete():
    table = test_shipped_configs_have_the_published_numbers.pytestmark[0].args[1]
    both = ["habana_large"]  # tested in tests/trainer/run/test_two_phases.py
    tuned = [row[0] for row in test_fine_tuning_has_the_published_settings.pytestmark[0].args[1]]
    later = [name for name in find_shipped_configs() if name.startswith(("modernbert", "roberta"))]
    graphcores = [
        name for name in find_shipped_configs() if name.startswith("graphcore")
    ]  # in extensions/vendors
    assert sorted([*both, *later, *tuned, *graphcores, *(row[0] for row in table)]) == list(
        find_shipped_configs()
    )


@pytest.mark.parametrize(
    ("preset", "task", "length", "epochs", "rate"),
    [
        ("squad_base", "squad", 384, 2, 3e-5),
        ("squad_large", "squad", 384, 2, 3e-5),
        ("mrpc_base", "mrpc", 128, 3, 2e-5),
        ("mrpc_large", "mrpc", 128, 3, 3e-5),
    ],
)
def test_fine_tuning_has_the_published_settings(preset, task, length, epochs, rate):
    config = make_config(["--config", preset])
    assert config.update.examples(1) == 32
    assert (config.update.optimiser, config.update.clipping_point) == ("adamw-bert", "per_update")
    assert (config.schedule.warmup, config.schedule.base_learning_rate) == (0.1, rate)
    assert (config.finetuning.task, config.schedule.num_train_epochs) == (task, epochs)
    assert config.data.max_seq_length == length
    assert config.model_settings == {}  # the checkpoint's


def test_mlperfs_preset_is_the_record_run():
    wanted = {"beta1": 0.88, "beta2": 0.88, "weight_decay": 0.0166629, "start_warmup_step": -76}
    assert_keys(make_config(["--config=mlperf"]), **wanted, eval_examples=10_000, target_accuracy=0.72)


def test_rannc_model_has_4_9_billion_parameters_and_its_three_keys():
    shape = read_model_config(make_config(["--config=rannc_4.9b"]).model.settings())
    with torch.device("meta"):
        assert round(BertForPreTraining(shape).count_weights() / 1e9, 1) == 4.9
    assert shape.megatron_residual_connection
    assert shape.scale_query_key
    assert shape.deep_weight_init


@pytest.mark.parametrize("workers", [1, 8, 64])
def test_mlperfs_micro_batches_fit_any_number_of_workers(workers):
    assert make_config(["--config=mlperf"]).update.micro_batches(workers) == (16, 512 // workers)
