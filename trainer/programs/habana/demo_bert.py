"""Translate the command lines of Habana's demo_bert.py for PyTorch to this trainer's configuration."""

from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.checkpoints.formats.hub_cache import SIZES
from trainer.programs.batch_sizes import compute_micro_batch_size
from trainer.programs.habana.run_pretraining import make_packed_keys
from trainer.programs.nvidia.run_pretraining import HDF5_DATA, make_continue_keys, make_start_keys
from trainer.programs.shapes import BERT_LARGE
from trainer.programs.translated_command import TranslatedCommand, make_phase_keys

_NAME = "habana/demo_bert.py"
_MOST_PREDICTIONS = (20, 80)
_DATA = f"/software/data/pytorch/bert_pretraining/{HDF5_DATA}"
_USUAL_DATA = [_DATA.format(length, most) for length, most in zip((128, 512), _MOST_PREDICTIONS, strict=True)]
_SHARED_BY_VERSION = ("1.1.0", "1.4.1")
"""Versions of Habana's demo_bert.py whose train_batch_size is the sum over all cards. In other versions it is
the size for each card.
"""


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for one or two phases of pre-training, or for
    fine-tuning.
    """
    if flags["model_name_or_path"] not in SIZES:
        name = flags["model_name_or_path"]
        raise UsageError(
            f"{_NAME}: {name} is no BERT; this trainer has base and large of --model_name_or_path"
        )
    return _translate_pretraining(flags) if flags.command == "pretraining" else _translate_finetuning(flags)


def _make_common_keys(flags: ParsedCommandLine, cards: int) -> dict[str, Any]:
    """Return the configuration keys for the device and the workers.

    cards: number of Gaudi cards, each of which has a worker.
    """
    device = "hpu" if flags["device"] == "hpu" else "cpu"
    on_one_host = flags.values.get("process_per_node") or cards
    if cards > on_one_host:
        flags.warn(f"world_size {cards}: start {on_one_host} workers on each host, by mpirun or torchrun")
    return {
        "device": device,
        "device_options": {"mode": _choose_execution_mode(flags)} if device == "hpu" else {},
        "world_size": cards,
        "dist": 1 < cards <= on_one_host,
    }


def _choose_execution_mode(flags: ParsedCommandLine) -> str:
    """Return the card's execution mode: "graph", "eager" or "lazy". From version 1.0.0 on there is no graph
    mode.
    """
    mode: str = flags["mode"] or ("lazy" if flags["model_name_or_path"] == "large" else "eager")
    if mode == "graph" and flags.version:
        is_lazy = flags.version == "1.4.1" and flags.command == "pretraining"
        return "lazy" if is_lazy else "eager"
    return mode


def _translate_pretraining(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for both phases of pre-training, or for the phase that
    it selects.
    """
    numbers = [flags["phase"] - 1] if flags["phase"] else [0, 1]
    phases = [_make_phase_keys(flags, number) for number in numbers]
    until, steps = flags["steps_this_run"][0], flags["max_steps"][0]
    if len(phases) == 2 and 0 <= until < steps:
        flags.warn(
            f"phase 1 stops at update {until} of {steps}; phase 2 begins there with its update 0, which the "
            f"program counts as {until - steps}"
        )
    return TranslatedCommand(
        what="both phases" if len(phases) == 2 else f"phase {flags['phase']}", phases=phases
    )


def _make_phase_keys(flags: ParsedCommandLine, number: int) -> dict[str, Any]:
    """Return the configuration keys of a phase.

    number: 0 for phase 1 and 1 for phase 2.
    """
    shape = {"model_config": flags["config_file"]} if flags["config_file"] else BERT_LARGE
    keys = shape | _make_common_keys(flags, flags["world_size"]) | make_phase_keys(flags, number)
    keys |= {
        "train_data": (flags["data_dir"] or _USUAL_DATA)[number],
        "max_predictions_per_seq": _MOST_PREDICTIONS[number],
        "output_dir": storage.join(flags["output_dir"], "results/checkpoints"),
        "json_summary": storage.join(flags["output_dir"], "results/dllogger.json"),
    }
    update: int = flags["train_batch_size"][number]
    if flags.version in _SHARED_BY_VERSION:
        update //= flags["world_size"]
    count = update // flags["batch_size"][number] if flags["accumulate_gradients"] else 1
    keys |= {"batch_size": compute_micro_batch_size(update, count), "accumulation": count}
    if flags.values.get("enable_packed_data_mode"):
        keys |= make_packed_keys(flags, count, flags["avg_seq_per_pack"][number])
    until = flags["steps_this_run"][number]
    start = flags["init_checkpoint"] and flags["init_checkpoint"][number]
    if start and start != "None":
        return keys | make_start_keys(start=start, phase2=number == 1, until=until)
    if number == 1 or flags.values.get("resume_from_checkpoint"):
        end = _find_end_of_phase_1(flags) if number == 1 else None
        return keys | make_continue_keys(keys["output_dir"], phase1_end_step=end, until=until)
    return keys | make_start_keys(until=until)


def _find_end_of_phase_1(flags: ParsedCommandLine) -> int:
    """Return the number of the update in phase 1 after which phase 2 begins.

    This is the last update of phase 1, or an earlier one if this command line stops phase 1 there.
    """
    steps: int = flags["max_steps"][0]
    until = flags["steps_this_run"][0]
    return max(1, until) if not flags["phase"] and 0 <= until < steps else steps


def _translate_finetuning(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for fine-tuning on SQuAD or MRPC."""
    cards = 8 if flags["dist"] and flags["world_size"] == 1 else flags["world_size"]
    task, steps = flags["task_name"], flags["max_steps"] or 0
    keys = _make_common_keys(flags, cards) | make_phase_keys(flags) | _make_file_keys(flags)
    keys |= {
        "start_from_ckpt": SIZES[flags["model_name_or_path"]],
        "checkpoint_every": flags["save_steps"] or 500,
        "output_dir": storage.join(flags["output_dir"], task),
    }
    if task == "squad":
        keys |= {"rows": True, "answers_over_padding": True, "padding_learns": False}
        keys["max_query_length"] = 64
    if steps > 0:  # the program makes one more update than this number of steps, with a learning rate of 0
        keys |= {"steps": steps, "num_train_epochs": None}
    is_lazy = _choose_execution_mode(flags) == "lazy" and flags["device"] == "hpu"
    if task == "mrpc" and not flags.version and is_lazy:
        flags.warn("MRPC in lazy mode: the original stops here, as its run_glue.py has no --use_lazy_mode")
    if steps <= 0 and task == "squad" and not flags.version:
        flags.warn("the original drops the last partial batch of an epoch, here the next epoch fills it")
    if flags.values.get("model_type", "bert") != "bert":
        flags.warn(f"model_type {flags['model_type']}: the model trained here is BERT")
    return TranslatedCommand(what=task, phases=[keys])


def _make_file_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for the task's files.

    From version 1.0.0 on, demo_bert.py downloads a dataset by its name instead of reading files.
    """
    task = flags["task_name"]
    if flags.version:
        if task == "squad" and flags["dataset_name"] != "squad":
            found = flags["dataset_name"]
            raise UsageError(f"{_NAME}: task squad reads the data set {found!r}; give --dataset_name squad")
        flags.warn("the program downloads its data; give their directory here: -- --data-dir DIR")
        return {}
    names = ("train.tsv", "dev.tsv") if task == "mrpc" else (flags["train_file"], flags["predict_file"])
    return {
        "task_train_file": storage.join(flags["data_dir"], names[0]),
        "task_eval_file": storage.join(flags["data_dir"], names[1]),
    }
