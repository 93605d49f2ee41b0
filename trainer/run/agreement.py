"""What all workers of a run must have in common, compared once at the start, before anything is made.

Workers that differ would train together in silence: by another schedule, in another precision, on other
examples. So each of them describes its versions, settings and data in a few lines. Their digests are
compared, which takes one exchange of 64 bytes; the lines themselves are exchanged where the digests differ.
What one machine may have for itself is not compared: its paths, and what rank 0 alone writes.
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
from bertdata.io.file_check import file_md5
from trainer.config.settings import DEVICE_OPTIONS, Config, flag, section_keys
from trainer.devices.device import Device
from trainer.errors import TrainerError
from trainer.update.worker import Runtime

_READ_BY_ONE = (
    *("start_from_ckpt", "resume_from", "plan", "train_data", "eval_data"),
    *("task_dir", "task_train_file", "task_eval_file", "task_predict_file"),
)
"""Paths that may differ between machines: what they hold is compared, or read by rank 0 for all."""

_OF_ONE_WORKER = (
    *("output_dir", "save_plan", "model_config", "vocab", "dist", "world_size", "collective"),
    *(key for section in ("reports", "loggers") for key in section_keys(section) if key != "log_every"),
)
"""Keys of one machine, or of rank 0, and those that are compared in another form."""

_MOST_NAMED = 5

Lines = Mapping[str, str]
"""What a worker has, in words, by the name of the thing."""


def agree_on_settings(runtime: Runtime, phases: Sequence[Config]) -> None:
    """End all workers with one SettingsError unless all have the same versions and settings."""
    if runtime.workers.size == 1:
        return
    lines = _versions() | {"number of phases": str(len(phases))}
    for config in phases:
        of_phase = f"phase {config.phase}'s " if len(phases) > 1 else ""
        lines |= {f"{of_phase}{name}": value for name, value in _settings_lines(config).items()}
    lines["device"] = runtime.device.name
    size = phases[0].workers.world_size or runtime.workers.size
    lines[flag("world_size")] = str(size)
    lines["FORCE_WEIGHT_SYNC"] = os.environ.get("FORCE_WEIGHT_SYNC", "not given")
    remedy = "start all workers with the same settings, on the same versions"
    _compare(runtime, lines, SettingsError, remedy)


def agree_on_data(runtime: Runtime, datasets: Mapping[str, OpenedDataset]) -> None:
    """End all workers with one DatasetError unless all have opened the same data.

    datasets: by what they are for. Their paths may differ.
    """
    if runtime.workers.size == 1:
        return
    lines = dict[str, str]()
    for name, data in datasets.items():
        shape = {**asdict(data.layout), "vocabulary": data.vocabulary_size}
        files = f"{len(data.shards)} file{'s' if len(data.shards) > 1 else ''}"
        lines[name] = f"{data.examples} examples in {files} (digest {_digest(data)})"
        lines[f"{name}: form of the examples"] = ", ".join(f"{key} {value}" for key, value in shape.items())
    if vocab := runtime.config.masking.vocab:
        is_file = not storage.is_remote(vocab) and os.path.isfile(vocab.removeprefix("file://"))
        lines[flag("vocab")] = f"md5 {file_md5(vocab)}" if is_file else vocab
    _compare(runtime, lines, DatasetError, "give every worker the same data, copied whole")


def agree_on_weights(runtime: Runtime, name: str, weights: Sequence[Tensor], *, step: int) -> None:
    """End all workers with one error where two that hold the same weights have different bits.

    name: of what this worker holds. A weight counts by the sum of its bits, read as integers: it takes the
    device one pass over the weights, as the norms of a checkpoint's check do, and the host one number each.
    """
    if runtime.workers.size == 1:
        return
    found = runtime.workers.gather([name, weights_digest(runtime.device, weights)])
    ranks: dict[str, tuple[int, str]] = {}
    for rank, (held, digest) in enumerate(found):
        first, expected = ranks.setdefault(held, (rank, digest))
        if digest != expected:
            differ = f"update {step}: the weights of worker {rank} differ from those of worker {first}"
            why = "one of them has computed something else: look for other hardware or packages, or damage"
            remedy = "nothing is saved; --resume continues from the last checkpoint"
            runtime.stop_all(TrainerError(f"{differ}; {why}; {remedy}"))


def weights_digest(device: Device, weights: Sequence[Tensor]) -> str:
    """A digest of the weights' bits."""
    if not weights:
        return ""
    if device.torch_device.type not in ("cpu", "cuda"):  # others cannot read a number as another type
        weights = [device.to_host(weight) for weight in weights]
    sums = torch.stack([_sum_of_bits(weight.detach()) for weight in weights])
    return md5(repr(sums.tolist()).encode(), usedforsecurity=False).hexdigest()


def _sum_of_bits(weight: Tensor) -> Tensor:
    """The sum of the weight's bits, read as integers of 64 bits, modulo 2**64; those at the end one by one.

    Numbers of 32 bits, which a sum has to convert first, take it four times as long.
    """
    flat = weight.contiguous().flatten()
    each = 8 // flat.element_size()
    if flat.storage_offset() % each:
        flat = flat.clone()
    end = flat.numel() - flat.numel() % each
    rest = flat[end:].clone().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[flat.element_size()])
    return flat[:end].view(torch.int64).sum() + rest.sum(dtype=torch.int64)


def _versions() -> dict[str, str]:
    return {"bertdata": __version__, "torch": str(torch.__version__)}


def _settings_lines(config: Config) -> dict[str, str]:
    """The settings of a phase by their flags. Of a path that one machine reads, whether it is given."""
    keys = config.as_json()
    keys |= keys.pop(DEVICE_OPTIONS)
    keys["device"] = None  # the one that is found is compared
    model = {f"the model's {name}": value for name, value in config.model_settings.items()}
    lines = dict[str, str]()
    for name, value in keys.items():
        if name in _READ_BY_ONE:
            lines[flag(name)] = "not given" if value is None else "given"
        elif name not in _OF_ONE_WORKER:
            lines[flag(name)] = "not given" if value is None else json.dumps(value)
    return lines | {name: json.dumps(value) for name, value in model.items()}


def _digest(data: OpenedDataset) -> str:
    """The digest of a dataset. A file that no manifest lists counts by its size."""
    sizes = [_size(shard) for shard in data.shards if shard.md5 is None]
    return md5(f"{data.digest} {sizes}".encode(), usedforsecurity=False).hexdigest()[:16]


def _size(shard: Shard) -> int:
    return storage.size(shard.path) if shard.path and storage.exists(shard.path) else 0


def _compare(runtime: Runtime, lines: Lines, kind: type[BertDataError], remedy: str) -> None:
    """End all workers with an error of that kind where the lines of one differ from rank 0's."""
    digest = md5(json.dumps(lines).encode(), usedforsecurity=False).hexdigest()
    if len(set(runtime.workers.gather(digest))) == 1:
        return
    runtime.stop_all(kind(f"{difference(runtime.workers.gather(dict(lines)))}; {remedy}"))


def difference(found: Sequence[Lines]) -> str:
    """The first difference between the workers' lines, with both values, and the names of the others.

    >>> difference([{"--seed": "1"}, {"--seed": "1"}, {"--seed": "2"}])
    'workers differ: --seed is 1 on worker 0, 2 on worker 2'
    """
    names = list(dict.fromkeys(name for lines in found for name in lines))
    differing = [name for name in names if len({lines.get(name) for lines in found}) > 1]
    name, *others = differing
    values: dict[Any, list[int]] = {}
    for rank, lines in enumerate(found):
        values.setdefault(lines.get(name, "not known"), []).append(rank)
    said = ", ".join(f"{value} on {_workers(ranks)}" for value, ranks in values.items())
    more = ""
    if others:
        more = f"; {', '.join(others[:_MOST_NAMED])}"
        more += f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        more += " differs too" if len(others) == 1 else " differ too"
    return f"workers differ: {name} is {said}{more}"


def _workers(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"worker {ranks[0]}"
    shown = ", ".join(map(str, ranks[:_MOST_NAMED]))
    return f"workers {shown}" + (f" and {len(ranks) - _MOST_NAMED} more" if len(ranks) > _MOST_NAMED else "")
