"""Habana's run_pretraining.py: one phase of pre-training on Gaudi, in the workers of a launcher.

demo_bert.py runs this program, and has its rules.
"""

import os
from typing import Any

from bertdata.cli.common.program_flags import SWITCH, Flag, Given
from bertdata.config.value_check import read_object
from bertdata.errors import UsageError
from bertdata.io import storage
from bertdata.packing.habana_metadata import metadata_path
from trainer.programs.flag_tables import idle_flags, with_rows
from trainer.programs.machine import count_gpus
from trainer.programs.nvidia.run_pretraining import FLAGS, phase_of
from trainer.programs.program import Meaning, Program
from trainer.workers.launchers import find_rank


def true(text: str) -> bool:
    """The program's reading of some values: true in any case is true, all else false."""
    return text.lower() == "true"


_COMMON = with_rows(
    FLAGS,
    *idle_flags("saves memory, changes no result", SWITCH, "--checkpoint_activations"),
    *idle_flags("it is done anyway", SWITCH, "--allreduce_post_accumulation"),
    *idle_flags("on hpu the program sums in fp32", SWITCH, "--allreduce_post_accumulation_fp16"),
    Flag("--no_cuda", SWITCH, meaning="train on a processor"),
    Flag("--use_habana", SWITCH, meaning="train on Gaudi"),
    Flag("--use_fused_lamb", SWITCH, meaning="the vendor's LAMB in place of PyTorch operations"),
)
_FIRST = [
    *_COMMON,
    *idle_flags("", float, "--tqdm_smoothing"),
    Flag("--use_jit_trace", SWITCH, meaning="graph mode"),
    Flag("--use_lazy_mode", SWITCH, meaning="lazy mode; without it and --use_jit_trace: eager"),
    Flag("--hmp", SWITCH, meaning="bf16"),
    *idle_flags("the device chooses the types", str, "--hmp_bf16= --hmp_fp32= --hmp_opt_level=O1"),
    *idle_flags("", SWITCH, "--hmp_verbose"),
]
"""Version 0.15.4."""

_LATER = [
    *_COMMON,
    Flag("--autocast", SWITCH, meaning="bf16"),
    Flag("--use_torch_compile", SWITCH, meaning="compile the model: graph mode"),
    *idle_flags("PT_HPU_LAZY_MODE decides it", true, "--use_lazy_mode=true"),
    Flag("--enable_packed_data_mode", true, True, "the data are packed rows of several sequences; "
         "their mean number, of DIR_metadata.json beside the data, divides the accumulation"),
    *idle_flags("it saves memory only", true, "--use_zero_optimizer=false"),
    Flag("--profile", bool, False, "record a profile; any value is true", key="profile"),
    *idle_flags("the profile is of four updates", str, "--profile_steps=0"),
    *idle_flags("it is written to output_dir", str, "--tensorboard_logdir="),
    *idle_flags("", bool, "--use-hpu-graphs="),
    *idle_flags("", SWITCH, "--no_compiled_autograd"),
    *idle_flags("", str, "--log_memory_usage", default=False),
    Flag("--enable-tensorboard-logging", SWITCH, meaning="TensorBoard's files", key="tensorboard"),
]  # fmt: skip
"""Version 1.23."""


_USUAL_MEANS = {128: 1.2, 512: 2.0}
"""Sequences of a pack by length, where the packer's metadata file is missing."""


def resolve(given: Given) -> Meaning:
    """The phase that the command line asks for."""
    keys = phase_of(given) | _device(given)
    keys |= {"gelu": "exact", "log_every": _whole(given, "log_freq"), "steps": _whole(given, "max_steps")}
    if given.values.get("enable_packed_data_mode"):
        keys |= packed(given, keys["accumulation"], _read_mean(given))
    if keys["precision"] != "fp16":
        is_bf16 = given.values.get("hmp") or given.values.get("autocast")
        of_fp16 = ("loss_scaling", "init_loss_scale", "max_loss_scale")
        keys = {name: value for name, value in keys.items() if name not in of_fp16}
        keys["precision"] = "bf16" if is_bf16 else "fp32"
    return Meaning(what=f"phase {2 if keys['phase2'] else 1}", phases=[keys])


def _device(given: Given) -> dict[str, Any]:
    """The device and the workers. Without a flag the program takes CUDA if available, else a processor."""
    keys: dict[str, Any] = {"device": "cpu", "world_size": find_rank()[1], "dist": False}
    if given["use_habana"]:
        options: dict[str, Any] = {"mode": _mode(given)}
        if not given["use_fused_lamb"]:
            options["use_fused_lamb"] = False
        return keys | {"device": "hpu", "device_options": options}
    gpus = 0 if given["no_cuda"] else count_gpus()
    if not gpus:
        return keys
    if gpus > 1 and keys["world_size"] == 1:
        given.warn(f"the program alone trains on all {gpus} GPUs, each with this batch; here on one")
    return keys | {"device": "cuda"}


def _mode(given: Given) -> str:
    is_lazy, is_graph = given["use_lazy_mode"], given.values.get("use_jit_trace")
    if given.version:  # torch.compile goes before lazy mode
        is_graph = given["use_torch_compile"]
        is_lazy = not is_graph and os.environ.get("PT_HPU_LAZY_MODE", "1") == "1"
    if is_lazy:
        return "lazy"
    return "graph" if is_graph else "eager"


def _whole(given: Given, name: str) -> int:
    """The value of a flag that takes a fraction, as the number of updates after which it is reached."""
    return max(1, -int(-given[name] // 1))


def packed(given: Given, count: int, mean: float) -> dict[str, Any]:
    """The keys of micro-batches of packed rows, each of so many sequences, in place of single sequences."""
    rows = round(count / mean)
    if rows < 1:
        found = f"{count} micro-batches / {mean:g} sequences a pack"
        given.warn(f"{found} rounds to 0, which ends the program; here 1")
    return {"accumulation": max(1, rows), "packed_accumulation": "rows"}


def _read_mean(given: Given) -> float:
    """Sequences of a pack on average: the packer's number, else the program's for data of that length."""
    path, length = metadata_path(given["input_dir"]), given["max_seq_length"]
    if storage.exists(path):
        found = read_object(path).get("avg_seq_per_sample")
        if not isinstance(found, int | float) or found <= 0:
            raise UsageError(f"Key avg_seq_per_sample not present in packed dataset metadata file: {path}")
        return float(found)
    if length not in _USUAL_MEANS:
        known = " or ".join(map(str, _USUAL_MEANS))
        raise UsageError(
            f"{path}: is missing, and max_seq_length is {length}, expected {known} to do without"
        )
    mean: float = _USUAL_MEANS[length]
    given.warn(f"{path}: is missing; {mean:g} sequences a pack are assumed, as by the program")
    return mean


PROGRAM = Program("habana/run_pretraining.py", {"": _FIRST}, resolve, versions={"1.23": {"": _LATER}})
