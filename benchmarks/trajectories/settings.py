"""The product's own settings for a recorded training: its door's, else those of a shipped configuration."""

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.trajectories.recorded import RecordedRun
from bertdata.cli.common.programs.choice import read_line
from bertdata.config.declared import schema_of
from bertdata.errors import InputError
from trainer.config.files import read_config
from trainer.config.sections.model import MODEL_SECTION, MODERNBERT_SECTION
from trainer.config.sections.section import Section
from trainer.config.settings import DEVICE_OPTIONS, Config
from trainer.programs.choice import DOOR, meaning_of
from trainer.run.finetune import count_epoch_updates

_LENGTH, _MASKS = "64", "10"
_WARMUP = "warm-?up(?:_steps|_proportion)?"
_RATE = "(?:lr|learning_rate)"
_BETAS = r"betas ([\d.]+) ([\d.]+)"
_OF_PLACE = {
    **{"device": "cpu", "device_options": {}, "world_size": None, "dist": False, "replicas": None},
    **{"compile": False, "resume": False, "resume_step": None, "phase2": False, "start_moments": False},
    **{"model_config": None, "steps_this_run": None, "vocab": None, "json_summary": None},
    **{"task_train_file": None, "task_eval_file": None, "task_predict_file": None, "task_dir": None},
}
"""Keys of the machine and of files: one process on a processor, whose examples come in the recorded order."""


def configured(run: RecordedRun, start: Path, place: Path) -> Config:
    """Return the configuration that the product trains the run with.

    start: the directory of the first weights. place: a directory for what a run would write.
    """
    keys = _door_keys(run, place)
    if keys is None:
        keys = _shipped_keys(run)
    keys |= {name: value for name, value in _OF_PLACE.items() if name in keys or value is not None}
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
    if counted is None:  # the run names its updates alone
        return Config.of(**keys | {"num_train_epochs": None, "steps": run.updates})
    config = Config.of(**keys)
    return config.changed(**count_epoch_updates(config, int(counted[1]), config.update.examples(1)))


def _door_keys(run: RecordedRun, place: Path) -> dict[str, Any] | None:
    """Return the keys that the door of the run's program gives, or None where it has no door."""
    for pattern, words in _DOORS.items():
        if re.search(pattern, run.original):
            line = read_line(DOOR, words(run))
            phases = meaning_of(line.program, line.given).phases
            is_second = "--phase2" in run.settings
            return dict(phases[-1 if is_second else 0])
    return None


def _words(program: str, flags: Mapping[str, str | None]) -> list[str]:
    """Return a command line of flags with their values, None for a switch."""
    found = [program]
    for name, value in flags.items():
        found += [f"--{name}"] if value is None else [f"--{name}={value}"]
    return found


def _flags(run: RecordedRun) -> dict[str, str | None]:
    """Return the flags that the run's settings name, without those of its files."""
    found: dict[str, str | None] = {}
    words = shlex.split(re.sub(r"\([^)]*\)", "", run.settings))
    for word, following in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            value = value if equals else "" if following.startswith("--") else following
            found[name] = value.rstrip(",;") or None
    return found


def _mlperf(run: RecordedRun) -> list[str]:
    files = {"bert_config_file": "bert.json", "input_file": "data", "output_dir": "out"}
    return _words("mlperf/run_pretraining.py", {**_flags(run), **files})


def _google(run: RecordedRun) -> list[str]:
    flags = {"bert_config_file": "bert.json", "vocab_file": "vocab.txt", "output_dir": "out"}
    flags |= {"do_train": "true", "init_checkpoint": "start"}
    if run.task == "squad":
        return _words("google/run_squad.py", {**_flags(run), **flags, "train_file": "train.json"})
    return _words("google/run_classifier.py", {**_flags(run), **flags, "data_dir": "mrpc"})


def _of_tensorflow(program: str) -> Callable[[RecordedRun], list[str]]:
    def words(run: RecordedRun) -> list[str]:
        usual: dict[str, str | None] = {"max_seq_length": _LENGTH, "max_predictions_per_seq": _MASKS}
        files = {"bert_config_file": "bert.json", "input_files_dir": "data", "output_dir": "out"}
        return _words(program, {**usual, **_flags(run), **files, "do_train": "true"})

    return words


def _of_pytorch(program: str) -> Callable[[RecordedRun], list[str]]:
    def words(run: RecordedRun) -> list[str]:
        if program.startswith("nvidia/") and "a9e2c1d5" in run.original:
            files = {"vocab_file": "vocab.txt"}
            return [f"{program}@a9e2c1d5", *_phase_words(run, files)]
        return [program, *_phase_words(run, {})]

    return words


def _phase_words(run: RecordedRun, more: Mapping[str, str | None]) -> list[str]:
    """Return the flags of a phase of NVIDIA's or Habana's pre-training. more: those of a version."""
    usual: dict[str, str | None] = {"max_seq_length": _LENGTH, "max_predictions_per_seq": _MASKS}
    files = {"config_file": "bert.json", "input_dir": "data", "output_dir": "out", "do_train": None}
    return _words("", {**usual, **_flags(run), **files, **more})[1:]


def _habana_tf(run: RecordedRun) -> list[str]:
    """Of fine-tuning the program is started by demo_bert.py, whose flags have other names."""
    if run.task == "pretraining":
        return _of_tensorflow("habana-tf/run_pretraining.py")(run)
    given, task = _flags(run), "squad" if run.task == "squad" else "mrpc"
    flags = {"command": "finetuning", "data_type": "fp32", "model_variant": "base", "test_set": task}
    names = {"train_batch_size": "batch_size", "num_train_epochs": "epochs", "learning_rate": "learning_rate"}
    flags |= {ours: str(given[theirs]) for theirs, ours in names.items() if theirs in given}
    return _words("habana-tf/demo_bert.py", flags)


def _nvidia_tuning(run: RecordedRun) -> list[str]:
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
    flags |= _flags(run)
    if run.task == "squad":
        return _words("nvidia/run_squad.py", {**flags, **files, "train_file": "train.json"})
    others = {"task_name": "mrpc", "data_dir": "mrpc"}
    return _words("nvidia/run_glue.py", {**flags, **files, **others})


def _habana_tuning(run: RecordedRun) -> list[str]:
    flags: dict[str, str | None] = {"model_name_or_path": "base", "data_type": "fp32", "data_dir": "data"}
    flags |= {"task_name": "squad" if run.task == "squad" else "mrpc", "max_steps": str(run.updates)}
    flags |= {"learning_rate": str(run.number(_RATE)), "batch_size": f"{run.number('batch', 8):.0f}"}
    return [*_words("habana/demo_bert.py", {})[:1], "finetuning", *_words("", flags)[1:]]


def _transformers(run: RecordedRun) -> list[str]:
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
    flags |= _flags(run)
    if run.task == "squad":
        return _words("huggingface/run_qa.py", {**flags, "dataset_name": "squad"})
    if re.search(r"transformers [5-9]\.", run.original):
        flags["as_published"] = "true"
    return _words("huggingface/run_glue.py", {**flags, "task_name": "mrpc"})


_DOORS: Mapping[str, Callable[[RecordedRun], list[str]]] = {
    r"mlcommons": _mlperf,
    r"google-research/bert": _google,
    r"transformers [0-3]\.": _habana_tuning,
    r"HabanaAI.*TensorFlow": _habana_tf,
    r"HabanaAI.*pretraining": _of_pytorch("habana/run_pretraining.py"),
    r"DeepLearningExamples.*(BertAdam|run_glue|run_squad)": _nvidia_tuning,
    r"DeepLearningExamples.*TensorFlow": _of_tensorflow("nvidia-tf/run_pretraining.py"),
    r"DeepLearningExamples": _of_pytorch("nvidia/run_pretraining.py"),
    r"transformers .*Trainer": _transformers,
}
"""The command line of a run's program, by a pattern of the program's words. The first that fits counts."""


def _shipped_keys(run: RecordedRun) -> dict[str, Any]:
    """Return the updates of a shipped configuration, with the run's own numbers.

    InputError for a program without any.
    """
    if run.kind == "bert":
        raise InputError(
            f"{run.name}: no door and no configuration of the product is known for {run.original}"
        )
    keys = read_config("roberta_base" if run.kind == "roberta" else "modernbert_base")
    others: list[type[Section]] = [MODEL_SECTION, MODERNBERT_SECTION]
    shape = {name for kind in others for name in schema_of(kind)}
    dropped = {*shape, "precision", "masking", "train_tokens", "warmup_tokens", "batch_warmup_from"}
    dropped |= {"batch_warmup_tokens", "max_seq_length", DEVICE_OPTIONS}
    keys = {name: _of_first_phase(value) for name, value in keys.items() if name not in dropped}
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


def _of_first_phase(value: Any) -> Any:
    """Return a key's value, of two phases that of the first."""
    return value[0] if isinstance(value, list) else value
