"""Pre-training by Habana's demo_bert.py for TensorFlow: "bookswiki" in two phases, or "overfit" on a small
file.
"""

import math
import os
from collections.abc import Sequence
from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.programs.shapes import make_bert_shape
from trainer.programs.translated_command import TranslatedCommand
from trainer.workers.launchers import find_rank

SIZES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
"""For each of Google's published models, the number of layers, their width, and the number of attention
heads.
"""

COMMON_KEYS: dict[str, Any] = {
    "gelu": "tanh",
    "layer_norm_eps": 1e-3,  # default of Keras
    "beta1": 0.9,
    "beta2": 0.999,
    "optimiser_epsilon": 1e-6,
    "weight_decay": 0.01,
    "decay_skips": ["LayerNorm", "layer_norm", "bias"],
    "max_grad_norm": 1.0,
    # For clipping, TensorFlow computes the norm of an embedding's gradient from a row per looked-up token,
    # before the rows of equal tokens are summed.
    "clipping_norm": "word_and_type_rows",
    "eval_every": 0,
}
"""Configuration keys that no flag changes, neither in pre-training nor in fine-tuning."""

_FIXED = COMMON_KEYS | {
    "optimiser": "lamb-habana-tf",
    "clipping": "per_micro_batch_divided",
    "lr_schedule": "habana-tf",  # this schedule multiplies the rate of one worker by the number of workers
    "keep_checkpoints": 5,
}

WORKER_WARNINGS = (
    "the program gives each worker but a machine's first a directory worker_N in output_dir, with its own "
    "checkpoints and logs; here the first worker of each machine writes for all",
    "with fewer data files than workers the program gives all of them the first file; here they share the "
    "examples of all files",
)
"""Warnings about what Habana's TensorFlow programs do differently from this trainer if there are several
workers.
"""

_UPDATES = (65536, 32768)
_LEARNING_RATES = (7.5e-4, 5e-4)
"""Learning rates of phases 1 and 2 for each of eight workers, with the usual number of examples per
update.
"""


def translate_pretraining(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for its phases of pre-training."""
    counted, workers = find_workers(flags)
    test_set = flags["test_set"]
    if test_set not in ("bookswiki", "overfit"):
        raise UsageError(f"test_set {test_set} is fine-tuned; pre-training takes bookswiki or overfit")
    if test_set == "overfit":
        phases = [_make_overfit_keys(flags, counted, workers)]
    else:
        phases = _make_bookswiki_phases(flags, counted, workers)
        if flags["no_steps_accumulation"] == 1:
            flags.warn("no_steps_accumulation 1: the program accumulates all the same")
    if workers["world_size"] > 1:
        flags.warn(*WORKER_WARNINGS)
    return TranslatedCommand(what=test_set if len(phases) == 1 else f"{test_set}, both phases", phases=phases)


def find_workers(flags: ParsedCommandLine) -> tuple[int, dict[str, Any]]:
    """Return the program's number of workers, and the configuration keys that start workers.

    Habana's TensorFlow programs divide examples and learning rate by their number of workers. This is the
    number of workers per host times the number of hosts in the variable MULTI_HLS_IPS. With the flag for
    Kubernetes it is the number of workers per host alone, and the keys have the number of workers that mpirun
    started.
    """
    each, horovod = flags["use_horovod"], flags["use_horovod"] is not None
    if each is True:  # the shell script's flag -v without a number
        each = flags["NUM_WORKERS_PER_HLS"]
    if each is not None and each < 1:
        raise UsageError(f"--use_horovod is {each}, expected 1 worker or more")
    each = each or 1
    hosts = len([host for host in (flags["MULTI_HLS_IPS"] or "").split(",") if host.strip()])
    if flags["kubernetes_run"]:
        counted, started, local = each, find_rank()[1] if horovod else 1, False
        if started > counted:
            flags.warn(f"the program divides the update by {counted}, not by the {started} workers of mpirun")
    else:
        counted = started = each * (max(1, hosts) if horovod else 1)
        local = hosts <= 1
        if horovod and hosts > 1:
            flags.warn(f"start {each} workers on each of {hosts} hosts, by mpirun or torchrun")
    return counted, {"device": "hpu", "world_size": started, "dist": local and started > 1}


def _make_common_keys(flags: ParsedCommandLine, workers: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration keys for the model, the precision and the workers.

    workers: the keys that start workers.
    """
    keys = _FIXED | workers | {"precision": flags["data_type"]}
    if flags["bert_config_dir"]:
        keys["model_config"] = storage.join(flags["bert_config_dir"], "bert_config.json")
    else:
        keys |= make_bert_shape(*SIZES[flags["model_variant"]])
    # By default, the workers of the shell script average their weights before each update.
    if flags.version and flags["use_horovod"]:
        keys["force_weight_sync"] = flags["FORCE_WEIGHT_SYNC"].lower() in ("1", "true")
    return keys


def _make_bookswiki_phases(
    flags: ParsedCommandLine, counted: int, workers: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the configuration keys of both phases, or of one phase if Kubernetes runs several workers.

    counted: number of workers by which the program divides an update.
    workers: the keys that start workers.
    """
    phases = [_make_phase_keys(flags, counted, workers, number) for number in (0, 1)]
    if flags["fast_perf_only"] != 1:
        first, second = (keys["batch_size"] * keys["accumulation"] for keys in phases)
        phases[1]["steps"] = max(1, phases[1]["steps"] * first // second)
    last = f"model.ckpt-{phases[0]['steps']}"
    # phase 2 takes only the weights from phase 1
    phases[1]["start_from_ckpt"] = storage.join(phases[0]["output_dir"], last)
    if flags["kubernetes_run"] and flags["use_horovod"]:
        return phases[1:] if flags["run_phase2"] else phases[:1]
    return phases


def _make_phase_keys(
    flags: ParsedCommandLine, counted: int, workers: dict[str, Any], number: int
) -> dict[str, Any]:
    """Return the configuration keys of a phase.

    For phase 2, the number of steps is counted in updates of phase 1's size. The caller converts it.
    counted: number of workers by which the program divides an update.
    workers: the keys that start workers.
    number: 0 for phase 1 and 1 for phase 2.
    """
    size = read_phase_numbers(flags, "batch_size", (64 if flags["data_type"] == "bf16" else 32, 8))[number]
    length = read_phase_numbers(flags, "max_seq_length", (128, 512))[number]
    is_fast = flags["fast_perf_only"] == 1 and flags["no_steps_accumulation"] != 1
    update = ((1600, 200) if is_fast else _UPDATES)[number]
    steps = read_phase_numbers(flags, "iters", (7038, 782))[number]
    warmup = read_phase_numbers(flags, "warmup", (2000, 200))[number]
    count = int(update / counted / size)  # the program rounds down too
    if count < 1:
        raise UsageError(
            f"an update of {update} examples / {counted} workers / batch_size {size} leaves none"
        )
    root = flags["dataset_path"]
    if flags.version:
        root = storage.join(flags["INPUT_FILES_PREFIX"], "books_wiki_en_corpus/tfrecord")
    folder = flags["output_dir"] or os.path.expanduser("~/tmp/pretraining")
    output = storage.join(folder, f"phase_{number + 1}")
    keys = _make_common_keys(flags, workers) | {
        "train_data": storage.join(root, f"seq_len_{length}/books_wiki_en_corpus/training"),
        "max_seq_length": length,
        "max_predictions_per_seq": (20, 80)[number],
        "steps": steps,
        "warmup": warmup,
        "batch_size": size,
        "accumulation": count,
        "allreduce_post_accumulation": True,
        "base_learning_rate": _LEARNING_RATES[number] * (8 / counted) * (update / _UPDATES[number]),
        "checkpoint_every": flags["save_ckpt_steps"],
        "log_every": 1,
        "json_summary_form": "tensorflow",
        "output_dir": output,
        "json_summary": storage.join(output, "bert_dllog.json"),
    }
    if count == 1 and workers["world_size"] > 1:
        keys["clipping"] = "per_update"
    return keys


def read_phase_numbers(flags: ParsedCommandLine, name: str, usual: Sequence[int]) -> Sequence[int]:
    """Return the numbers of a flag for phase 1 and phase 2.

    The flag is written as ``A,B`` for demo_bert.py and ``A B`` for the shell script. The number for phase 2
    may be missing.
    usual: the default numbers of both phases.
    """
    value = flags[name]
    if value is None:
        return usual
    words = value.split(",") if isinstance(value, str) else value
    try:
        found = [int(word) for word in words]
    except ValueError:
        raise UsageError(f"--{name} {value}: expected a number, or two with a comma between them") from None
    return [*found, *usual[len(found) :]]


def _make_overfit_keys(flags: ParsedCommandLine, counted: int, workers: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration keys of a quick test run: a few updates on a small file, then an evaluation on
    it.

    counted: number of workers by which the program divides the learning rate's scale.
    workers: the keys that start workers.
    """
    size = read_phase_numbers(flags, "batch_size", [32])[0]
    length = read_phase_numbers(flags, "max_seq_length", [128])[0]
    data, starts, folder = flags["dataset_path"], flags["init_checkpoint_path"], flags["output_dir"]
    if flags.version:
        data = os.path.expanduser("~/tmp/bert-pretraining-overfit-dataset")
        starts = "/software/data/bert_checkpoints"
        folder = folder or os.path.expanduser("~/tmp/bert-pretraining-overfit-output")
    return _make_common_keys(flags, workers) | {
        "train_data": data,
        "eval_data": data,
        "eval_batch_size": 8,
        "eval_examples": 800,
        "max_seq_length": length,
        "max_predictions_per_seq": {128: 20, 512: 80}.get(length, math.floor(0.15 * length)),
        "steps": read_phase_numbers(flags, "iters", [200])[0],
        "warmup": read_phase_numbers(flags, "warmup", [10])[0],
        "batch_size": size,
        "accumulation": 1,
        "clipping": "per_update" if workers["world_size"] > 1 else _FIXED["clipping"],
        # Habana's program multiplies the learning rate by the number of workers twice: here, and again for
        # Horovod.
        "base_learning_rate": 6e-3 * size * counted / 65536,
        "checkpoint_every": 1000,
        "log_every": 1,
        "json_summary_form": "tensorflow",
        "output_dir": folder,
        "json_summary": storage.join(folder, "bert_dllog.json"),
        "start_from_ckpt": storage.join(starts, f"{flags['model_variant']}/model.ckpt-0"),
    }
