"""The flags that the examples of transformers 4.5 to 4.57 have in common, as HfArgumentParser has them.

Each is spelt with underscores or hyphens; a boolean one may be given alone, and one that is true by default
has a ``--no_`` form.
"""

from collections.abc import Sequence
from dataclasses import replace

from bertdata.cli.common.program_flags import SWITCH, Flag
from trainer.programs.flag_tables import idle_flags, own_flags, truth

SCHEDULES = (
    *("linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup"),
    *("inverse_sqrt", "reduce_lr_on_plateau", "cosine_with_min_lr", "cosine_warmup_with_min_lr"),
    "warmup_stable_decay",
)
_INTERVALS = ("no", "steps", "epoch")


def spelled(table: Sequence[Flag]) -> list[Flag]:
    """The flags as HfArgumentParser takes them: with hyphens too, a boolean alone, and ``--no_`` forms."""
    found = []
    for flag in table:
        names = " ".join(dict.fromkeys([flag.names, flag.names.replace("_", "-")]))
        stands_alone = flag.kind is truth and flag.default is not None
        found.append(replace(flag, names=names, count="?" if stands_alone else flag.count))
        if flag.kind is truth and flag.default is True:
            no = f"--no_{flag.name} --no-{flag.name.replace('_', '-')}"
            found.append(Flag(no, SWITCH, meaning=f"the opposite of {flag.name}", idle=flag.idle))
    return found


_MEMORY = "memory and speed only: --strategy of this trainer divides what a device cannot hold"
_REPORTS = "reports have this trainer's own form"
_HUB = "nothing is sent to the Hub"
_LOADING = "data are read in this trainer's own way"
_KEPT = "checkpoints have this trainer's own form"

REFUSED = [
    Flag("--max_train_samples", int, meaning="refused"),
    Flag("--max_predict_samples", int, meaning="refused"),
    Flag("--adafactor", truth, False, "refused: this trainer has no Adafactor"),
    Flag("--label_smoothing_factor", float, 0.0, "refused unless 0"),
    Flag("--neftune_noise_alpha", float, meaning="refused"),
]
"""Flags that would change the result in a way that this trainer cannot."""

COMMON: list[Flag] = [
    *REFUSED,
    Flag("--model_name_or_path", key="start_from_ckpt", required=True,
         meaning="model to start from: a directory, or a name that the cache of the Hub has"),
    Flag("--config_name", meaning="description of the model, where it is not the model's own"),
    Flag("--tokenizer_name", meaning="tokeniser's vocabulary, where it is not the model's own"),
    *idle_flags("nothing is downloaded", str, "--cache_dir --model_revision --token --dataset_config_name"),
    *idle_flags("nothing is downloaded", truth, "--use_auth_token --trust_remote_code "
                "--ignore_mismatched_sizes", default=False),
    *idle_flags("this trainer has a tokeniser of its own", truth, "--use_fast_tokenizer", default=True),
    Flag("--dataset_name", meaning="dataset of the Hub, not downloaded: append -- --data-dir DIR"),
    Flag("--train_file", key="task_train_file", meaning="file to train on"),
    Flag("--validation_file", key="task_eval_file", meaning="file to evaluate on"),
    Flag("--test_file", key="task_predict_file", meaning="file to write predictions of"),
    Flag("--max_eval_samples", int, meaning="features to evaluate on at most", key="eval_examples"),
    *idle_flags("features are made again where they differ", truth, "--overwrite_cache", default=False),
    *idle_flags("this trainer computes no padding", truth, "--pad_to_max_length", default=True),
    Flag("--output_dir", key="output_dir", required=True, meaning="directory of checkpoints, predictions"),
    Flag("--do_train", truth, False, "train", key="do_train"),
    Flag("--do_predict", truth, False, "write predictions of the test file", key="do_predict"),
    *own_flags(float, "--weight_decay=0.0 --num_train_epochs=3.0"),
    *own_flags(int, "--seed=42"),
    Flag("--overwrite_output_dir", truth, False, "do not continue from a checkpoint in output_dir"),
    Flag("--do_eval", truth, False, "evaluate at the end"),
    Flag("--evaluation_strategy --eval_strategy", default="no", values=_INTERVALS,
         meaning="evaluation while training"),
    Flag("--per_device_train_batch_size", int, 8, "features of a micro-batch of one device"),
    Flag("--per_device_eval_batch_size", int, 8, "features of an evaluation batch of one device"),
    Flag("--per_gpu_train_batch_size", int, meaning="older name of per_device_train_batch_size"),
    Flag("--per_gpu_eval_batch_size", int, meaning="older name of per_device_eval_batch_size"),
    Flag("--gradient_accumulation_steps", int, 1, "micro-batches of an update", key="accumulation"),
    Flag("--learning_rate", float, 5e-5, "learning rate", key="base_learning_rate"),
    Flag("--adam_beta1", float, 0.9, "decay rate of the first moment", key="beta1"),
    Flag("--adam_beta2", float, 0.999, "decay rate of the second moment", key="beta2"),
    Flag("--adam_epsilon", float, 1e-8, "epsilon", key="optimiser_epsilon"),
    Flag("--max_grad_norm", float, 1.0, "norm that gradients are clipped to; 0: not clipped"),
    Flag("--max_steps", int, -1, "updates instead of epochs; -1: the epochs"),
    Flag("--lr_scheduler_type", default="linear", values=SCHEDULES, meaning="schedule of the learning rate"),
    Flag("--warmup_ratio", float, 0.0, "warm-up as a share of the updates"),
    Flag("--warmup_steps", int, 0, "updates of warm-up; they go before warmup_ratio"),
    Flag("--logging_steps", float, 500.0, "updates between two log lines"),
    Flag("--save_strategy", default="steps", values=(*_INTERVALS, "best"), meaning="times of checkpoints"),
    Flag("--save_steps", float, 500.0, "updates between two checkpoints"),
    Flag("--save_total_limit", int, meaning="newest checkpoints that are kept (default: all)"),
    Flag("--no_cuda", truth, False, "train on the processor"),
    Flag("--use_cpu", truth, False, "train on the processor"),
    Flag("--fp16", truth, False, "precision fp16"),
    Flag("--bf16", truth, False, "precision bf16"),
    Flag("--eval_steps", float, meaning="updates between two evaluations (default: logging_steps)"),
    Flag("--optim", default="adamw_torch", meaning="optimiser: a form of AdamW, or sgd"),
    Flag("--resume_from_checkpoint", meaning="continue from the newest checkpoint in output_dir"),
    Flag("--full_determinism", truth, False, "deterministic operations", key="deterministic"),
    Flag("--torch_compile", truth, False, "compile the model", key="compile"),
    Flag("--report_to", count="+", meaning="tensorboard, wandb, all or none (default here: none)"),
    Flag("--load_best_model_at_end", truth, False, idle=True, meaning="the last checkpoint is evaluated"),
    *idle_flags("see load_best_model_at_end", str, "--metric_for_best_model"),
    *idle_flags("see load_best_model_at_end", truth, "--greater_is_better"),
    *idle_flags(_REPORTS, str, "--logging_strategy --log_level --log_level_replica --logging_dir --run_name "
                "--project --trackio_space_id"),
    *idle_flags(_REPORTS, truth, "--logging_first_step --include_tokens_per_second "
                "--include_inputs_for_metrics --batch_eval_metrics", default=False),
    *idle_flags(_REPORTS, truth, "--log_on_each_node --logging_nan_inf_filter --skip_memory_metrics",
                default=True),
    *idle_flags(_REPORTS, truth, "--disable_tqdm"),
    *idle_flags(_REPORTS, str, "--include_num_input_tokens_seen", count="?"),
    *idle_flags(_REPORTS, str, "--debug --include_for_metrics --label_names", count="+"),
    *idle_flags("evaluations have this trainer's own form", truth, "--prediction_loss_only --eval_on_start "
                "--eval_use_gather_object", default=False),
    *idle_flags("evaluations have this trainer's own form", truth, "--eval_do_concat_batches", default=True),
    *idle_flags("evaluations have this trainer's own form", float, "--eval_delay"),
    *idle_flags("evaluations have this trainer's own form", int, "--eval_accumulation_steps"),
    *idle_flags(_KEPT, truth, "--save_on_each_node --save_only_model "
                "--restore_callback_states_from_checkpoint --ignore_data_skip", default=False),
    *idle_flags(_KEPT, truth, "--save_safetensors", default=True),
    *idle_flags(_LOADING, truth, "--dataloader_drop_last --dataloader_persistent_workers --group_by_length",
                default=False),
    *idle_flags(_LOADING, truth, "--remove_unused_columns --dataloader_pin_memory", default=True),
    *idle_flags(_LOADING, int, "--preprocessing_num_workers --dataloader_num_workers --data_seed "
                "--dataloader_prefetch_factor --past_index"),
    *idle_flags(_LOADING, str, "--length_column_name --accelerator_config"),
    *idle_flags(_LOADING, truth, "--dispatch_batches --split_batches"),
    *idle_flags(_MEMORY, truth, "--gradient_checkpointing --auto_find_batch_size --use_ipex --use_mps_device "
                "--jit_mode_eval --use_liger_kernel --bf16_full_eval --fp16_full_eval "
                "--tpu_metrics_debug --use_legacy_prediction_loop", default=False),
    *idle_flags(_MEMORY, truth, "--average_tokens_across_devices", default=True),
    *idle_flags(_MEMORY, truth, "--tf32 --ddp_find_unused_parameters --ddp_broadcast_buffers"),
    *idle_flags(_MEMORY, str, "--deepspeed --fsdp --fsdp_config --fsdp_transformer_layer_cls_to_wrap "
                "--sharded_ddp --mp_parameters --ddp_backend --half_precision_backend --fp16_backend "
                "--fp16_opt_level --torchdynamo --ray_scope --gradient_checkpointing_kwargs "
                "--torch_compile_backend --torch_compile_mode --xpu_backend --optim_args "
                "--optim_target_modules --lr_scheduler_kwargs --liger_kernel_config --parallelism_config"),
    *idle_flags(_MEMORY, int, "--fsdp_min_num_params --ddp_bucket_cap_mb --ddp_timeout "
                "--torch_empty_cache_steps --tpu_num_cores"),
    *idle_flags("the launcher's variables say the rank", int, "--local_rank"),
    *idle_flags(_HUB, truth, "--push_to_hub --hub_always_push --hub_private_repo", default=False),
    *idle_flags(_HUB, str, "--hub_model_id --hub_strategy --hub_token --hub_revision --push_to_hub_model_id "
                "--push_to_hub_organization --push_to_hub_token"),
]  # fmt: skip
"""The flags of both programs: of the model, of the data, and TrainingArguments."""
