"""Translate the environment variables and positional arguments of RaNNC's run_pretraining_rannc.sh."""

from collections.abc import Sequence
from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.config.value_check import read_object
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.programs.batch_sizes import compute_micro_batch_size
from trainer.programs.nvidia.run_pretraining import HDF5_DATA, make_continue_keys, make_start_keys
from trainer.programs.shapes import make_bert_shape
from trainer.programs.translated_command import TranslatedCommand, make_phase_keys

_PUBLISHED_SHAPE: dict[str, Any] = make_bert_shape(96, 2048, 32) | {
    "megatron_residual_connection": True,
    "scale_query_key": True,
    "deep_weight_init": True,
}
"""The shape of the published model with 4.9 billion parameters, from the my_bert_config.json in the
README.
"""

_EXAMPLE_SIZES = ((128, 20), (512, 80))
"""For each phase, the number of token ids and of masked ids in an example."""

_POSITIONS = (
    *("train_batch_size", "learning_rate", "precision", "num_gpus", "warmup_proportion", "train_steps"),
    *("save_checkpoint_steps", "resume_training", "create_logfile", "accumulate_gradients"),
    *("gradient_accumulation_steps", "seed", "job_name", "allreduce_post_accumulation"),
    *("allreduce_post_accumulation_fp16", "unused", "train_batch_size_phase2", "learning_rate_phase2"),
    *("warmup_proportion_phase2", "train_steps_phase2", "gradient_accumulation_steps_phase2"),
    *("data_dir_phase1", "data_dir_phase2", "codedir", "init_checkpoint"),
)
"""The script's positional arguments in order, each with the name that it gets as a flag."""

_VARIABLES = {
    "train_batch_size": "BATCH_SIZE_PROC_P",
    "gradient_accumulation_steps": "ACC_STEPS_P",
    "train_steps": "TRAIN_STEPS_P",
}
"""For numbers that may come from an environment variable instead of an argument, the variable's name. The
number of the phase is appended to it.
"""

_RESIDUAL_WARNINGS = {
    True: "with megatron_residual_connection the original has no norm after the last layer; here it has one",
    False: "without megatron_residual_connection the original adds the residual of the feed-forward part "
    "after the norm; here it is before it, as in BERT",
}
"""For each value of megatron_residual_connection, a warning about what the original modeling.py does
differently.
"""


def rewrite_arguments(arguments: Sequence[str], version: str) -> tuple[list[str], str]:
    """Return the positional arguments as flags with names, and the version of the program unchanged."""
    if any(word.startswith("--") or word == "-h" for word in arguments):
        return list(arguments), version
    if len(arguments) > len(_POSITIONS):
        raise UsageError(
            f"rannc/run_pretraining_rannc.sh: found {len(arguments)} words, the script reads "
            f"{len(_POSITIONS)}"
        )
    named = zip(_POSITIONS, arguments, strict=False)
    return [f"--{name}={word}" for name, word in named if word], version


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate environment variables and arguments into the configuration for the phases of pre-training."""
    precision = flags["precision"] or flags["PREC"]
    if precision not in ("fp16", "fp32"):
        raise UsageError(f"Unknown <precision> argument: PREC is {precision!r}, expected fp16 or fp32")
    if flags["SKIP_GRAD_SCALING"] != "false":
        raise UsageError(
            f"SKIP_GRAD_SCALING is {flags['SKIP_GRAD_SCALING']}: this trainer averages gradients over the "
            "copies of the model"
        )
    only = [flags[f"PHASE{number}_ONLY"] != "0" for number in (1, 2)]
    if all(only):
        raise UsageError("PHASE1_ONLY and PHASE2_ONLY: the script skips both phases")
    has_data = all(flags[f"data_dir_phase{number}"] for number in (1, 2))
    for name, is_given in (("CODEDIR", flags["codedir"]), ("BERT_PREP_WORKING_DIR", has_data)):
        if name not in flags and not is_given:
            taken = f"taken as {flags[name]}, as in the directory that README runs the script in"
            flags.warn(f"{name} is not set; {taken}")
    numbers = [1] if only[0] else [2] if only[1] else [1, 2]
    shape = _make_shape_keys(flags["BERT_CONFIG"], flags)
    phases = [
        shape | make_phase_keys(flags) | _make_phase_keys(flags, number, precision, only[1])
        for number in numbers
    ]
    return TranslatedCommand(what=f"{len(phases)} of 2 phases", phases=phases)


def _find_phase_number(flags: ParsedCommandLine, name: str, number: int) -> int:
    """Return a number of a phase, from the positional argument or, without one, from the environment
    variable.

    number: 1 for phase 1 and 2 for phase 2.
    """
    word = flags[name if number == 1 else f"{name}_phase2"]
    found: int = flags[f"{_VARIABLES[name]}{number}"] if word is None else word
    return found


def _make_shape_keys(path: str, flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for the model's shape. If the file is missing, they are those of the
    published file.

    path: path of the model's configuration file.
    """
    if storage.exists(path):
        flags.warn(_RESIDUAL_WARNINGS[read_object(path).get("megatron_residual_connection") is True])
    elif storage.get_base_name(path) == "my_bert_config.json":
        missing = f"{path}: no such file; taken as the one that README prints, of 4.9 billion parameters"
        flags.warn(missing, _RESIDUAL_WARNINGS[True])
        return _PUBLISHED_SHAPE
    return {"model_config": path}


def _make_phase_keys(flags: ParsedCommandLine, number: int, precision: str, alone: bool) -> dict[str, Any]:
    """Return the configuration keys of a phase.

    alone: True for phase 2 without phase 1 before it, so that it starts with new weights.
    """
    length, masks = _EXAMPLE_SIZES[number - 1]
    workers, suffix = flags["NP"], "" if number == 1 else "_phase2"
    count = (
        _find_phase_number(flags, "gradient_accumulation_steps", number)
        if flags["accumulate_gradients"]
        else 1
    )
    results = storage.join(flags["codedir"] or flags["CODEDIR"], "results")
    both = "_".join(
        f"P{one}BS{flags[f'BATCH_SIZE_PROC_P{one}']}_P{one}ACC{flags[f'ACC_STEPS_P{one}']}_"
        f"P{one}STEPS{flags[f'TRAIN_STEPS_P{one}']}"
        for one in (1, 2)
    )
    name = f"rannc_NP{workers}_{both}_PREC{flags['PREC']}"
    data = storage.join(flags["BERT_PREP_WORKING_DIR"], f"{HDF5_DATA}/".format(length, masks))
    rate = flags[f"learning_rate{suffix}"]
    keys: dict[str, Any] = {
        "train_data": flags[f"data_dir_phase{number}"] or data,
        "max_seq_length": length,
        "max_predictions_per_seq": masks,
        "steps": _find_phase_number(flags, "train_steps", number),
        "base_learning_rate": flags["LR"] if rate is None else rate,
        "warmup": flags[f"warmup_proportion{suffix}"],
        "precision": precision,
        "batch_size": compute_micro_batch_size(_find_phase_number(flags, "train_batch_size", number), count),
        "accumulation": count,
        "dist": workers > 1,
        "output_dir": storage.join(results, f"{name}/checkpoints"),
        "json_summary": storage.join(results, "dllogger.json"),
    }
    keys |= _make_starting_point_keys(flags, number, keys["output_dir"], alone)
    for variable, key in (("SAVE_DEPLOYMENT", "save_plan"), ("LOAD_DEPLOYMENT", "plan")):
        # The variable contains a path, or "true" for the path in DEPLOYMENT_FILE.
        file = flags[variable] if flags[variable] != "true" else flags["DEPLOYMENT_FILE"]
        if file and file != "false":
            keys[key] = file
    return keys


def _make_starting_point_keys(
    flags: ParsedCommandLine, number: int, output_dir: str, alone: bool
) -> dict[str, Any]:
    """Return the configuration keys for the checkpoint that the phase starts from.

    Phase 1 resumes only if an argument asks for it.
    alone: True for phase 2 without phase 1 before it.
    """
    steps = _find_phase_number(flags, "train_steps", 1)
    resumes, start = flags["resume_training"], flags["init_checkpoint"]
    start = None if start == "None" else start
    if number == 2 and not alone:
        return (
            make_continue_keys(output_dir, phase1_end_step=steps)
            if resumes
            else _make_second_phase_keys(steps)
        )
    if start and number == 1:
        if resumes:
            return make_start_keys(start=start)
        flags.warn("init_checkpoint acts only with resume_training true: ignored, as by the program")
    return make_continue_keys(output_dir, phase1_end_step=None) if resumes else {}


def _make_second_phase_keys(steps: int) -> dict[str, Any]:
    """Return the configuration keys of phase 2 if the same command trains phase 1 first.

    steps: number of updates in phase 1.
    """
    return {"phase2": True, "phase1_end_step": steps}
