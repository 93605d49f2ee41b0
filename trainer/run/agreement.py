"""Comparison of the workers' versions, settings, data and weights. Workers that differ must not train
together.

Without the comparison no error would tell: a worker that differs would follow another learning-rate schedule,
use another precision or read other examples. At the start, each worker describes its versions, settings and
data in a few lines of text. The workers exchange a digest of their lines (64 bytes), and exchange the lines
themselves only if the digests differ. Settings that concern a single machine, or only rank 0, are not
compared.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import md5
from typing import Any

import torch
from torch import Tensor

from bertdata import __version__
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import BertDataError, DatasetError, SettingsError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from trainer.config.settings import DEVICE_OPTIONS, Config, format_flag, list_section_keys
from trainer.devices.device import Device
from trainer.errors import TrainerError
from trainer.update.worker import Runtime

_PATH_SETTINGS = (
    *("start_from_ckpt", "resume_from", "plan", "train_data", "eval_data"),
    *("task_dir", "task_train_file", "task_eval_file", "task_predict_file"),
)
"""Settings with paths, which may differ between machines. Either the contents of the files are compared
instead, or only rank 0 reads the path.
"""

_UNCOMPARED_SETTINGS = (
    *("output_dir", "save_plan", "model_config", "vocab", "dist", "world_size", "collective"),
    *("cache_dir", "cache_size"),
    *(key for section in ("reports", "loggers") for key in list_section_keys(section) if key != "log_every"),
)
"""Settings that are not compared, because they concern one machine or only rank 0, or are compared in another
form.
"""

_MOST_NAMED = 5

Lines = Mapping[str, str]
"""Values that a worker compares with the others, as text by their names, such as {"--seed": "1"}."""


def check_same_settings(runtime: Runtime, phases: Sequence[Config]) -> None:
    """End all workers with a SettingsError unless all have the same versions and settings."""
    if runtime.collective.size == 1:
        return
    lines = _find_versions() | {"number of phases": str(len(phases))}
    for config in phases:
        of_phase = f"phase {config.phase}'s " if len(phases) > 1 else ""
        lines |= {f"{of_phase}{name}": value for name, value in _describe_settings(config).items()}
    lines["device"] = runtime.device.name
    size = phases[0].workers.world_size or runtime.collective.size
    lines[format_flag("world_size")] = str(size)
    lines["FORCE_WEIGHT_SYNC"] = os.environ.get("FORCE_WEIGHT_SYNC", "not given")
    remedy = "start all workers with the same settings, on the same versions"
    _require_equal_lines(runtime, lines, SettingsError, remedy)


def check_same_data(runtime: Runtime, datasets: Mapping[str, OpenedDataset]) -> None:
    """End all workers with a DatasetError unless all have opened the same data.

    datasets: opened datasets, each by the name of the flag that has its path. Paths may differ between
    workers.
    """
    if runtime.collective.size == 1:
        return
    lines = dict[str, str]()
    for name, data in datasets.items():
        shape = {**asdict(data.layout), "vocabulary": data.vocabulary_size}
        files = f"{len(data.shards)} file{'s' if len(data.shards) > 1 else ''}"
        lines[name] = f"{data.examples} examples in {files} (digest {_compute_data_digest(data)})"
        lines[f"{name}: form of the examples"] = ", ".join(f"{key} {value}" for key, value in shape.items())
    if vocab := runtime.config.masking.vocab:
        is_file = not storage.is_remote(vocab) and os.path.isfile(vocab.removeprefix("file://"))
        lines[format_flag("vocab")] = f"md5 {compute_file_md5(vocab)}" if is_file else vocab
    _require_equal_lines(runtime, lines, DatasetError, "give every worker the same data, copied whole")


def check_same_weights(runtime: Runtime, name: str, weights: Sequence[Tensor], *, step: int) -> None:
    """End all workers with an error if two workers that hold the same weights have different bits in them.

    The comparison reads each weight once on the device, and copies one number per weight to the host.
    name: name of the part of the model that this worker holds. Only workers with equal names are compared.
    step: number of the update, for the message.
    """
    if runtime.collective.size == 1:
        return
    found = runtime.collective.gather([name, compute_weights_digest(runtime.device, weights)])
    ranks: dict[str, tuple[int, str]] = {}
    for rank, (held, digest) in enumerate(found):
        first, expected = ranks.setdefault(held, (rank, digest))
        if digest != expected:
            runtime.stop_all(
                TrainerError(
                    f"update {step}: the weights of worker {rank} differ from those of worker {first}; "
                    "one of them has computed something else: look for other hardware or packages, or "
                    "damage; nothing is saved; --resume continues from the last checkpoint, if there is one"
                )
            )


def compute_weights_digest(device: Device, weights: Sequence[Tensor]) -> str:
    """Return a digest of the weights. If any bit of a weight differs, the digest almost certainly differs."""
    if not weights:
        return ""
    # Other devices cannot read the bytes of a tensor as another type.
    if device.torch_device.type not in ("cpu", "cuda"):
        weights = [device.to_host(weight) for weight in weights]
    sums = torch.stack([_sum_as_integers(weight.detach()) for weight in weights])
    return md5(repr(sums.tolist()).encode(), usedforsecurity=False).hexdigest()


def _sum_as_integers(weight: Tensor) -> Tensor:
    """Return the sum of the weight's bytes, read as 64-bit integers, modulo 2**64.

    The last elements may not fill 64 bits. These last elements are added one by one. Summing 32-bit integers
    instead would take four times as long, because torch converts them to 64 bits first.
    """
    flat = weight.contiguous().flatten()
    # view(int64) needs an address that is a multiple of 8 bytes. A weight that is a slice of a larger tensor
    # may have another address, so it is copied first.
    each = 8 // flat.element_size()
    if flat.storage_offset() % each:
        flat = flat.clone()
    end = flat.numel() - flat.numel() % each
    rest = flat[end:].clone().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[flat.element_size()])
    return flat[:end].view(torch.int64).sum() + rest.sum(dtype=torch.int64)


def _find_versions() -> dict[str, str]:
    """Return the versions of bertdata and torch, by name."""
    return {"bertdata": __version__, "torch": str(torch.__version__)}


def _describe_settings(config: Config) -> dict[str, str]:
    """Return the settings of a phase as text, by their flags.

    For a path that may differ between machines, the text only says whether it is set.
    """
    keys = config.as_json()
    keys |= keys.pop(DEVICE_OPTIONS)
    # workers may have asked for "auto", so the name of the chosen device is compared instead
    keys["device"] = None
    model = {f"the model's {name}": value for name, value in config.model_settings.items()}
    lines = dict[str, str]()
    for name, value in keys.items():
        if name in _PATH_SETTINGS:
            lines[format_flag(name)] = "not given" if value is None else "given"
        elif name not in _UNCOMPARED_SETTINGS:
            lines[format_flag(name)] = "not given" if value is None else json.dumps(value)
    return lines | {name: json.dumps(value) for name, value in model.items()}


def _compute_data_digest(data: OpenedDataset) -> str:
    """Return a digest of the dataset's contents. A file without a checksum in a manifest is represented by
    its size.
    """
    sizes = [_find_file_size(shard) for shard in data.shards if shard.md5 is None]
    return md5(f"{data.digest} {sizes}".encode(), usedforsecurity=False).hexdigest()[:16]


def _find_file_size(shard: Shard) -> int:
    """Return the file's size in bytes, or 0 if the file does not exist."""
    return storage.read_size(shard.path) if shard.path and storage.exists(shard.path) else 0


def _require_equal_lines(runtime: Runtime, lines: Lines, kind: type[BertDataError], remedy: str) -> None:
    """End all workers with an error if the lines of two workers differ.

    kind: class of the error.
    remedy: what the user can do about it, for the message.
    """
    digest = md5(json.dumps(lines).encode(), usedforsecurity=False).hexdigest()
    if len(set(runtime.collective.gather(digest))) == 1:
        return
    runtime.stop_all(kind(f"{describe_difference(runtime.collective.gather(dict(lines)))}; {remedy}"))


def describe_difference(found: Sequence[Lines]) -> str:
    """Describe the first difference between the workers' lines with all its values, and name the other
    differences.

    found: the lines of each worker, by rank.

    >>> describe_difference([{"--seed": "1"}, {"--seed": "1"}, {"--seed": "2"}])
    'workers differ: --seed is 1 on workers 0 and 1, 2 on worker 2'
    """
    names = list(dict.fromkeys(name for lines in found for name in lines))
    differing = [name for name in names if len({lines.get(name) for lines in found}) > 1]
    name, *others = differing
    values: dict[Any, list[int]] = {}
    for rank, lines in enumerate(found):
        values.setdefault(lines.get(name, "not known"), []).append(rank)
    said = ", ".join(f"{value} on {_format_ranks(ranks)}" for value, ranks in values.items())
    more = ""
    if others:
        more = f"; {', '.join(others[:_MOST_NAMED])}"
        more += f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        more += " differs too" if len(others) == 1 else " differ too"
    return f"workers differ: {name} is {said}{more}"


def _format_ranks(ranks: Sequence[int]) -> str:
    """Return the ranks in words, for example "worker 2" or "workers 0, 1 and 2". At most five are listed."""
    if len(ranks) == 1:
        return f"worker {ranks[0]}"
    named = list(map(str, ranks))
    if len(named) > _MOST_NAMED:
        named[_MOST_NAMED:] = [f"{len(named) - _MOST_NAMED} more"]
    return f"workers {', '.join(named[:-1])} and {named[-1]}"
