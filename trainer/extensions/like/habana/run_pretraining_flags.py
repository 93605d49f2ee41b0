"""Flags of Habana's run_pretraining.py by version."""

from collections.abc import Mapping, Sequence

from bertdata.cli.common.program_flags import SWITCH, Flag


def true(text: str) -> bool:
    """The program's reading of some values: true in any case is true, all else false."""
    return text.lower() == "true"


_COMMON = [
    Flag("--input_dir", required=True, key="train_data", meaning="directory of .hdf5 files"),
    Flag("--config_file", required=True, key="model_config", meaning="bert_config.json of the model"),
    Flag("--bert_model", default="bert-large-uncased", idle=True, meaning="--config_file is the model"),
    Flag("--output_dir", required=True, key="output_dir", meaning="directory for checkpoints"),
    Flag("--init_checkpoint", meaning="with --resume_from_checkpoint: weights and moments to start from"),
    Flag("--max_seq_length", int, 512, "ids of an example", key="max_seq_length"),
    Flag("--max_predictions_per_seq", int, 80, "largest number of masked ids", key="max_predictions_per_seq"),
    Flag("--train_batch_size", int, 32, "examples of an update of one card"),
    Flag("--learning_rate", float, 5e-5, "learning rate", key="base_learning_rate"),
    Flag("--num_train_epochs", float, 3.0, idle=True, meaning="the program counts updates"),
    Flag("--max_steps", float, 1000, "updates"),
    Flag("--warmup_proportion", float, 0.01, "warm-up as a share of the updates", key="warmup"),
    Flag("--local_rank", int, idle=True, meaning="the launcher's variables tell it"),
    Flag("--seed", int, 42, "seed; the program adds a worker's number, -1 when alone. Here it seeds one "
         "stream for all workers", key="seed"),
    Flag("--gradient_accumulation_steps", int, 1, "micro-batches of an update; divides train_batch_size"),
    Flag("--fp16", SWITCH, meaning="16 bits by apex, on CUDA"),
    Flag("--amp", SWITCH, meaning="as --fp16"),
    Flag("--loss_scale", float, 0.0, "loss scale of fp16; 0: adjusted", key="loss_scaling"),
    Flag("--init_loss_scale", int, 2**20, "initial value of an adjusted loss scale", key="init_loss_scale"),
    Flag("--log_freq", float, 1.0, "updates between two log lines"),
    Flag("--checkpoint_activations", SWITCH, idle=True, meaning="saves memory, changes no result"),
    Flag("--resume_from_checkpoint", SWITCH, meaning="continue from output_dir, or from --init_checkpoint"),
    Flag("--resume_step", int, -1, "checkpoint to continue, counted over both phases; -1: the last"),
    Flag("--num_steps_per_checkpoint", int, 100, "updates between two checkpoints", key="checkpoint_every"),
    Flag("--skip_checkpoint", SWITCH, meaning="no checkpoints; here one, at the end"),
    Flag("--phase2", SWITCH, meaning="with --resume_from_checkpoint: continue phase 1, or phase 2 where it "
         "has begun"),
    Flag("--phase1_end_step", int, 7038, "the last checkpoint of phase 1"),
    Flag("--allreduce_post_accumulation", SWITCH, idle=True, meaning="it is done anyway"),
    Flag("--allreduce_post_accumulation_fp16", SWITCH, idle=True, meaning="on hpu the program sums in fp32"),
    Flag("--do_train", SWITCH, meaning="train; must be given"),
    Flag("--json-summary", default="results/dllogger.json", key="json_summary",
         meaning="file of dllogger's lines"),
    Flag("--use_env", SWITCH, idle=True, meaning="the launcher's variables are read anyway"),
    Flag("--disable_progress_bar", SWITCH, meaning="plain lines even on a terminal", key="no_progress_bar"),
    Flag("--steps_this_run", int, -1, "stop at this update of the phase; -1: at max_steps"),
    Flag("--no_cuda", SWITCH, meaning="train on a processor"),
    Flag("--use_habana", SWITCH, meaning="train on Gaudi"),
    Flag("--use_fused_lamb", SWITCH, meaning="the vendor's LAMB in place of PyTorch operations"),
]  # fmt: skip

FIRST: Mapping[str, Sequence[Flag]] = {
    "": [
        *_COMMON,
        Flag("--tqdm_smoothing", float, idle=True),
        Flag("--use_jit_trace", SWITCH, meaning="graph mode"),
        Flag("--use_lazy_mode", SWITCH, meaning="lazy mode; without it and --use_jit_trace: eager"),
        Flag("--hmp", SWITCH, meaning="bf16"),
        Flag("--hmp_bf16", default="", idle=True, meaning="the device chooses the operations in bf16"),
        Flag("--hmp_fp32", default="", idle=True, meaning="the device chooses the operations in fp32"),
        Flag("--hmp_opt_level", default="O1", idle=True),
        Flag("--hmp_verbose", SWITCH, idle=True),
    ]
}
"""Version 0.15.4."""

LATER: Mapping[str, Mapping[str, Sequence[Flag]]] = {
    "1.23": {
        "": [
            *_COMMON,
            Flag("--autocast", SWITCH, meaning="bf16"),
            Flag("--use_torch_compile", SWITCH, meaning="compile the model: graph mode"),
            Flag("--use_lazy_mode", true, True, idle=True, meaning="PT_HPU_LAZY_MODE decides it"),
            Flag("--enable_packed_data_mode", true, True, "the data are packed rows of several sequences; "
                 "their mean number, of DIR_metadata.json beside the data, divides the accumulation"),
            Flag("--use_zero_optimizer", true, False, idle=True, meaning="it saves memory only"),
            Flag("--profile", bool, False, "record a profile; any value is true", key="profile"),
            Flag("--profile_steps", default="0", idle=True, meaning="the profile is of four updates"),
            Flag("--tensorboard_logdir", default="", idle=True, meaning="it is written to output_dir"),
            Flag("--use-hpu-graphs", bool, False, idle=True),
            Flag("--no_compiled_autograd", SWITCH, idle=True),
            Flag("--log_memory_usage", default=False, idle=True),
            Flag("--enable-tensorboard-logging", SWITCH, meaning="TensorBoard's files", key="tensorboard"),
        ]
    }
}  # fmt: skip
