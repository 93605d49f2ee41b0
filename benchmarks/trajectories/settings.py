"""Trainer configurations that repeat recorded runs.

If the trainer's command ``like`` knows the program of a run, it makes the configuration. Otherwise a
configuration that comes with the trainer is used.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.trajectories.recorded import RecordedRun
from bertdata.cli.common.programs.choice import split_like_line
from bertdata.config.declared import derive_schemas
from bertdata.errors import InputError
from trainer.config.files import read_config
from trainer.config.sections.model import MODEL_SECTION, MODERNBERT_SECTION
from trainer.config.sections.section import Section
from trainer.config.settings import DEVICE_OPTIONS, Config
from trainer.programs.choice import DOOR, translate_command_line
from trainer.run.finetune import count_epoch_updates

_LENGTH, _MASKS = "64", "10"
_WARMUP = "warm-?up(?:_steps|_proportion)?"
_RATE = "(?:lr|learning_rate)"
_BETAS = r"betas ([\d.]+) ([\d.]+)"
_MACHINE_KEYS = {
    **{"device": "cpu", "device_options": {}, "world_size": None, "dist": False, "replicas": None},
    **{"compile": False, "resume": False, "resume_step": None, "phase2": False, "start_moments": False},
    **{"model_config": None, "steps_this_run": None, "vocab": None, "json_summary": None},
    **{"task_train_file": None, "task_eval_file": None, "task_predict_file": None, "task_dir": None},
}
"""Configuration keys whose values are the same for all repeated runs.

They replace the recorded run's settings for the machine and for files: each run is repeated by one process on
a processor, on the examples that were recorded with it.
"""


def make_config(run: RecordedRun, start: Path, place: Path) -> Config:
    """Return the configuration with which this trainer repeats a run.

    start: directory of the first weights.
    place: directory for the output.
    """
    keys = _find_program_keys(run, place)
    if keys is None:
        keys = _find_shipped_keys(run)
    keys |= {name: value for name, value in _MACHINE_KEYS.items() if name in keys or value is not None}
    keys |= {"start_from_ckpt": str(start), "output_dir": str(place), "accumulation": run.in_update}
    keys |= {"batch_size": max(map(len, run.micro_batches)), "global_batch_size": None}
    keys |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "train_data": None}
    if run.clips_whole:
        keys["clipping_norm"] = "whole"
    if run.is_packed:
        keys["batch_size"] = 1
    if run.task == "classification":
        keys["labels"] = ["0", "1"]
    counted = re.search(r"(\d+) examples", run.settings)
    if keys.get("num_train_epochs") is None:
        return Config.of(**keys)
    if counted is None:  # Here the run's settings do not give a number of epochs, only the number of updates.
        return Config.of(**keys | {"num_train_epochs": None, "steps": run.updates})
    config = Config.of(**keys)
    return config.changed(**count_epoch_updates(config, int(counted[1]), config.update.examples(1)))


def _find_program_keys(run: RecordedRun, place: Path) -> dict[str, Any] | None:
    """Return the configuration keys that the command ``like`` makes of the run's command line.

    Returns None if ``like`` does not know the program.
    """
    for pattern, words in _COMMAND_LINE_MAKERS.items():
        if re.search(pattern, run.original):
            line = split_like_line(DOOR, words(run))
            phases = translate_command_line(line.program, line.given).phases
            is_second = "--phase2" in run.settings
            return dict(phases[-1 if is_second else 0])
    return None


def _make_command_line(program: str, flags: Mapping[str, str | None]) -> list[str]:
    """Return the command line of a program.

    flags: value of each flag. None: the flag has no value.
    """
    found = [program]
    for name, value in flags.items():
        found += [f"--{name}"] if value is None else [f"--{name}={value}"]
    return found


def _list_flags(run: RecordedRun) -> dict[str, str | None]:
    """Return the flags that the run's settings contain, except those that name files.

    A value of None means that the flag has no value.
    """
    found: dict[str, str | None] = {}
    words = shlex.split(re.sub(r"\([^)]*\)", "", run.settings))
    for word, following in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            value = value if equals else "" if following.startswith("--") else following
            found[name] = value.rstrip(",;") or None
    return found


def _make_mlperf_line(run: RecordedRun) -> list[str]:
    """Return the command line of MLPerf's program."""
    files = {"bert_config_file": "bert.json", "input_file": "data", "output_dir": "out"}
    return _make_command_line("mlperf/run_pretraining.py", {**_list_flags(run), **files})


def _make_google_line(run: RecordedRun) -> list[str]:
    """Return the command line of Google's program."""
    flags = {"bert_config_file": "bert.json", "vocab_file": "vocab.txt", "output_dir": "out"}
    flags |= {"do_train": "true", "init_checkpoint": "start"}
    if run.task == "squad":
        return _make_command_line(
            "google/run_squad.py", {**_list_flags(run), **flags, "train_file": "train.json"}
        )
    return _make_command_line("google/run_classifier.py", {**_list_flags(run), **flags, "data_dir": "mrpc"})


def _make_tensorflow_reader(program: str) -> Callable[[RecordedRun], list[str]]:
    """Return a function that makes the command line of a TensorFlow program for pre-training."""

    def words(run: RecordedRun) -> list[str]:
        """Return the command line of the run's program."""
        usual: dict[str, str | None] = {"max_seq_length": _LENGTH, "max_predictions_per_seq": _MASKS}
        files = {"bert_config_file": "bert.json", "input_files_dir": "data", "output_dir": "out"}
        return _make_command_line(program, {**usual, **_list_flags(run), **files, "do_train": "true"})

    return words


def _make_pytorch_reader(program: str) -> Callable[[RecordedRun], list[str]]:
    """Return a function that makes the command line of a PyTorch program for pre-training."""

    def words(run: RecordedRun) -> list[str]:
        """Return the command line of the run's program."""
        if program.startswith("nvidia/") and "a9e2c1d5" in run.original:
            files = {"vocab_file": "vocab.txt"}
            return [f"{program}@a9e2c1d5", *_make_phase_line(run, files)]
        return [program, *_make_phase_line(run, {})]

    return words


def _make_phase_line(run: RecordedRun, more: Mapping[str, str | None]) -> list[str]:
    """Return the command line of one phase of NVIDIA's or Habana's pre-training.

    more: flags that only one of the two programs has.
    """
    usual: dict[str, str | None] = {"max_seq_length": _LENGTH, "max_predictions_per_seq": _MASKS}
    files = {"config_file": "bert.json", "input_dir": "data", "output_dir": "out", "do_train": None}
    return _make_command_line("", {**usual, **_list_flags(run), **files, **more})[1:]


def _make_habana_tf_line(run: RecordedRun) -> list[str]:
    """Return the command line of Habana's TensorFlow program.

    For fine-tuning this is demo_bert.py, which starts the program and whose flags have other names.
    """
    if run.task == "pretraining":
        return _make_tensorflow_reader("habana-tf/run_pretraining.py")(run)
    given, task = _list_flags(run), "squad" if run.task == "squad" else "mrpc"
    flags = {"command": "finetuning", "data_type": "fp32", "model_variant": "base", "test_set": task}
    names = {"train_batch_size": "batch_size", "num_train_epochs": "epochs", "learning_rate": "learning_rate"}
    flags |= {ours: str(given[theirs]) for theirs, ours in names.items() if theirs in given}
    return _make_command_line("habana-tf/demo_bert.py", flags)


def _make_nvidia_tuning_line(run: RecordedRun) -> list[str]:
    """Return the command line of NVIDIA's program for fine-tuning."""
    files: dict[str, str | None] = {
        "config_file": "bert.json",
        "init_checkpoint": "start",
        "output_dir": "out",
    }
    files |= {"bert_model": "bert", "vocab_file": "vocab.txt"}
    flags: dict[str, str | None] = {
        "learning_rate": str(run.number(_RATE)),
        "warmup_proportion": str(run.number(_WARMUP, 0.1)),
        "train_batch_size": f"{run.number('batch', 8):.0f}",
        "do_train": None,
    }
    flags |= _list_flags(run)
    if run.task == "squad":
        return _make_command_line("nvidia/run_squad.py", {**flags, **files, "train_file": "train.json"})
    others = {"task_name": "mrpc", "data_dir": "mrpc"}
    return _make_command_line("nvidia/run_glue.py", {**flags, **files, **others})


def _make_habana_tuning_line(run: RecordedRun) -> list[str]:
    """Return the command line of Habana's program for fine-tuning."""
    flags: dict[str, str | None] = {"model_name_or_path": "base", "data_type": "fp32", "data_dir": "data"}
    flags |= {"task_name": "squad" if run.task == "squad" else "mrpc", "max_steps": str(run.updates)}
    flags |= {"learning_rate": str(run.number(_RATE)), "batch_size": f"{run.number('batch', 8):.0f}"}
    return [
        *_make_command_line("habana/demo_bert.py", {})[:1],
        "finetuning",
        *_make_command_line("", flags)[1:],
    ]


def _make_transformers_line(run: RecordedRun) -> list[str]:
    """Return the command line of transformers' example script for the run's task."""
    flags: dict[str, str | None] = {"model_name_or_path": "bert", "output_dir": "out", "do_train": "true"}
    flags |= {"learning_rate": str(run.number(_RATE)), "max_steps": str(run.updates)}
    flags |= {"weight_decay": str(run.number("weight.decay", 0.0))}
    flags |= {"adam_epsilon": str(run.number("(?:adam_)?eps(?:ilon)?", 1e-8))}
    flags |= {"max_grad_norm": str(run.number("max_grad_norm", 1.0))}
    flags |= {"warmup_steps": f"{run.number(_WARMUP, 0):.0f}"}
    flags |= {"gradient_accumulation_steps": str(run.in_update)}
    if (betas := re.search(_BETAS, run.settings)) is not None:
        flags |= {"adam_beta1": betas[1], "adam_beta2": betas[2]}
    if (named := re.search(r"adamw_\w+|sgd", run.settings)) is not None:
        flags["optim"] = named[0]
    if (schedule := re.search("constant(?:_with_warmup)?", run.settings)) is not None:
        flags["lr_scheduler_type"] = schedule[0]
    flags |= _list_flags(run)
    if run.task == "squad":
        return _make_command_line("huggingface/run_qa.py", {**flags, "dataset_name": "squad"})
    if re.search(r"transformers [5-9]\.", run.original):
        flags["as_published"] = "true"
    return _make_command_line("huggingface/run_glue.py", {**flags, "task_name": "mrpc"})


_COMMAND_LINE_MAKERS: Mapping[str, Callable[[RecordedRun], list[str]]] = {
    r"mlcommons": _make_mlperf_line,
    r"google-research/bert": _make_google_line,
    r"transformers [0-3]\.": _make_habana_tuning_line,
    r"HabanaAI.*TensorFlow": _make_habana_tf_line,
    r"HabanaAI.*pretraining": _make_pytorch_reader("habana/run_pretraining.py"),
    r"DeepLearningExamples.*(BertAdam|run_glue|run_squad)": _make_nvidia_tuning_line,
    r"DeepLearningExamples.*TensorFlow": _make_tensorflow_reader("nvidia-tf/run_pretraining.py"),
    r"DeepLearningExamples": _make_pytorch_reader("nvidia/run_pretraining.py"),
    r"transformers .*Trainer": _make_transformers_line,
}
"""For a pattern of the program's description, the function that makes the run's command line.

The first pattern that matches counts.
"""


def _find_shipped_keys(run: RecordedRun) -> dict[str, Any]:
    """Return the keys of a configuration that comes with the trainer, changed to the numbers in the run's
    settings.

    Raises InputError if no such configuration is known for the program.
    """
    if run.kind == "bert":
        raise InputError(
            f"{run.name}: no door and no configuration of the product is known for {run.original}"
        )
    keys = read_config("roberta_base" if run.kind == "roberta" else "modernbert_base")
    others: list[type[Section]] = [MODEL_SECTION, MODERNBERT_SECTION]
    shape = {name for kind in others for name in derive_schemas(kind)}
    dropped = {*shape, "precision", "masking", "train_tokens", "warmup_tokens", "batch_warmup_from"}
    dropped |= {"batch_warmup_tokens", "max_seq_length", DEVICE_OPTIONS}
    keys = {name: _choose_first_phase(value) for name, value in keys.items() if name not in dropped}
    keys |= {
        "steps": run.updates,
        "base_learning_rate": run.number(_RATE),
        "warmup": int(run.number(_WARMUP, 0)),
    }
    keys |= {"weight_decay": run.number("weight.decay", keys["weight_decay"])}
    keys |= {"optimiser_epsilon": run.number("eps", keys["optimiser_epsilon"])}
    if (betas := re.search(_BETAS, run.settings)) is not None:
        keys |= {"beta1": float(betas[1]), "beta2": float(betas[2])}
    if run.kind == "modernbert":
        keys |= {"lr_decay": int(run.number(r"(?<!weight )decay", 0)), "lr_end_share": 0.0}
        keys["lr_decay_shape"] = "linear" if "linear" in run.settings else "1-sqrt"
    return keys


def _choose_first_phase(value: Any) -> Any:
    """Return the value of a key for the first phase. Values for two phases are in a list."""
    return value[0] if isinstance(value, list) else value
