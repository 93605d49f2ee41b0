"""The flags of Graphcore's run_squad.py of SDK 2.6, those that all its programs have included."""

from bertdata.cli.common.program_flags import SWITCH, Flag
from trainer.programs.flag_tables import idle_flags, own_flags, truth

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
    *own_flags(int, "--vocab-size --hidden-size --num-hidden-layers --num-attention-heads "
               "--intermediate-size --max-position-embeddings --type-vocab-size --doc-stride=128 "
               "--max-query-length=64 --n-best-size=20 --max-answer-length=30"),
    *own_flags(float, "--hidden-dropout-prob --attention-probs-dropout-prob --null-score-diff-threshold=0.0"),
    Flag("--replicas", int, 1, "copies of the model", key="replicas"),
    Flag("--loss-scaling", float, 1.0, "fixed loss scale", key="loss_scaling"),
    Flag("--do-predict", SWITCH, meaning="predict", key="do_predict"),
    *own_flags(SWITCH, "--wandb --use-qkv-bias --version-2-with-negative --compile-only"),
    *own_flags(truth, "--use-attention-projection-bias=true"),
    Flag("--base-learning-rate", float, 2e-5, "learning rate after warm-up"),
    Flag("--num-train-steps", int, meaning="steps, each of device_iterations updates; go before --epochs"),
    Flag("--epochs", float, meaning="passes over the training file"),
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
    Flag("--save-path", default="checkpoints", meaning="directory for checkpoints"),
    Flag("--init-checkpoint", meaning="checkpoint to start from"),
    Flag("--restore-dir", meaning="directory of a run to continue"),
    Flag("--max-to-keep", int, 5, idle=True, meaning="the program keeps 5 checkpoints whatever it says"),
    Flag("--use-nvlamb", SWITCH, meaning="lamb: divide gradients by their global norm where it is above 1"),
    Flag("--use-debiasing", SWITCH, meaning="lamb and adamw: bias correction"),
    Flag("--use-mpclip", SWITCH, meaning="lamb: clip gradients as adamw does"),
    Flag("--reduction-type", default="mean", values=("sum", "mean"), key="reduction_type",
         meaning="gradients of an update's micro-batches, of all replicas, are averaged or added up"),
    Flag("--precision", default="16", values={"16": "fp16", "32": "fp32"}, key="precision",
         meaning="bits of weights and products"),
    # model
    Flag("--hidden-act", int, meaning="activation; the program's encoder has gelu whatever it says"),
    Flag("--initializer-range", int, key="initializer_range",
         meaning="standard deviation of the first weights; only a file can give a fraction"),
    # SQuAD
    Flag("--train-file", meaning="SQuAD file to fine-tune on", key="task_train_file"),
    Flag("--predict-file", meaning="SQuAD file to predict, and to evaluate on"),
    Flag("--output-dir", meaning="directory for predictions"),
    Flag("--seq-length", int, 128, "ids of a feature", key="max_seq_length"),
    Flag("--do-lower-case", SWITCH, meaning="lower-case the text", key="lower_case"),
    Flag("--vocab-file", meaning="vocabulary of the checkpoint", key="vocab"),
    Flag("--do-training", SWITCH, meaning="fine-tune", key="do_train"),
    Flag("--do-evaluation", SWITCH, meaning="score the predictions; only with --do-predict"),
    # IPUs
    Flag("--device-iterations", int, 1, "updates of a step", key="batches_per_step"),
    Flag("--enable_recomputation", SWITCH, True, "recompute activations in the backward pass",
         key="enable_recomputation"),
    *own_flags(float, "--available-memory-proportion=0.23", count="+"),
    *own_flags(str, "--pipeline-schedule=Interleaved", values=("Grouped", "Interleaved", "Sequential")),
    *own_flags(str, "--partials-type=half", values=("half", "float")),
    *own_flags(truth, "--variable-offloading=true --stochastic-rounding=true --no-outlining=false"),
    *own_flags(int, "--min-remote-tensor-size=128 --matmul-serialize-factor=6"),
    *own_flags(SWITCH, "--replicated-tensor-sharding --fp-exceptions"),
    # logs
    Flag("--steps-per-logs", int, 1, "steps between two log lines"),
    # without effect
    *idle_flags(_PRETRAINING, int, "--global-batch-size --max-predictions-per-seq=20 --duplicate-factor=5 "
                "--dataset-repeat=1"),
    *idle_flags(_PRETRAINING, str, "--loss-scaling-by-step"),
    *idle_flags(_PRETRAINING, SWITCH, "--static-mask --disable-acc"),
    *idle_flags(_PRETRAINING, truth, "--use-cls-layer=true --use-prediction-bias=true"),
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
