"""The flags of Graphcore's run_squad.py of SDK 2.6, those that all its programs have included."""

from bertdata.cli.common.program_flags import SWITCH, Flag
from trainer.extensions.like.graphcore.values import yes_or_no
from trainer.extensions.like.program import idle_flags

_MEMORY = "memory or code of IPUs; it changes no result"
_PRETRAINING = "of pre-training"
_GROUPBERT = "of GroupBERT, which this trainer does not have"
_LOGGED = "logs, and runs by name and time"
_READING = "SQuAD's files are read, by this trainer's own threads and in its own order"


TABLE = [
    Flag("--task", values=("pretraining",), meaning="the program has one task, SQuAD, whatever it says"),
    Flag("--config", required=True, meaning="JSON file with values for flags; those given as flags go first"),
    # training
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
    # model
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
    # SQuAD
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
    # IPUs
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
    # logs
    Flag("--steps-per-logs", int, 1, "steps between two log lines"),
    # without effect
    *idle_flags(_PRETRAINING, int, "--global-batch-size --max-predictions-per-seq=20 --duplicate-factor=5 "
                "--dataset-repeat=1"),
    *idle_flags(_PRETRAINING, str, "--loss-scaling-by-step"),
    *idle_flags(_PRETRAINING, SWITCH, "--static-mask --disable-acc"),
    *idle_flags(_PRETRAINING, yes_or_no, "--use-cls-layer=true --use-prediction-bias=true"),
    *idle_flags(_PRETRAINING, float, "--glue-dropout-prob=0.1"),
    *idle_flags(_GROUPBERT, int, "--groupbert-ffn-output-groups=4 --groupbert-conv-kernel-size=7 "
                "--groupbert-conv-group-size=16"),
    Flag("--groupbert", SWITCH, meaning=f"refused: {_GROUPBERT}"),
    *idle_flags(_MEMORY, SWITCH, "--use-qkv-split --sync-replicas-independently --execution-profile "
                "--memory-profile"),
    *idle_flags(_MEMORY, int, f"--max-cross-replica-sum-buffer-size={10 * 1024 * 1024} "
                "--max-reduce-scatter-buffer-size=0"),
    *idle_flags(_MEMORY, str, "--scheduler=CLUSTERING --pipeline-stages --device-mapping --profile-dir=./ "
                "--recomputation-mode=RecomputeAndBackpropagateInterleaved"),
    *idle_flags(_MEMORY, str, "--progress-bar=auto", values=("auto", "true", "false")),
    *idle_flags("weights and updates are in fp32 anyway", SWITCH,
                "--increase-optimiser-precision --use-lr-fp32"),
    *idle_flags("the program reads it and does nothing with it", float, "--weight-norm-clip=0.0"),
    *idle_flags("checkpoints always have the moments", SWITCH, "--restore-optimiser-from-checkpoint "
                "--save-optimiser-to-checkpoint", default=True),
    *idle_flags(_LOGGED, str, "--wandb-name --name --log-dir=./logs/ --name-suffix"),
    *idle_flags(_LOGGED, SWITCH, "--log-all-workers --verbose-logging"),
    *idle_flags(_LOGGED, int, "--steps-per-tensorboard=0"),
    *idle_flags(_READING, int, "--parallel-io-threads=4 --num-synthetic-dataset-samples=1000000"),
    *idle_flags(_READING, bool, "--sloppy-parallel-interleave=true --ipu-replica-identical-seed="),
    *idle_flags(_READING, SWITCH, "--generated-data --synthetic-data"),
    *idle_flags(_READING, str, "--tfrecord-dir"),
]  # fmt: skip
