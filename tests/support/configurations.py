"""Configurations for tests: files, refusals, flags of other programs."""

import json
from pathlib import Path
from shlex import split
from typing import Any

import pytest

from bertdata.errors import SettingsError
from schemas import load_schema
from tests.support.paths import ROOT
from trainer.config.flags import make_config
from trainer.config.settings import Config

CONFIGS = ROOT / "trainer" / "config" / "shipped"
OWN_KEYS = set(load_schema("trainer")["properties"])
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
