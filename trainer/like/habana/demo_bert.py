"""Habana's demo_bert.py: both phases of pre-training one after the other, or fine-tuning, on Gaudi."""

from typing import Any

from bertdata.cli.common.program_flags import SWITCH, Flag, Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.like.constants import BERT_LARGE, NVLAMB, PRETRAINED, TRANSFORMERS_ADAMW, product
from trainer.like.program import Meaning, Program, phase_keys

_COMMON = [
    Flag("--model_name_or_path", values=("base", "large"), required=True,
         meaning="fine-tuning: the published checkpoint of this size to start from; pre-training: no effect but "
         "on the default of --mode"),
    Flag("--data_type", values=("fp32", "bf16"), required=True, key="precision", meaning="precision"),
    Flag("-o --output_dir", default="/tmp", meaning="pre-training: checkpoints go to results/checkpoints in it; "
         "fine-tuning: to a directory of the task's name"),
    Flag("--mode", values=("eager", "graph", "lazy"),
         meaning="execution of operations on the card (default: lazy for large, eager for base)"),
    Flag("-d --device", default="hpu", meaning="hpu, else a processor"),
    Flag("--cache_dir", idle=True, meaning="nothing is downloaded"),
    Flag("--world_size", int, 1, "cards; more than 1 starts as many workers"),
    Flag("--dist", SWITCH, meaning="fine-tuning with --world_size 1: 8 cards"),
    Flag("--no_mpirun", SWITCH, idle=True, meaning="workers are started without mpirun anyway"),
    Flag("--seed", int, 42, "seed of weights, dropout and order", key="seed"),
]  # fmt: skip

_OF_PRETRAINING = [
    Flag("-p --data_dir", count=2, required=True, meaning="directories of .hdf5 files, phase 1's and phase 2's"),
    Flag("-t --task_name", default="bookswiki", idle=True, meaning="the data are those of --data_dir"),
    Flag("-b --batch_size", int, (64, 8), "examples of a micro-batch of one card", count=2),
    Flag("-r --learning_rate", float, (6e-3, 4e-3), "learning rate", key="base_learning_rate", count=2),
    Flag("-s --max_seq_length", int, (128, 512), "ids of an example", key="max_seq_length", count=2),
    Flag("--max_steps", int, (7038, 1563), "updates", key="steps", count=2),
    Flag("-wp --warmup", float, (0.2843, 0.128), "warm-up as a share of the updates", key="warmup", count=2),
    Flag("-st --save_steps", int, (200, 200), "updates between two checkpoints", key="checkpoint_every", count=2),
    Flag("--accumulate_gradients", SWITCH,
         meaning="accumulate train_batch_size / batch_size micro-batches; else a micro-batch is the whole update"),
    Flag("--config_file", meaning="bert_config.json (default: BERT-Large, whatever --model_name_or_path says)"),
    Flag("--phase", int, values=(1, 2), meaning="train this phase only"),
    Flag("--steps_this_run", int, (-1, -1), "stop at this update of the phase; -1: at max_steps", count=2),
    Flag("--init_checkpoint", count=2, meaning="checkpoints to start the phases from, with their moments; None: none"),
    Flag("--allreduce_post_accumulation", SWITCH, meaning="all-reduce once an update (set by the program on hpu)"),
    Flag("--allreduce_post_accumulation_fp16", SWITCH, idle=True, meaning="on hpu the program sums in fp32"),
    Flag("--tqdm_smoothing", float, idle=True),
    Flag("--create_logfile", SWITCH, idle=True),
]  # fmt: skip

_OF_FINETUNING = [
    Flag("-t --task_name", values=("mrpc", "squad"), required=True, key="task", meaning="task"),
    Flag("-p --data_dir", required=True, key="task_dir", meaning="directory of the task's files"),
    Flag("-r --learning_rate", float, 2e-5, "learning rate", key="base_learning_rate"),
    Flag("-s --max_seq_length", int, 128, "ids of a feature", key="max_seq_length"),
    Flag("-b --batch_size", int, 8, "features of an update of one card", key="batch_size"),
    Flag("-v --per_device_eval_batch_size", int, 8, "features of an evaluation batch", key="eval_batch_size"),
    Flag("-e --num_train_epochs", float, 1.0, "passes over the training file", key="num_train_epochs"),
    Flag("-l --logging_steps", int, 1, "updates between two log lines", key="log_every"),
    Flag("--max_steps", int, -1, "updates of the schedule; -1: those of the epochs"),
    Flag("--do_eval", SWITCH, meaning="evaluate at the end", key="do_eval"),
    Flag("-tf --train_file", default="train-v1.1.json", meaning="SQuAD: training file in data_dir"),
    Flag("-pf --predict_file", default="dev-v1.1.json", meaning="SQuAD: file to evaluate on, in data_dir"),
    Flag("-mt --model_type", default="bert", values=("bert",), meaning="kind of model"),
    Flag("-ds --doc_stride", int, 128, "SQuAD: tokens from one span to the next", key="doc_stride"),
    Flag("-st --save_steps", int, 500, "updates between two checkpoints", key="checkpoint_every"),
]  # fmt: skip

COMMANDS = {"pretraining": [*_COMMON, *_OF_PRETRAINING], "finetuning": [*_COMMON, *_OF_FINETUNING]}
_MOST_PREDICTIONS = (20, 80)


def resolve(given: Given) -> Meaning:
    """The phases, or the fine-tuning, that the command line asks for."""
    return _pretraining(given) if given.command == "pretraining" else _finetuning(given)


def _common(given: Given, cards: int) -> dict[str, Any]:
    mode = given["mode"] or ("lazy" if given["model_name_or_path"] == "large" else "eager")
    device = "hpu" if given["device"] == "hpu" else "cpu"
    return {
        "device": device,
        "device_options": {"mode": mode} if device == "hpu" else {},
        "world_size": cards,
        "dist": cards > 1,
        "unverified": True,
    }


def _pretraining(given: Given) -> Meaning:
    numbers = [given["phase"] - 1] if given["phase"] else [0, 1]
    phases = [_phase(given, number) for number in numbers]
    which = "both phases" if len(phases) == 2 else f"phase {given['phase']}"
    sizes = ", then ".join(
        product(keys["world_size"], keys["batch_size"], keys["accumulation"]) for keys in phases
    )
    return Meaning(
        summary=f"{which}, {sizes} examples an update, {given['data_type']}, lamb, {phases[0]['device']}",
        phases=phases,
    )


def _phase(given: Given, number: int) -> dict[str, Any]:
    """The keys of a phase, counted from 0."""
    cards, size = given["world_size"], given["batch_size"][number]
    update = _card_update(given, number)
    count = max(1, update // size) if given["accumulate_gradients"] else 1
    keys = BERT_LARGE | NVLAMB | _common(given, cards)
    keys |= phase_keys(given, COMMANDS["pretraining"], number)
    if given["config_file"]:
        keys = {name: value for name, value in keys.items() if name not in BERT_LARGE}
        keys["model_config"] = given["config_file"]
    until = given["steps_this_run"][number]
    keys |= {
        "train_data": given["data_dir"][number],
        "max_predictions_per_seq": _MOST_PREDICTIONS[number],
        "batch_size": size if given["accumulate_gradients"] else update,
        "accumulation": count,
        "output_dir": storage.join(given["output_dir"], "results/checkpoints"),
        "keep_checkpoints": 3,
        "log_every": 1,
        "steps_this_run": until if until > 0 else None,
        "phase2": number == 1,
    }
    start = given["init_checkpoint"] and given["init_checkpoint"][number]
    if start and start != "None":
        keys |= {"start_from_ckpt": start, "start_moments": True, "phase2": False}
    elif number == 1:
        keys["phase1_end_step"] = given["max_steps"][0]
    return keys


def _card_update(given: Given, number: int) -> int:
    """Examples of an update of one card; from 1.1.0 on the flag counts those of all cards."""
    update: int = given["train_batch_size"][number]
    if not given.version:
        return update
    if update % given["world_size"]:
        raise UsageError(f"train_batch_size is {update}, no multiple of world_size ({given['world_size']})")
    return update // given["world_size"]


def _finetuning(given: Given) -> Meaning:
    cards = 8 if given["dist"] and given["world_size"] == 1 else given["world_size"]
    task, folder = given["task_name"], given["data_dir"]
    keys = TRANSFORMERS_ADAMW | _common(given, cards) | phase_keys(given, COMMANDS["finetuning"])
    files = ("train.tsv", "dev.tsv") if task == "mrpc" else (given["train_file"], given["predict_file"])
    keys |= {
        "start_from_ckpt": PRETRAINED[given["model_name_or_path"]],
        "accumulation": 1,
        "task_train_file": storage.join(folder, files[0]),
        "task_eval_file": storage.join(folder, files[1]),
        "eval_every": 0,
        "output_dir": storage.join(given["output_dir"], task),
        "lower_case": True,
    }
    if given["max_steps"] > 0:
        keys |= {"steps": given["max_steps"], "num_train_epochs": None}
    length = f"{given['num_train_epochs']:g} epochs" if given["max_steps"] <= 0 else f"{given['max_steps']} updates"
    return Meaning(
        summary=f"{task}, {length}, {product(cards, given['batch_size'])} features an update, "
        f"{given['data_type']}, adamw, {keys['device']}",
        phases=[keys],
    )


def _with_update(per: str, default: tuple[int, int]) -> dict[str, list[Flag]]:
    flag = Flag("--train_batch_size", int, default, f"examples of an update of {per}", count=2)
    return COMMANDS | {"pretraining": [*COMMANDS["pretraining"], flag]}


PROGRAM = Program(
    name="habana/demo_bert.py",
    title="Habana demo_bert.py",
    source="HabanaAI/Model-References 9d1b913c (0.15.4), PyTorch/nlp/bert/demo_bert.py",
    commands=_with_update("one card", (8192, 4096)),
    versions={"1.1.0": _with_update("all cards", (65536, 32768))},
    resolve=resolve,
    published=(
        "pretraining --model_name_or_path large --mode graph --data_type bf16 --world_size 8 --batch_size 64 8 "
        "--accumulate_gradients --allreduce_post_accumulation --allreduce_post_accumulation_fp16 --dist "
        "--data_dir phase1 phase2",
        "finetuning --model_name_or_path large --task_name squad --mode graph --data_type bf16 "
        "--num_train_epochs 2 --batch_size 24 --max_seq_length 384 --learning_rate 3e-5 --do_eval --data_dir Squad",
    ),
)
