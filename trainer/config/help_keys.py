"""Keys that the short help of a command lists, and the placeholder for a key's value, such as FILE."""

from collections.abc import Mapping

from bertdata.config.value_check import list_types
from trainer.config.settings import get_key_schemas, get_known_names, get_phase_names

_FINETUNE = """
    output_dir overwrite_output_dir device compile checkpoint_every keep_checkpoints
    dist world_size
    start_from_ckpt resume_from resume
    eval_every eval_batch_size keep_best patience
    max_seq_length seed rows vocab model_config
    batch_size accumulation global_batch_size precision optimiser weight_decay
    steps num_train_epochs lr_schedule base_learning_rate warmup
    log_every no_progress_bar curves tensorboard wandb
    task task_dir task_train_file task_eval_file task_predict_file lower_case do_eval do_predict
    doc_stride doc_overlap max_query_length first_answer n_best_size max_answer_length
    version_2_with_negative null_score_diff_threshold
    text_column second_text_column label_column labels regression heading quoting
    skip_bad_records
    new_head ignore_mismatched_sizes"""

_EVALUATE = """
    output_dir device dist world_size
    start_from_ckpt resume_step
    eval_examples eval_batch_size
    train_data eval_data unverified max_seq_length vocab model_config
    task task_dir task_eval_file task_predict_file do_predict"""

_SPLIT = """
    train_data objective max_seq_length
    model_config hidden_size num_hidden_layers num_attention_heads model_type
    batch_size accumulation global_batch_size precision optimiser
    device strategy plan memory_margin min_micro_batches max_micro_batches power_of_two bandwidth stages
    copies profile_layers recompute task"""

COMMON_KEYS: Mapping[str, tuple[str, ...]] = {
    "finetune": tuple(_FINETUNE.split()),
    "evaluate": tuple(_EVALUATE.split()),
    "split": tuple(_SPLIT.split()),
}
"""For some commands, the keys in their short help. The short help of other commands lists the keys that are
declared with ``common=True``.
"""

_VALUES = {
    "DIRECTORY": "output_dir task_dir executable_cache_dir",
    "DATASET": "train_data eval_data",
    "CHECKPOINT": "start_from_ckpt resume_from",
    "FILE": """
        model_config plan save_plan json_summary mllog_file task_train_file task_eval_file
        task_predict_file""",
    "FILE|NAME": "vocab",
    "RATE": "base_learning_rate beta1 beta2 momentum decay_rate weight_decay",
    "SHARE": """
        masked_lm_prob eval_masked_lm_prob masked_lm_prob_end mask_share random_share kept_share
        lr_end_share memory_margin hidden_dropout_prob attention_probs_dropout_prob classifier_dropout
        target_accuracy available_memory_proportion""",
    "N|SHARE": "warmup lr_decay",
    "EPOCHS": "num_train_epochs",
    "GB": "device_memory",
    "GB/S": "bandwidth",
    "COLUMN": "text_column second_text_column label_column",
    "A,B": "labels decay_skips",
    "RESULT": "keep_best",
    "TEXT": "description",
}
_VALUE_OF_KEY = {key: value for value, keys in _VALUES.items() for key in keys.split()}
_VALUE_OF_TYPE = {"integer": "N", "number": "NUMBER", "array": "LIST", "object": "JSON", "string": "NAME"}


def list_common_keys(command: str) -> set[str]:
    """Return the names of keys that the command's short help lists."""
    if command in COMMON_KEYS:
        return set(COMMON_KEYS[command])
    keys = {name for name, item in get_key_schemas().items() if "common" in item}
    return keys | {name for name, (key, _) in get_phase_names().items() if key in keys}


def find_value_name(name: str) -> str:
    """Return the placeholder for a flag's value in the help, such as FILE, N or RATE."""
    key, _ = get_phase_names().get(name, (name, 0))
    if key in _VALUE_OF_KEY:
        return _VALUE_OF_KEY[key]
    return next(_VALUE_OF_TYPE[kind] for kind in list_types(get_known_names()[key]) if kind != "null")
