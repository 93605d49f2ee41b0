"""The flags of Graphcore's run_squad.py of SDK 2.6, those that all its programs have included."""

from bertdata.cli.common.program_flags import SWITCH, Flag
from trainer.extensions.like.graphcore.values import yes_or_no

_MEMORY = "memory or code of IPUs; it changes no result"
_PRETRAINING = "of pre-training"
_GROUPBERT = "of GroupBERT, which this trainer does not have"
_FP32 = "weights and updates are in fp32 anyway"
_MOMENTS = "checkpoints always have the moments"
_LOGGED = "logs, and runs by name and time"
_READING = "SQuAD's files are read, by this trainer's own threads and in its own order"


_MAIN = [
    Flag("--task", values=("pretraining",), meaning="the program has one task, SQuAD, whatever it says"),
    Flag("--config", required=True, meaning="JSON file with values for flags; those given as flags go first"),
]

_TRAINING = [
    Flag("--micro-batch-size", int, meaning="features of a micro-batch of one replica", key="batch_size"),
    Flag("--gradient-accumulation-count", int, meaning="micro-batches of a replica in an update",
         key="accumulation"),
    Flag("--replicas", int, 1, "copies of the model", key="replicas"),
    Flag("--base-learning-rate", float, 2e-5, "learning rate after warm-up"),
    Flag("--num-train-steps", int, meaning="steps, each of device_iterations updates; go before --epochs"),
    Flag("--epochs", float, meaning="passes over the training file"),
    Flag("--loss-scaling", float, 1.0, "fixed loss scale", key="loss_scaling"),
    Flag("--steps-per-ckpts", int, 256, "steps between two checkpoints"),
    Flag("--optimizer", default="momentum", values=("sgd", "momentum", "adamw", "lamb"), meaning="optimiser"),
    Flag("--momentum", float, 0.984375, "momentum of the optimiser momentum"),
    Flag("--beta1", float, 0.9, "decay rate of the gradient's average, of lamb and adamw"),
    Flag("--beta2", float, 0.999, "decay rate of the squared gradient's, of lamb and adamw"),
    Flag("--weight-decay-rate", float, 0.0, "weight decay, of lamb and adamw"),
    Flag("--epsilon", float, 1e-4, "number added to denominators, of lamb and adamw"),
    Flag("--lr-schedule", default="exponential", values=("custom", "natural_exponential", "polynomial"),
         meaning="learning-rate schedule; a file may say polynomial_decay, which the flag cannot"),
    Flag("--lr-power", float, 1.0, "exponent of a polynomial schedule; only 1 is offered here"),
    Flag("--lr-schedule-by-step", meaning="rates of the schedule custom; only a file can give them"),
    Flag("--warmup", float, 0.1, "warm-up: a whole number of updates, or a share of them below 1"),
    Flag("--seed", int, key="seed", meaning="seed of weights, dropout and order (default: drawn; here 42)"),
    Flag("--wandb", SWITCH, key="wandb", meaning="report to Weights & Biases"),
    Flag("--save-path", default="checkpoints", meaning="directory for checkpoints"),
    Flag("--init-checkpoint", meaning="checkpoint to start from"),
    Flag("--restore-dir", meaning="directory of a run to continue"),
    Flag("--max-to-keep", int, 5, idle=True, meaning="the program keeps 5 checkpoints whatever it says"),
    Flag("--use-nvlamb", SWITCH, meaning="lamb: divide gradients by their global norm where it is above 1"),
    Flag("--use-debiasing", SWITCH, meaning="lamb and adamw: bias correction"),
    Flag("--use-mpclip", SWITCH, meaning="lamb: clip gradients as adamw does"),
    Flag("--reduction-type", default="mean", values=("sum", "mean"),
         meaning="gradients of an update's micro-batches, of all replicas, are averaged or added up"),
    Flag("--precision", default="16", values={"16": "fp16", "32": "fp32"}, key="precision",
         meaning="bits of weights and products"),
]  # fmt: skip

_MODEL = [
    Flag("--vocab-size", int, meaning="size of the vocabulary", key="vocab_size"),
    Flag("--hidden-size", int, meaning="width of the encoder", key="hidden_size"),
    Flag("--num-hidden-layers", int, meaning="layers of the encoder", key="num_hidden_layers"),
    Flag("--num-attention-heads", int, meaning="attention heads of a layer", key="num_attention_heads"),
    Flag("--intermediate-size", int, meaning="width of the feed-forward part", key="intermediate_size"),
    Flag("--hidden-act", int, meaning="activation; the program's encoder has gelu whatever it says"),
    Flag("--hidden-dropout-prob", float, meaning="dropout of embeddings and projections",
         key="hidden_dropout_prob"),
    Flag("--attention-probs-dropout-prob", float, meaning="dropout of the attention",
         key="attention_probs_dropout_prob"),
    Flag("--max-position-embeddings", int, meaning="longest sequence", key="max_position_embeddings"),
    Flag("--type-vocab-size", int, meaning="segment types", key="type_vocab_size"),
    Flag("--initializer-range", int, key="initializer_range",
         meaning="standard deviation of the first weights; only a file can give a fraction"),
    Flag("--use-qkv-bias", SWITCH, meaning="biases of query, key and value", key="use_qkv_bias"),
    Flag("--use-attention-projection-bias", yes_or_no, True, "a bias in the attention's projection",
         key="use_attention_projection_bias"),
]  # fmt: skip

_SQUAD = [
    Flag("--train-file", meaning="SQuAD file to fine-tune on", key="task_train_file"),
    Flag("--predict-file", meaning="SQuAD file to predict, and to evaluate on"),
    Flag("--output-dir", meaning="directory for predictions"),
    Flag("--seq-length", int, 128, "ids of a feature", key="max_seq_length"),
    Flag("--doc-stride", int, 128, "tokens from one span to the next", key="doc_stride"),
    Flag("--max-query-length", int, 64, "most tokens of a question", key="max_query_length"),
    Flag("--n-best-size", int, 20, "answers in the list of the best", key="n_best_size"),
    Flag("--max-answer-length", int, 30, "most tokens of an answer", key="max_answer_length"),
    Flag("--do-lower-case", SWITCH, meaning="lower-case the text", key="lower_case"),
    Flag("--version-2-with-negative", SWITCH, meaning="questions may have no answer (SQuAD 2.0)",
         key="version_2_with_negative"),
    Flag("--null-score-diff-threshold", float, 0.0, "no answer where its score is more than this above",
         key="null_score_diff_threshold"),
    Flag("--vocab-file", meaning="vocabulary of the checkpoint", key="vocab"),
    Flag("--do-training", SWITCH, meaning="fine-tune", key="do_train"),
    Flag("--do-predict", SWITCH, meaning="predict", key="do_predict"),
    Flag("--do-evaluation", SWITCH, meaning="score the predictions; only with --do-predict"),
]  # fmt: skip

_IPU = [
    Flag("--device-iterations", int, 1, "updates of a step"),
    Flag("--available-memory-proportion", float, 0.23, "share of the IPUs' memory for products", count="+"),
    Flag("--pipeline-schedule", default="Interleaved", values=("Grouped", "Interleaved", "Sequential"),
         meaning="order of the stages' work on IPUs"),
    Flag("--variable-offloading", yes_or_no, True, "optimiser's state off the chip"),
    Flag("--min-remote-tensor-size", int, 128, "bytes from which it is there"),
    Flag("--replicated-tensor-sharding", SWITCH, meaning="divide the optimiser's state among replicas"),
    Flag("--stochastic-rounding", yes_or_no, True, "round stochastically on IPUs"),
    Flag("--no-outlining", yes_or_no, False, "repeat code on IPUs instead of calling it"),
    Flag("--enable_recomputation", SWITCH, True, "recompute activations in the backward pass"),
    Flag("--fp-exceptions", SWITCH, meaning="stop IPUs at a floating-point exception"),
    Flag("--partials-type", default="half", values=("half", "float"), meaning="type of partial sums on IPUs"),
    Flag("--matmul-serialize-factor", int, 6, "parts of the product with the word embeddings"),
    Flag("--compile-only", SWITCH, key="compile_only", meaning="compile for IPUs and stop"),
]  # fmt: skip

_LOGS = [Flag("--steps-per-logs", int, 1, "steps between two log lines")]

_WITHOUT_EFFECT = [
    Flag("--global-batch-size", int, meaning=_PRETRAINING, idle=True),
    Flag("--loss-scaling-by-step", meaning=_PRETRAINING, idle=True),
    Flag("--static-mask", SWITCH, meaning=_PRETRAINING, idle=True),
    Flag("--max-predictions-per-seq", int, 20, meaning=_PRETRAINING, idle=True),
    Flag("--duplicate-factor", int, 5, meaning=_PRETRAINING, idle=True),
    Flag("--disable-acc", SWITCH, meaning=_PRETRAINING, idle=True),
    Flag("--use-cls-layer", yes_or_no, True, meaning=_PRETRAINING, idle=True),
    Flag("--use-prediction-bias", yes_or_no, True, meaning=_PRETRAINING, idle=True),
    Flag("--dataset-repeat", int, 1, meaning=_PRETRAINING, idle=True),
    Flag("--glue-dropout-prob", float, 0.1, meaning=_PRETRAINING, idle=True),
    Flag("--groupbert-ffn-output-groups", int, 4, meaning=_GROUPBERT, idle=True),
    Flag("--groupbert-conv-kernel-size", int, 7, meaning=_GROUPBERT, idle=True),
    Flag("--groupbert-conv-group-size", int, 16, meaning=_GROUPBERT, idle=True),
    Flag("--groupbert", SWITCH, meaning=f"refused: {_GROUPBERT}"),
    Flag("--use-qkv-split", SWITCH, meaning=_MEMORY, idle=True),
    Flag("--max-cross-replica-sum-buffer-size", int, 10 * 1024 * 1024, meaning=_MEMORY, idle=True),
    Flag("--max-reduce-scatter-buffer-size", int, 0, meaning=_MEMORY, idle=True),
    Flag("--scheduler", default="CLUSTERING", meaning=_MEMORY, idle=True),
    Flag("--recomputation-mode", default="RecomputeAndBackpropagateInterleaved", meaning=_MEMORY, idle=True),
    Flag("--pipeline-stages", meaning=_MEMORY, idle=True),
    Flag("--device-mapping", meaning=_MEMORY, idle=True),
    Flag("--sync-replicas-independently", SWITCH, meaning=_MEMORY, idle=True),
    Flag("--execution-profile", SWITCH, meaning=_MEMORY, idle=True),
    Flag("--memory-profile", SWITCH, meaning=_MEMORY, idle=True),
    Flag("--profile-dir", default="./", meaning=_MEMORY, idle=True),
    Flag("--progress-bar", default="auto", values=("auto", "true", "false"), meaning=_MEMORY, idle=True),
    Flag("--increase-optimiser-precision", SWITCH, meaning=_FP32, idle=True),
    Flag("--use-lr-fp32", SWITCH, meaning=_FP32, idle=True),
    Flag("--weight-norm-clip", float, 0.0, "the program reads it and does nothing with it", idle=True),
    Flag("--restore-optimiser-from-checkpoint", SWITCH, True, meaning=_MOMENTS, idle=True),
    Flag("--save-optimiser-to-checkpoint", SWITCH, True, meaning=_MOMENTS, idle=True),
    Flag("--wandb-name", meaning=_LOGGED, idle=True),
    Flag("--name", meaning=_LOGGED, idle=True),
    Flag("--log-all-workers", SWITCH, meaning=_LOGGED, idle=True),
    Flag("--log-dir", default="./logs/", meaning=_LOGGED, idle=True),
    Flag("--name-suffix", meaning=_LOGGED, idle=True),
    Flag("--steps-per-tensorboard", int, 0, meaning=_LOGGED, idle=True),
    Flag("--verbose-logging", SWITCH, meaning=_LOGGED, idle=True),
    Flag("--parallel-io-threads", int, 4, meaning=_READING, idle=True),
    Flag("--sloppy-parallel-interleave", bool, True, meaning=_READING, idle=True),
    Flag("--generated-data", SWITCH, meaning=_READING, idle=True),
    Flag("--synthetic-data", SWITCH, meaning=_READING, idle=True),
    Flag("--tfrecord-dir", meaning=_READING, idle=True),
    Flag("--num-synthetic-dataset-samples", int, 1000000, meaning=_READING, idle=True),
    Flag("--ipu-replica-identical-seed", bool, False, meaning=_READING, idle=True),
]

TABLE = [*_MAIN, *_TRAINING, *_MODEL, *_SQUAD, *_IPU, *_LOGS, *_WITHOUT_EFFECT]
