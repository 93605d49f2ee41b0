"""The flags that the examples of transformers 4.5 to 4.57 have in common, as HfArgumentParser has them.

Each is spelt with underscores or hyphens; a boolean one may be given alone, and one that is true by default
has a ``--no_`` form.
"""

from collections.abc import Callable
from typing import Any

from bertdata.cli.common.program_flags import SWITCH, Flag
from trainer.extensions.like.flag_tables import own_flags, truth

SCHEDULES = (
    *("linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup"),
    *("inverse_sqrt", "reduce_lr_on_plateau", "cosine_with_min_lr", "cosine_warmup_with_min_lr"),
    "warmup_stable_decay",
)
_INTERVALS = ("no", "steps", "epoch")


def hf_flag(
    name: str, kind: Callable[[str], Any] = str, default: Any = None, meaning: str = "", **more: Any
) -> Flag:
    """A flag in both spellings. A boolean flag takes a value or none."""
    spellings = f"--{name}" if "_" not in name else f"--{name} --{name.replace('_', '-')}"
    if kind is truth and default is not None:
        more["count"] = "?"
    return Flag(spellings, kind, default, meaning, **more)


def hf_own_flags(kind: Callable[[str], Any], names: str) -> list[Flag]:
    """Flags that set our key of the same name."""
    found = own_flags(kind, names)
    return [hf_flag(one.name, kind, one.default, one.meaning, key=one.key) for one in found]


def idle_flags(
    names: str, kind: Callable[[str], Any], reason: str, default: Any = None, **more: Any
) -> list[Flag]:
    """Flags without effect here, for one reason. Those that are true by default have a ``--no_`` form."""
    found = [hf_flag(name, kind, default, reason, idle=True, **more) for name in names.split()]
    if default is True:
        for name in names.split():
            no = f"--no_{name} --no-{name.replace('_', '-')}"
            found.append(Flag(no, SWITCH, meaning=f"the opposite of {name}", idle=True))
    return found


_MEMORY = "memory and speed only: --strategy of this trainer divides what a device cannot hold"
_REPORTS = "reports have this trainer's own form"
_HUB = "nothing is sent to the Hub"
_LOADING = "data are read in this trainer's own way"
_KEPT = "checkpoints have this trainer's own form"

COMMON = [
    hf_flag("model_name_or_path", key="start_from_ckpt", required=True,
            meaning="model to start from: a directory, or a name that the cache of the Hub has"),
    hf_flag("config_name", meaning="description of the model, where it is not the model's own"),
    hf_flag("tokenizer_name", meaning="tokeniser's vocabulary, where it is not the model's own"),
    *idle_flags("cache_dir model_revision token", str, "nothing is downloaded"),
    *idle_flags("use_auth_token trust_remote_code ignore_mismatched_sizes", truth,
                "nothing is downloaded", False),
    *idle_flags("use_fast_tokenizer", truth, "this trainer has a tokeniser of its own", True),
    hf_flag("dataset_name", meaning="dataset of the Hub, not downloaded: append -- --data-dir DIR"),
    hf_flag("train_file", key="task_train_file", meaning="file to train on"),
    hf_flag("validation_file", key="task_eval_file", meaning="file to evaluate on"),
    hf_flag("test_file", key="task_predict_file", meaning="file to write predictions of"),
    hf_flag("max_eval_samples", int, meaning="features to evaluate on at most", key="eval_examples"),
    hf_flag("max_train_samples", int, meaning="refused"),
    hf_flag("max_predict_samples", int, meaning="refused"),
    *idle_flags("dataset_config_name", str, "nothing is downloaded"),
    *idle_flags("overwrite_cache", truth, "features are made again where their settings differ", False),
    *idle_flags("pad_to_max_length", truth, "this trainer computes no padding", True),
    *idle_flags("preprocessing_num_workers", int, _LOADING),
    hf_flag("output_dir", key="output_dir", required=True, meaning="directory of checkpoints, predictions"),
    hf_flag("do_train", truth, False, "train", key="do_train"),
    hf_flag("do_predict", truth, False, "write predictions of the test file", key="do_predict"),
    *hf_own_flags(float, "weight_decay=0.0 num_train_epochs=3.0"),
    *hf_own_flags(int, "seed=42"),
    hf_flag("overwrite_output_dir", truth, False, "do not continue from a checkpoint in output_dir"),
    hf_flag("do_eval", truth, False, "evaluate at the end"),
    Flag("--evaluation_strategy --evaluation-strategy --eval_strategy --eval-strategy", default="no",
         values=_INTERVALS, meaning="evaluation while training"),
    hf_flag("per_device_train_batch_size", int, 8, "features of a micro-batch of one device"),
    hf_flag("per_device_eval_batch_size", int, 8, "features of an evaluation batch of one device"),
    hf_flag("per_gpu_train_batch_size", int, meaning="older name of per_device_train_batch_size"),
    hf_flag("per_gpu_eval_batch_size", int, meaning="older name of per_device_eval_batch_size"),
    hf_flag("gradient_accumulation_steps", int, 1, "micro-batches of an update", key="accumulation"),
    hf_flag("learning_rate", float, 5e-5, "learning rate", key="base_learning_rate"),
    hf_flag("adam_beta1", float, 0.9, "decay rate of the first moment", key="beta1"),
    hf_flag("adam_beta2", float, 0.999, "decay rate of the second moment", key="beta2"),
    hf_flag("adam_epsilon", float, 1e-8, "epsilon", key="optimiser_epsilon"),
    hf_flag("max_grad_norm", float, 1.0, "norm that gradients are clipped to; 0: not clipped"),
    hf_flag("max_steps", int, -1, "updates instead of epochs; -1: the epochs"),
    hf_flag("lr_scheduler_type", default="linear", values=SCHEDULES, meaning="schedule of the learning rate"),
    hf_flag("warmup_ratio", float, 0.0, "warm-up as a share of the updates"),
    hf_flag("warmup_steps", int, 0, "updates of warm-up; they go before warmup_ratio"),
    hf_flag("logging_steps", float, 500.0, "updates between two log lines"),
    hf_flag("save_strategy", default="steps", values=(*_INTERVALS, "best"), meaning="times of checkpoints"),
    hf_flag("save_steps", float, 500.0, "updates between two checkpoints"),
    hf_flag("save_total_limit", int, meaning="newest checkpoints that are kept (default: all)"),
    hf_flag("no_cuda", truth, False, "train on the processor"),
    hf_flag("use_cpu", truth, False, "train on the processor"),
    hf_flag("fp16", truth, False, "precision fp16"),
    hf_flag("bf16", truth, False, "precision bf16"),
    hf_flag("eval_steps", float, meaning="updates between two evaluations (default: logging_steps)"),
    hf_flag("optim", default="adamw_torch", meaning="optimiser: a form of AdamW, or sgd"),
    hf_flag("adafactor", truth, False, "refused: this trainer has no Adafactor"),
    hf_flag("label_smoothing_factor", float, 0.0, "refused unless 0"),
    hf_flag("neftune_noise_alpha", float, meaning="refused"),
    hf_flag("resume_from_checkpoint", meaning="continue from the newest checkpoint in output_dir"),
    hf_flag("full_determinism", truth, False, "deterministic operations", key="deterministic"),
    hf_flag("torch_compile", truth, False, "compile the model", key="compile"),
    hf_flag("report_to", count="+", meaning="tensorboard, wandb, all or none (default here: none)"),
    hf_flag("load_best_model_at_end", truth, False, idle=True, meaning="the last checkpoint is evaluated"),
    *idle_flags("metric_for_best_model", str, "see load_best_model_at_end"),
    *idle_flags("greater_is_better", truth, "see load_best_model_at_end"),
    *idle_flags("logging_strategy log_level log_level_replica logging_dir run_name project trackio_space_id",
                str, _REPORTS),
    *idle_flags("logging_first_step include_tokens_per_second include_inputs_for_metrics batch_eval_metrics",
                truth, _REPORTS, False),
    *idle_flags("log_on_each_node logging_nan_inf_filter skip_memory_metrics", truth, _REPORTS, True),
    *idle_flags("disable_tqdm", truth, _REPORTS),
    *idle_flags("include_num_input_tokens_seen", str, _REPORTS, count="?"),
    *idle_flags("debug include_for_metrics label_names", str, _REPORTS, count="+"),
    *idle_flags("prediction_loss_only eval_on_start eval_use_gather_object", truth,
                "evaluations have this trainer's own form", False),
    *idle_flags("eval_do_concat_batches", truth, "evaluations have this trainer's own form", True),
    *idle_flags("eval_delay", float, "evaluations have this trainer's own form"),
    *idle_flags("eval_accumulation_steps", int, "evaluations have this trainer's own form"),
    *idle_flags("save_on_each_node save_only_model restore_callback_states_from_checkpoint ignore_data_skip",
                truth, _KEPT, False),
    *idle_flags("save_safetensors", truth, _KEPT, True),
    *idle_flags("dataloader_drop_last dataloader_persistent_workers group_by_length", truth, _LOADING, False),
    *idle_flags("remove_unused_columns dataloader_pin_memory", truth, _LOADING, True),
    *idle_flags("dataloader_num_workers dataloader_prefetch_factor data_seed past_index", int, _LOADING),
    *idle_flags("length_column_name accelerator_config", str, _LOADING),
    *idle_flags("dispatch_batches split_batches", truth, _LOADING),
    *idle_flags("gradient_checkpointing auto_find_batch_size use_ipex use_mps_device jit_mode_eval "
                "use_liger_kernel bf16_full_eval fp16_full_eval tpu_metrics_debug "
                "use_legacy_prediction_loop", truth, _MEMORY, False),
    *idle_flags("average_tokens_across_devices", truth, _MEMORY, True),
    *idle_flags("tf32 ddp_find_unused_parameters ddp_broadcast_buffers", truth, _MEMORY),
    *idle_flags("deepspeed fsdp fsdp_config fsdp_transformer_layer_cls_to_wrap sharded_ddp mp_parameters "
                "ddp_backend half_precision_backend fp16_backend fp16_opt_level torchdynamo ray_scope "
                "gradient_checkpointing_kwargs torch_compile_backend torch_compile_mode xpu_backend "
                "optim_args optim_target_modules lr_scheduler_kwargs liger_kernel_config "
                "parallelism_config", str, _MEMORY),
    *idle_flags("fsdp_min_num_params ddp_bucket_cap_mb ddp_timeout torch_empty_cache_steps tpu_num_cores",
                int, _MEMORY),
    *idle_flags("local_rank", int, "the launcher's variables say the rank"),
    *idle_flags("push_to_hub hub_always_push", truth, _HUB, False),
    *idle_flags("hub_private_repo", truth, _HUB, False),
    *idle_flags("hub_model_id hub_strategy hub_token hub_revision push_to_hub_model_id "
                "push_to_hub_organization push_to_hub_token", str, _HUB),
]  # fmt: skip
"""The flags of both programs: of the model, of the data, and TrainingArguments."""
