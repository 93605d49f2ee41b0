"""Hints for the error about an unknown flag or key. A hint is this trainer's name for the same setting, or
names other programs that have such a flag.
"""

from bertdata.errors import SettingsError
from trainer.config.flags import UnknownKeyError
from trainer.config.settings import format_flag
from trainer.programs.choice import find_programs_with

_FOREIGN_NAMES = {
    "base_learning_rate": "learning_rate lr peak_lr max_lr init_lr",
    "steps": """
        max_steps num_train_steps num_steps max_iters total_steps training_steps train_iters max_updates
        num_training_steps total_num_updates max_update train_steps""",
    "num_train_epochs": "epochs num_epochs max_epochs max_epoch train_epochs n_epochs",
    "batch_size": """
        train_batch_size per_device_train_batch_size per_gpu_train_batch_size micro_batch_size
        per_device_batch_size device_batch_size train_micro_batch_size bsz""",
    "eval_batch_size": "per_device_eval_batch_size per_gpu_eval_batch_size predict_batch_size",
    "global_batch_size": "total_batch_size global_train_batch_size",
    "accumulation": """
        gradient_accumulation_steps gradient_accumulation grad_accum_steps accumulate_grad_batches
        grad_accumulation_steps update_freq num_accumulation_steps""",
    "warmup": """
        warmup_steps num_warmup_steps warmup_proportion warmup_ratio warmup_updates warmup_iters
        lr_warmup_steps""",
    "lr_schedule": "lr_scheduler_type lr_scheduler learning_rate_schedule lr_decay_style scheduler",
    "optimiser": "optim optimizer_type optimiser_type optimizer_name",
    "optimiser_epsilon": "adam_epsilon epsilon adam_eps eps",
    "beta1": "adam_beta1 beta_1",
    "beta2": "adam_beta2 beta_2",
    "weight_decay": "weight_decay_rate wd",
    "max_grad_norm": "clip_norm clip_grad clip_grad_norm gradient_clip_val grad_clip",
    "max_seq_length": "max_sequence_length seq_length seq_len sequence_length max_len max_length block_size",
    "max_predictions_per_seq": "max_predictions_per_sequence max_predictions",
    "masked_lm_prob": "mlm_probability mlm_prob mask_prob mask_ratio",
    "num_hidden_layers": "num_layers n_layers n_layer layers",
    "num_attention_heads": "num_heads n_heads n_head heads",
    "hidden_size": "hidden_dim d_model n_embd",
    "intermediate_size": "ffn_dim ffn_hidden_size d_ff",
    "model_config": "bert_config_file config_file config_name bert_config",
    "vocab": "vocab_file vocabulary tokenizer tokenizer_name",
    "lower_case": "do_lower_case uncased",
    "start_from_ckpt": "init_checkpoint model_name_or_path init_from pretrained_model",
    "resume_from": "resume_from_checkpoint",
    "train_data": "input_dir input_files_dir input_file train_dir train_files",
    "eval_data": "eval_dir eval_files eval_input_dir",
    "checkpoint_every": """
        save_steps save_checkpoints_steps num_steps_per_checkpoint save_interval checkpoint_interval
        save_interval_updates""",
    "keep_checkpoints": "save_total_limit keep_checkpoint_max max_to_keep",
    "log_every": "logging_steps log_freq log_interval",
    "eval_every": "eval_steps eval_interval evaluation_steps",
    "output_dir": "save_dir out_dir",
    "wandb_project": "wandb_project_name",
}
"""For each key of this trainer, the names that other programs have for it."""

_OUR_KEYS = {name: key for key, names in _FOREIGN_NAMES.items() for name in names.split()}
_PRECISION = ("fp16", "bf16", "fp32")
"""Switches of other programs (``--fp16``) that are values of a flag of this trainer (--precision fp16)."""


def add_name_hints(error: UnknownKeyError) -> SettingsError:
    """Return the error with hints in its message, or unchanged if there are no hints for the unknown name.

    The hints are this trainer's key for the same setting, and the programs that have a flag of the unknown
    name.
    """
    ours, programs = _translate_name(error.name), find_programs_with(error.name)
    unknown = f"{error.where}{error.name} is not a key of this trainer"
    if ours and not programs:
        return SettingsError(f"{unknown}; use {ours}")
    if not programs:
        return error
    listed, like = ", ".join(programs), f"python -m trainer like {programs[0]} ..."
    if ours:
        return SettingsError(f"{unknown}; use {ours}. To run a command line of {listed}: {like}")
    verb = "has" if len(programs) == 1 else "have"
    return SettingsError(f"{unknown}; {listed} {verb} it: {like} runs such a command line")


def _translate_name(name: str) -> str:
    """Return this trainer's flag or key for another program's name, or "" if none is obvious.

    ``--learning-rate`` gives ``--base-learning-rate``, and ``learning_rate`` gives ``base_learning_rate``.
    """
    is_flag = name.startswith("--")
    plain = name.removeprefix("--").replace("-", "_")
    if plain in _PRECISION:
        return f"--precision {plain}" if is_flag else f'"precision": "{plain}"'
    key = _OUR_KEYS.get(plain, "")
    return format_flag(key) if key and is_flag else key
