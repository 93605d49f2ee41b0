"""Translate the command lines of Habana's run_pretraining.py for PyTorch to this trainer's configuration."""

from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.config.value_check import read_object
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.programs.machine import count_gpus
from trainer.programs.nvidia.run_pretraining import compute_phase_keys
from trainer.programs.translated_command import TranslatedCommand
from trainer.workers.launchers import find_rank

_USUAL_PACK_SIZES = {128: 1.2, 512: 2.0}
"""For each length of a row, the mean number of sequences packed in it. It is used if the packing program's
metadata file is missing.
"""


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for one phase of pre-training."""
    keys = compute_phase_keys(flags) | _make_device_keys(flags)
    keys |= {
        "log_every": _round_up_updates(flags, "log_freq"),
        "steps": _round_up_updates(flags, "max_steps"),
    }
    if flags.values.get("enable_packed_data_mode"):
        keys |= make_packed_keys(flags, keys["accumulation"], _read_mean_pack_size(flags))
    if keys["precision"] != "fp16":
        is_bf16 = flags.values.get("hmp") or flags.values.get("autocast")
        of_fp16 = ("loss_scaling", "init_loss_scale", "max_loss_scale")
        keys = {name: value for name, value in keys.items() if name not in of_fp16}
        keys["precision"] = "bf16" if is_bf16 else "fp32"
    return TranslatedCommand(what=f"phase {2 if keys['phase2'] else 1}", phases=[keys])


def _make_device_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for the device and the workers.

    If no flag chooses a device, Habana's program uses a GPU if there is one, and the CPU if there is none.
    """
    keys: dict[str, Any] = {"device": "cpu", "world_size": find_rank()[1], "dist": False}
    if flags["use_habana"]:
        options: dict[str, Any] = {"mode": _choose_execution_mode(flags)}
        if not flags["use_fused_lamb"]:
            options["use_fused_lamb"] = False
        return keys | {"device": "hpu", "device_options": options}
    gpus = 0 if flags["no_cuda"] else count_gpus()
    if not gpus:
        return keys
    if gpus > 1 and keys["world_size"] == 1:
        flags.warn(f"the program alone trains on all {gpus} GPUs, each with this batch; here on one")
    return keys | {"device": "cuda"}


def _choose_execution_mode(flags: ParsedCommandLine) -> str:
    """Return the card's execution mode: "graph", "eager" or "lazy"."""
    is_lazy, is_graph = flags["use_lazy_mode"], flags.values.get("use_jit_trace")
    if flags.version:  # in these versions, torch.compile takes precedence over the lazy mode
        is_graph = flags["use_torch_compile"]
        is_lazy = not is_graph and flags["PT_HPU_LAZY_MODE"] == "1"
    if is_lazy:
        return "lazy"
    return "graph" if is_graph else "eager"


def _round_up_updates(flags: ParsedCommandLine, name: str) -> int:
    """Return the value of a flag that takes a fractional number of updates, rounded up."""
    return max(1, -int(-flags[name] // 1))


def make_packed_keys(flags: ParsedCommandLine, count: int, mean: float) -> dict[str, Any]:
    """Return the configuration keys for micro-batches of packed rows (several sequences in each row).

    Habana's program divides the number of micro-batches by the mean number of sequences per row. So an update
    has about as many sequences as without packing.
    count: number of micro-batches per update without packing.
    mean: mean number of sequences per row.
    """
    rows = round(count / mean)
    if rows < 1:
        flags.warn(
            f"{count} micro-batches / {mean:g} sequences a pack rounds to 0, which ends the program; here 1"
        )
    return {"accumulation": max(1, rows), "packed_accumulation": "rows"}


def _read_mean_pack_size(flags: ParsedCommandLine) -> float:
    """Return the mean number of sequences in a packed row.

    It is read from the packing program's metadata file. Without that file, the mean is the constant in
    Habana's program.
    """
    from bertdata.packing.habana_metadata import make_metadata_path  # this module imports numpy

    path, length = make_metadata_path(flags["input_dir"]), flags["max_seq_length"]
    if storage.exists(path):
        found = read_object(path).get("avg_seq_per_sample")
        if not isinstance(found, int | float) or found <= 0:
            raise UsageError(f"Key avg_seq_per_sample not present in packed dataset metadata file: {path}")
        return float(found)
    if length not in _USUAL_PACK_SIZES:
        known = " or ".join(map(str, _USUAL_PACK_SIZES))
        raise UsageError(
            f"{path}: is missing, and max_seq_length is {length}, expected {known} to do without"
        )
    mean: float = _USUAL_PACK_SIZES[length]
    flags.warn(f"{path}: is missing; {mean:g} sequences a pack are assumed, as by the program")
    return mean
