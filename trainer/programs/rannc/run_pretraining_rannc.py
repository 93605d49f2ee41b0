"""RaNNC's run_pretraining_rannc.sh: the meaning of its environment variables."""

from typing import Any

from bertdata.cli.common.programs.command_line import Given
from bertdata.config.value_check import read_object
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.programs.batch_sizes import micro_batch
from trainer.programs.meaning import Meaning, phase_keys
from trainer.programs.nvidia.run_pretraining import HDF5_DATA
from trainer.programs.shapes import bert_shape

_PUBLISHED_SHAPE: dict[str, Any] = bert_shape(96, 2048, 32) | {
    "megatron_residual_connection": True,
    "scale_query_key": True,
    "deep_weight_init": True,
}
"""The file my_bert_config.json that README prints, of 4.9 billion parameters."""

_SIZES = ((128, 20), (512, 80))
"""Ids and masked ids of an example, of each phase."""

_PLACES = ("CODEDIR", "BERT_PREP_WORKING_DIR")

_RESIDUALS = {
    True: "with megatron_residual_connection the original has no norm after the last layer; here it has one",
    False: "without megatron_residual_connection the original adds the residual of the feed-forward part "
    "after the norm; here it is before it, as in BERT",
}
"""Differences of the original's modeling.py, by megatron_residual_connection."""


def resolve(given: Given) -> Meaning:
    """Return the phases that the environment asks for."""
    if given["PREC"] not in ("fp16", "fp32"):
        raise UsageError(f"Unknown <precision> argument: PREC is {given['PREC']!r}, expected fp16 or fp32")
    only = [given[f"PHASE{number}_ONLY"] != "0" for number in (1, 2)]
    if all(only):
        raise UsageError("PHASE1_ONLY and PHASE2_ONLY: the script skips both phases")
    for name in _PLACES:
        if name not in given:
            taken = f"taken as {given[name]}, as in the directory that README runs the script in"
            given.warn(f"{name} is not set; {taken}")
    numbers = [1] if only[0] else [2] if only[1] else [1, 2]
    shape = _shape(given["BERT_CONFIG"], given)
    phases = [shape | phase_keys(given) | _phase(given, number, alone=only[1]) for number in numbers]
    return Meaning(what=f"{len(phases)} of 2 phases", phases=phases)


def _shape(path: str, given: Given) -> dict[str, Any]:
    """Return the model's keys. Without the file, those of the published one."""
    if storage.exists(path):
        given.warn(_RESIDUALS[read_object(path).get("megatron_residual_connection") is True])
    elif storage.base_name(path) == "my_bert_config.json":
        missing = f"{path}: no such file; taken as the one that README prints, of 4.9 billion parameters"
        given.warn(missing, _RESIDUALS[True])
        return _PUBLISHED_SHAPE
    return {"model_config": path}


def _phase(given: Given, number: int, *, alone: bool) -> dict[str, Any]:
    """Return the keys of a phase. alone: phase 2 without phase 1, which starts with new weights."""
    length, masks = _SIZES[number - 1]
    workers, count = given["NP"], given[f"ACC_STEPS_P{number}"]
    results = storage.join(given["CODEDIR"], "results")
    both = "_".join(
        f"P{one}BS{given[f'BATCH_SIZE_PROC_P{one}']}_P{one}ACC{given[f'ACC_STEPS_P{one}']}_"
        f"P{one}STEPS{given[f'TRAIN_STEPS_P{one}']}"
        for one in (1, 2)
    )
    name = f"rannc_NP{workers}_{both}_PREC{given['PREC']}"
    keys: dict[str, Any] = {
        "train_data": storage.join(given["BERT_PREP_WORKING_DIR"], f"{HDF5_DATA}/".format(length, masks)),
        "max_seq_length": length,
        "max_predictions_per_seq": masks,
        "steps": given[f"TRAIN_STEPS_P{number}"],
        "batch_size": micro_batch(given[f"BATCH_SIZE_PROC_P{number}"], count),
        "accumulation": count,
        "dist": workers > 1,
        "output_dir": storage.join(results, f"{name}/checkpoints"),
        "json_summary": storage.join(results, "dllogger.json"),
    }
    if number == 2 and not alone:
        keys |= {"phase2": True, "phase1_end_step": given["TRAIN_STEPS_P1"]}
    for variable, key in (("SAVE_DEPLOYMENT", "save_plan"), ("LOAD_DEPLOYMENT", "plan")):
        # DEPLOYMENT_FILE where the variable is "true", else the variable's own
        file = given[variable] if given[variable] != "true" else given["DEPLOYMENT_FILE"]
        if file and file != "false":
            keys[key] = file
    return keys
