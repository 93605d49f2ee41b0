"""The flags of Graphcore's run_pretraining.py, each with hyphens or underscores as its source has it."""

from bertdata.cli.common.program_flags import SWITCH, Flag
from trainer.programs.flag_tables import own_flags

TABLE = [
    Flag("--task", values=("pretraining",), meaning="the program has this task only"),
    Flag("--config", required=True, meaning="JSON file with values for flags; the command line goes first"),
    Flag("--restore_path", meaning="continue from this checkpoint, or the newest in this directory"),
    *own_flags(str, "--start-from-ckpt"),
    *own_flags(int, "--batch-size --vocab_size=31528 --num_hidden_layers=12 "
               "--num_attention_heads=12 --max_position_embeddings=512 --type_vocab_size=16"),
    *own_flags(float, "--hidden_dropout_prob=0.1 --attention_probs_dropout_prob=0.1 "
               "--initializer_range=0.02"),
    Flag("--replicas", int, 1, "copies of the model", key="replicas"),
    Flag("--loss-scaling", float, 1.0, "fixed loss scale", key="loss_scaling"),
    *own_flags(SWITCH, "--wandb --compile-only"),
    # data
    Flag("--train-file", meaning="TFRecord files or patterns, by commas"),
    Flag("--test-file", idle=True, meaning="the program does not evaluate"),
    Flag("--sequence-length --seq-length", int, 128, "ids of an example", key="max_seq_length"),
    Flag("--max-predictions-per-seq --max_predictions_per_seq", int, 20,
         "largest number of masked positions in an example", key="max_predictions_per_seq"),
    Flag("--parallell-io-threads", int, 4, idle=True, meaning="this trainer has threads of its own"),
    Flag("--generated-data", SWITCH, key="generated_data",
         meaning="train on random examples from the host; goes before --train-file"),
    # training
    Flag("--base-learning-rate", float, 2e-5, "learning rate after warm-up"),
    Flag("--epochs", float, 300.0, "passes over the examples but for duplicates, without --steps"),
    Flag("--steps", int, 0, "steps, each of batches_per_step updates; 0: those of the epochs"),
    Flag("--steps-per-ckpts", int, 10, "steps between two checkpoints"),
    Flag("--pipeline-depth", int, 1, "micro-batches of a replica in an update, above 1", key="accumulation"),
    Flag("--recomputation-mode", default="RecomputeAndBackpropagateInterleaved", idle=True,
         values=("Auto", "RecomputeThenBackpropagate", "RecomputeAndBackpropagateInterleaved"),
         meaning="memory of IPUs; it changes no result"),
    Flag("--optimiser", default="SGD", values=("SGD", "momentum", "lamb", "adamw"), meaning="optimiser"),
    Flag("--momentum", float, 0.984375, "momentum of the optimiser momentum"),
    Flag("--lr-schedule", default="natural_exponential",
         values=("custom", "polynomial_decay", "natural_exponential"), meaning="learning-rate schedule",
         key="lr_schedule"),
    Flag("--warmup", float, 0.0, "warm-up: a whole number of steps, or a share of them below 1"),
    Flag("--offload-weight-update-variables", bool, True, idle=True,
         meaning="memory of IPUs; it changes no result"),
    Flag("--optimiser-epsilon", float, 1e-4, "number added to denominators, of lamb and adamw"),
    Flag("--increase-optimiser-precision", SWITCH, idle=True, meaning="weights are updated in fp32 anyway"),
    Flag("--optimiser_beta1", float, 0.9, "decay rate of the gradient's average, of lamb and adamw"),
    Flag("--optimiser_beta2", float, 0.999, "decay rate of the squared gradient's, of lamb and adamw"),
    Flag("--use-nvlamb", SWITCH, meaning="lamb: divide gradients by their global norm where it is above 1"),
    Flag("--use-debiasing", SWITCH, meaning="lamb: bias correction"),
    Flag("--seed", int, key="seed", meaning="seed of weights, dropout and order (default: drawn; here 42)"),
    Flag("--do_train", bool, True, "train; any word is true, only a file can say false", key="do_train"),
    Flag("--duplication_factor", int, 5, "examples of the same text in the data; an epoch counts one"),
    Flag("--ckpt-model-only", SWITCH, idle=True, meaning="checkpoints always have the moments too"),
    Flag("--restore-optimiser-from-ckpt", SWITCH, meaning="take the moments of the checkpoint too"),
    # IPUs
    Flag("--precision", int, 16, "bits of weights and products", values=(16, 32)),
    Flag("--batches-per-step --batches_per_step", int, 1, "updates of a step", key="batches_per_step"),
    *own_flags(str, "--pipeline-schedule=Grouped", values=("Grouped", "Interleaved", "Sequential")),
    *own_flags(str, "--partials-type=half", values=("float", "half")),
    *own_flags(str, "--embeddings_placement=two_ipus",
               values=("two_ipus", "same_ipu", "same_as_hidden_layers")),
    *own_flags(float, "--available_memory_proportion=0.23", count="+"),
    *own_flags(int, "--hidden_layers_per_stage=1"),
    *own_flags(SWITCH, "--disable_graph_outlining --fp_exceptions"),
    Flag("--outline_hidden_layers", SWITCH, True, idle=True, meaning="code size on IPUs"),
    Flag("--stochastic_rounding", SWITCH, True, "round stochastically on IPUs", key="stochastic_rounding"),
    Flag("--xla_recompute", SWITCH, True, idle=True, meaning="memory of IPUs; it changes no result"),
    Flag("--max-cross-replica-sum-buffer-size", int, 10 * 1024 * 1024, idle=True, meaning="memory of IPUs"),
    Flag("--scheduler", default="", idle=True, meaning="order of instructions on IPUs",
         values=("Clustering", "PostOrder", "LookAhead", "ShortestPath")),
    Flag("--logits_matmul_serialization_factor", int, 4, idle=True, meaning="memory of IPUs"),
    Flag("--reduction-type", default="sum", values=("sum", "mean"), key="reduction_type",
         meaning="gradients of an update's micro-batches are added up, or averaged; over replicas averaged"),
    Flag("--weight-norm-clip", float, 0.0, idle=True, meaning="the program reads it and clips nothing"),
    Flag("--fix_synth_seed", SWITCH, idle=True, meaning="generated data depend on --seed alone"),
    Flag("--best-ckpt-min-steps", int, 0, idle=True, meaning="no checkpoint is kept for its loss"),
    # logs
    Flag("--log-dir", default="./logs/", idle=True, meaning="logs go to the checkpoints' directory"),
    Flag("--name-suffix", idle=True, meaning="runs have no directories by name and time here"),
    Flag("--steps-per-logs", int, 1, "steps between two log lines"),
    # model
    Flag("--hidden_size", int, 768, "width of the encoder; the feed-forward part has four times that",
         key="hidden_size"),
    Flag("--hidden_act", default="gelu", meaning="activation before the word logits; the encoder's is gelu"),
    Flag("--use_attention_projection_bias", bool, False,
         "a bias in the attention's projection; any word is true", key="use_attention_projection_bias"),
    Flag("--use_cls_layer", bool, False, "a dense layer before the word logits; any word is true",
         key="use_cls_layer"),
    Flag("--use_qkv_bias", bool, False, "biases of query, key and value; any word is true",
         key="use_qkv_bias"),
]  # fmt: skip

PRINTED = {"--sequence-length": "--seq-length", "--batches-per-step": "--batches_per_step"}
"""Flags that the README prints and the program refuses, with those that it means."""

ANY_WORD = ("do_train", "use_attention_projection_bias", "use_cls_layer", "use_qkv_bias")
FILE_KEYS = ("checkpoint_path", "weight_decay", "decay_steps", "decay_rate", "lr_schedule_by_step")
"""Keys of published files that are no flags and that the program looks up."""

IDLE_FILE_KEYS = (
    *("best_checkpoint_start_epoch", "best_loss", "checkpoint_model", "do_validation", "embedding_cut_num"),
    *("grad_scale", "init_checkpoint", "intermediate_size", "ipu_function", "no_logs", "no_outlining"),
    *("profile_execution", "profiling", "report_directory", "restore_dir", "restoring", "variable_filter"),
    "variable_offloading",
)
"""The others."""
