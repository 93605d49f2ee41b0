"""Pre-training by Habana's demo_bert.py for TensorFlow: bookswiki in two phases, or overfit."""

import math
import os
from collections.abc import Sequence
from typing import Any

from bertdata.cli.common.program_flags import Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.extensions.like.constants import sizes_of
from trainer.extensions.like.habana_tf.constants import LAMB, SHAPES
from trainer.extensions.like.habana_tf.workers import Workers
from trainer.extensions.like.program import Meaning

_UPDATES = (65536, 32768)
_FAST_UPDATES = (1600, 200)
_RATES = (7.5e-4, 5e-4)
"""Of one worker of eight, for updates of the full size."""
_MOST_PREDICTIONS = {128: 20, 512: 80}
_SHELL_DATA = "/software/data/tf/data/bert/"


def pretraining(given: Given, workers: Workers) -> Meaning:
    """The phases that the command line asks for."""
    test_set = given["test_set"]
    if test_set not in ("bookswiki", "overfit"):
        raise UsageError(f"test_set {test_set} is fine-tuned; pre-training takes bookswiki or overfit")
    warnings = list(workers.warnings)
    phases = [_overfit(given, workers)] if test_set == "overfit" else _bookswiki(given, workers, warnings)
    which = test_set if len(phases) == 1 else f"{test_set}, both phases"
    return Meaning(
        summary=f"{which}, {sizes_of(phases)} examples an update, {phases[0]['precision']}, lamb, hpu",
        phases=phases,
        warnings=warnings,
    )


def _common(given: Given, workers: Workers) -> dict[str, Any]:
    keys = LAMB | workers.keys | {"precision": given["data_type" if not given.version else "dtype"]}
    variant = given["model_variant" if not given.version else "model"]
    folder = given.values.get("bert_config_dir")
    if folder:
        keys["model_config"] = storage.join(folder, "bert_config.json")
    else:
        keys |= SHAPES[variant]
    # The shell script's workers average the weights before each update, unless that is switched off.
    if given.version and workers.horovod:
        keys["force_weight_sync"] = os.environ.get("FORCE_WEIGHT_SYNC", "true").lower() in ("1", "true")
    return keys


# --- bookswiki ----------------------------------------------------------------------------------


def _bookswiki(given: Given, workers: Workers, warnings: list[str]) -> list[dict[str, Any]]:
    """Both phases, or one of them where Kubernetes runs several workers."""
    if given.values.get("no_steps_accumulation") == 1:
        warnings.append("no_steps_accumulation 1: the program accumulates all the same")
    phases = [_phase(given, workers, number) for number in (0, 1)]
    if given["fast_perf_only"] != 1:
        first, second = (keys["batch_size"] * keys["accumulation"] for keys in phases)
        phases[1]["steps"] = max(1, phases[1]["steps"] * first // second)
    last = f"model.ckpt-{phases[0]['steps']}"
    phases[1]["start_from_ckpt"] = storage.join(phases[0]["output_dir"], last)  # weights only
    if given.values.get("kubernetes_run") and workers.horovod:
        return phases[1:] if given["run_phase2"] else phases[:1]
    return phases


def _phase(given: Given, workers: Workers, number: int) -> dict[str, Any]:
    """The keys of a phase, counted from 0. Phase 2's steps are still those of updates of phase 1's size."""
    precision = given["data_type" if not given.version else "dtype"]
    size = _pair(given, "batch_size", (64 if precision == "bf16" else 32, 8))[number]
    length = _pair(given, "max_seq_length", (128, 512))[number]
    is_fast = given["fast_perf_only"] == 1 and given.values.get("no_steps_accumulation") != 1
    update = (_FAST_UPDATES if is_fast else _UPDATES)[number]
    folder = given["output_dir"] or os.path.expanduser("~/tmp/pretraining")
    keys = _common(given, workers) | {
        "train_data": storage.join(_corpus(given, length), "training"),
        "max_seq_length": length,
        "max_predictions_per_seq": (20, 80)[number],
        "steps": _pair(given, "iters", (7038, 782))[number],
        "warmup": _pair(given, "warmup", (2000, 200))[number],
        "batch_size": size,
        "accumulation": _count(update, workers.counted, size),
        "allreduce_post_accumulation": True,
        "base_learning_rate": _RATES[number] * (8 / workers.counted) * (update / _UPDATES[number]),
        "checkpoint_every": given.values.get("save_ckpt_steps", 100),
        "log_every": 10,
        "output_dir": storage.join(folder, f"phase_{number + 1}"),
        "json_summary": storage.join(folder, f"phase_{number + 1}/bert_dllog.json"),
    }
    if keys["accumulation"] == 1 and workers.keys["world_size"] > 1:
        keys["clipping"] = "per_update"
    return keys


def _count(update: int, workers: int, size: int) -> int:
    """Micro-batches of an update. A remainder is dropped, as by the program."""
    count = int(update / workers / size)
    if count < 1:
        raise UsageError(
            f"an update of {update} examples / {workers} workers / batch_size {size} leaves none"
        )
    return count


def _corpus(given: Given, length: int) -> str:
    """The directory of training and test for examples of that length."""
    if given.version:
        prefix = os.environ.get("INPUT_FILES_PREFIX", _SHELL_DATA)
        root = storage.join(prefix, "books_wiki_en_corpus/tfrecord")
    else:
        root = given["dataset_path"]
    return storage.join(root, f"seq_len_{length}/books_wiki_en_corpus")


def _pair(given: Given, name: str, usual: Sequence[int]) -> Sequence[int]:
    """The values of both phases: A,B of demo_bert.py, A B of the shell script. Phase 2's may be left out."""
    value = given[name]
    if value is None:
        return usual
    words = value.split(",") if isinstance(value, str) else value
    try:
        found = [int(word) for word in words]
    except ValueError:
        raise UsageError(f"--{name} {value}: expected a number, or two with a comma between them") from None
    return found if len(found) > 1 else [found[0], usual[1]]


# --- overfit ------------------------------------------------------------------------------------


def _overfit(given: Given, workers: Workers) -> dict[str, Any]:
    """A few updates on a small file, then an evaluation on the same."""
    size = _pair(given, "batch_size", (32, 0))[0]
    length = _pair(given, "max_seq_length", (128, 0))[0]
    variant = given["model_variant" if not given.version else "model"]
    if given.version:
        data, starts = (
            os.path.expanduser("~/tmp/bert-pretraining-overfit-dataset"),
            "/software/data/bert_checkpoints",
        )
        folder = given["output_dir"] or os.path.expanduser("~/tmp/bert-pretraining-overfit-output")
    else:
        data, starts, folder = given["dataset_path"], given["init_checkpoint_path"], given["output_dir"]
    return _common(given, workers) | {
        "train_data": data,
        "eval_data": data,
        "eval_batch_size": 8,
        "eval_examples": 800,
        "max_seq_length": length,
        "max_predictions_per_seq": _MOST_PREDICTIONS.get(length, math.floor(0.15 * length)),
        "steps": _pair(given, "iters", (200, 0))[0],
        "warmup": _pair(given, "warmup", (10, 0))[0],
        "batch_size": size,
        "accumulation": 1,
        "clipping": "per_update" if workers.keys["world_size"] > 1 else LAMB["clipping"],
        # Horovod multiplies a rate that has been multiplied already.
        "base_learning_rate": 6e-3 * size * workers.counted / 65536,
        "checkpoint_every": 1000,
        "log_every": 10,
        "output_dir": folder,
        "json_summary": storage.join(folder, "bert_dllog.json"),
        "start_from_ckpt": storage.join(starts, f"{variant}/model.ckpt-0"),
    }
