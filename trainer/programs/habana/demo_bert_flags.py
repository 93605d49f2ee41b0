"""Flags of Habana's demo_bert.py by version and sub-command."""

from collections.abc import Mapping, Sequence

from bertdata.cli.common.program_flags import SWITCH, Flag
from trainer.programs.flag_tables import idle_flags, own_flags, with_rows

Tables = Mapping[str, Sequence[Flag]]

_MODES = ("eager", "graph", "lazy")
_MODE = "execution of operations on the card"
_BY_SIZE = f"{_MODE} (default: lazy for large, else eager)"
_NAMED = (
    "fine-tuning: the published checkpoint of this size to start from; pre-training: no effect but on the "
)
_NAMED += "default of --mode"

_COMMON = [
    Flag("--model_name_or_path", values=("base", "large"), required=True, meaning=_NAMED),
    Flag("--data_type", values=("fp32", "bf16"), required=True, key="precision", meaning="precision"),
    Flag("-o --output_dir", default="/tmp", meaning="pre-training: checkpoints go to results/checkpoints "
         "in it; fine-tuning: to a directory of the task's name"),
    Flag("--mode", values=_MODES, meaning=_BY_SIZE),
    Flag("-d --device", default="hpu", meaning="hpu, else a processor"),
    *idle_flags("nothing is downloaded", str, "--cache_dir"),
    Flag("--world_size", int, 1, "cards; more than 1 starts as many workers"),
    Flag("--dist", SWITCH, meaning="fine-tuning with --world_size 1: 8 cards"),
    *idle_flags("workers are started without mpirun anyway", SWITCH, "--no_mpirun"),
]  # fmt: skip
_PRETRAINING = [
    *_COMMON,
    Flag("-p --data_dir", count=2, meaning="directories of .hdf5 files, phase 1's and phase 2's (default: "
         "those in /software/data/pytorch/bert_pretraining)"),
    Flag("-t --task_name", default="bookswiki", idle=True, meaning="the data are those of --data_dir"),
    Flag("-b --batch_size", int, (64, 8), "examples of a micro-batch of one card", count=2),
    Flag("-r --learning_rate", float, (6e-3, 4e-3), "learning rate", key="base_learning_rate", count=2),
    Flag("-s --max_seq_length", int, (128, 512), "ids of an example", key="max_seq_length", count=2),
    Flag("--max_steps", int, (7038, 1563), "updates", key="steps", count=2),
    Flag("-wp --warmup", float, (0.2843, 0.128), "warm-up as a share of the updates", key="warmup", count=2),
    Flag("-st --save_steps", int, (200, 200), "updates between two checkpoints", "checkpoint_every", count=2),
    Flag("--accumulate_gradients", SWITCH,
         meaning="accumulate train_batch_size / batch_size micro-batches; else one is the whole update"),
    Flag("--config_file", meaning="bert_config.json (default: BERT-Large, whatever the model's name)"),
    Flag("--phase", int, values=(1, 2), meaning="train this phase only"),
    Flag("--steps_this_run", int, (-1, -1), "stop at this update of the phase; -1: at max_steps", count=2),
    Flag("--init_checkpoint", count=2, meaning="checkpoints to start the phases from, with their moments; "
         "None: none, which for phase 2 is phase 1's last"),
    *idle_flags("it sums once an update anyway", SWITCH, "--allreduce_post_accumulation"),
    *idle_flags("on hpu the program sums in fp32", SWITCH, "--allreduce_post_accumulation_fp16"),
    *idle_flags("", SWITCH, "--create_logfile"),
    Flag("--train_batch_size", int, (8192, 4096), "examples of an update of one card", count=2),
    *own_flags(int, "--seed=42"),
]  # fmt: skip
_FINETUNING = [
    *_COMMON,
    Flag("-t --task_name", default="mrpc", values=("mrpc", "squad"), key="task", meaning="task"),
    Flag("-r --learning_rate", float, 2e-5, "learning rate", key="base_learning_rate"),
    Flag("-s --max_seq_length", int, 128, "ids of a feature", key="max_seq_length"),
    Flag("-b --batch_size", int, 8, "features of an update of one card", key="batch_size"),
    Flag("-v --per_device_eval_batch_size", int, 8, "features of an evaluation batch", key="eval_batch_size"),
    Flag("-e --num_train_epochs", int, 1, "passes over the training file", key="num_train_epochs"),
    Flag("-l --logging_steps", int, 1, "updates between two log lines", key="log_every"),
    Flag("--max_steps", int, meaning="updates of the schedule, in place of the epochs"),
    Flag("--do_eval", SWITCH, meaning="evaluate at the end", key="do_eval"),
    *own_flags(int, "--seed=42"),
    Flag("-ds --doc_stride", int, 128, "SQuAD: tokens from one span to the next", key="doc_stride"),
    Flag("-st --save_steps", int, meaning="updates between two checkpoints (default: 500)"),
]

FIRST: Tables = {
    "pretraining": [*_PRETRAINING, *idle_flags("", float, "--tqdm_smoothing")],
    "finetuning": [
        *_FINETUNING,
        Flag("-p --data_dir", required=True, key="task_dir", meaning="directory of the task's files"),
        Flag("-tf --train_file", default="train-v1.1.json", meaning="SQuAD: training file in data_dir"),
        Flag(
            "-pf --predict_file", default="dev-v1.1.json", meaning="SQuAD: file to evaluate on, in data_dir"
        ),
        Flag("-mt --model_type", default="bert", meaning="SQuAD: kind of model; bert alone is known here"),
    ],
}
"""Version 0.15.4."""

_GRAPH_IS_EAGER = Flag("--mode", values=_MODES, meaning=f"{_BY_SIZE}; graph is eager in this version")
_GRAPH_IS_LAZY = Flag("--mode", str, "lazy", f"{_MODE}; graph is lazy in this version", values=_MODES)
_SECOND: Tables = {
    "pretraining": with_rows(
        _PRETRAINING, _GRAPH_IS_EAGER,
        *idle_flags("with --init_checkpoint it names files, else nothing", int, "--resume_step", count=2),
        Flag("--resume_from_checkpoint", SWITCH,
             meaning="continue from the last checkpoint in the output directory"),
        Flag("--seed", int, 12439, "seed of weights, dropout and order", key="seed"),
    ),
    "finetuning": with_rows(
        _FINETUNING, _GRAPH_IS_EAGER,
        Flag("--dataset_name", default="mrpc", meaning="data set that the program downloads; SQuAD needs "
             "squad. Here its files are those of -- --data-dir"),
    ),
}  # fmt: skip
_LATER_COMMON = [
    Flag("--model_name_or_path", required=True, meaning=_NAMED,
         values=("base", "large", "roberta-base", "roberta-large")),
    Flag("--process_per_node", int, 0, "cards of a host, where --world_size counts those of several"),
]  # fmt: skip
_THIRD: Tables = {
    "pretraining": with_rows(
        _SECOND["pretraining"], *_LATER_COMMON,
        Flag("--train_batch_size", int, (65536, 32768), "examples of an update of all cards", count=2),
    ),
    "finetuning": with_rows(_SECOND["finetuning"], *_LATER_COMMON),
}  # fmt: skip
_FOURTH: Tables = {
    "pretraining": with_rows(
        _THIRD["pretraining"], _GRAPH_IS_LAZY,
        Flag("--enable_packed_data_mode", SWITCH, meaning="the data are packed rows of several sequences"),
        Flag("--avg_seq_per_pack", float, (1.2, 2.0), "sequences of a pack, which divide the accumulation",
             count=2),
    ),
    "finetuning": _THIRD["finetuning"],
}  # fmt: skip
LATER: Mapping[str, Tables] = {"1.0.0": _SECOND, "1.1.0": _THIRD, "1.4.1": _FOURTH}
"""The versions after it whose flags or defaults differ. From 1.5.0 on the program fine-tunes only."""
