"""The flags of MLPerf's run_pretraining.py."""

from bertdata.cli.common.absl_flags import boolean, integer
from bertdata.cli.common.program_flags import Flag

TABLE = [
    Flag("--bert_config_file", meaning="bert_config.json, the shape of the model; required"),
    Flag("--input_file", meaning="TFRecord files, patterns separated by commas: the data to train on, or "
         "with --do_eval --nodo_train those to evaluate on; required"),
    Flag("--output_dir", key="output_dir", meaning="directory of checkpoints and results; required"),
    Flag("--init_checkpoint", meaning="checkpoint to take the weights from, unless output_dir has one"),
    Flag("--max_seq_length", integer, 128, "ids of an example", key="max_seq_length"),
    Flag("--max_predictions_per_seq", integer, 20, "masked ids of an example", key="max_predictions_per_seq"),
    Flag("--do_train", boolean, False, "train"),
    Flag("--do_eval", boolean, False, "evaluate, after training or without it"),
    Flag("--train_batch_size", integer, 32, "examples of a micro-step over all GPUs or cores"),
    Flag("--eval_batch_size", integer, 8, "examples of an evaluation step over all GPUs or cores"),
    Flag("--optimizer", default="adamw", values=("adamw", "lamb"), meaning="optimiser"),
    Flag("--learning_rate", float, 5e-5, "learning rate", key="base_learning_rate"),
    Flag("--poly_power", float, 1.0, "power of the rate's decay", key="power"),
    Flag("--num_train_steps", integer, 100000, "micro-steps; evaluation: the last to wait for"),
    Flag("--num_warmup_steps", integer, 10000, "micro-steps of warm-up"),
    Flag("--start_warmup_step", integer, 0, "micro-step at which warm-up starts; may be negative"),
    Flag("--save_checkpoints_steps", integer, 1000, "micro-steps between two checkpoints"),
    Flag("--max_eval_steps", integer, 100, "evaluation steps, each of one replica's batch"),
    Flag("--use_tpu", boolean, False, "train on TPU cores"),
    Flag("--num_tpu_cores", integer, 8, "cores, with --use_tpu"),
    Flag("--num_gpus", integer, 0, "GPUs of this machine; 0: the processor"),
    Flag("--steps_per_update", integer, 1, "micro-steps of an update"),
    Flag("--keep_checkpoint_max", integer, 5, "newest checkpoints that are kept"),
    Flag("--lamb_weight_decay_rate", float, 0.01, "LAMB: weight decay"),
    Flag("--lamb_beta_1", float, 0.9, "LAMB: decay rate of the first moment"),
    Flag("--lamb_beta_2", float, 0.999, "LAMB: decay rate of the second moment"),
    Flag("--log_epsilon", float, -6.0, "LAMB: epsilon as a power of ten"),
    Flag("--clip_by_global_norm_after_gradient_allreduce", boolean, False,
         "LAMB: clip once an update after the reduction, not each replica's micro-batches"),
    Flag("--iterations_per_loop", integer, 1000, idle=True, meaning="steps between two visits of the host"),
    Flag("--tpu_name", idle=True, meaning="the machine's own devices are used"),
    Flag("--tpu_zone", idle=True, meaning="as tpu_name"),
    Flag("--gcp_project", idle=True, meaning="as tpu_name"),
    Flag("--master", idle=True, meaning="as tpu_name"),
]  # fmt: skip
