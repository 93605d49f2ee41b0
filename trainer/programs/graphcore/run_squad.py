"""Translate the command lines and the JSON file of Graphcore's run_squad.py to this trainer's keys."""

from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from trainer.programs.graphcore import values
from trainer.programs.translated_command import TranslatedCommand, make_phase_keys

_SOURCE = "graphcore/examples 09b7c672"


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line and its JSON file into the configuration for fine-tuning and predictions on
    SQuAD, as far as they ask for them.
    """
    opts = values.merge_values(flags, _SOURCE)
    for name in ("micro_batch_size", "gradient_accumulation_count"):
        if not opts[name]:
            raise UsageError(f"{opts['config']}: {name} is missing; give --{name.replace('_', '-')}")
    if opts["groupbert"]:
        raise UsageError("groupbert: this trainer has no GroupBERT")
    if not (opts["do_training"] or opts["do_predict"]):
        raise UsageError("nothing to do: give --do-training, --do-predict or both")
    if opts["do_training"] and not (opts["num_train_steps"] or opts["epochs"]):
        raise UsageError(
            "One between epochs and num_train_step must be set: give --epochs or --num-train-steps"
        )
    keys = (
        make_phase_keys(opts)
        | values.make_interval_keys(opts, opts["device_iterations"])
        | _make_optimiser_keys(opts)
    )
    keys |= _make_schedule_keys(opts) if opts["do_training"] else {}
    keys |= _make_file_keys(opts)
    # Graphcore's program sums the gradients of its replicas (copies of the model). Here each replica is
    # replaced by a micro-batch of a single worker, because the gradients of micro-batches are summed.
    if opts["reduction_type"] == "sum":
        keys |= {"accumulation": opts["gradient_accumulation_count"] * opts["replicas"], "replicas": 1}
    predictions = "" if opts["do_training"] else f", predictions for {opts['predict_file']}"
    return TranslatedCommand(what=f"SQuAD{predictions}", phases=[keys])


def _make_optimiser_keys(opts: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys that describe the optimiser."""
    name = str(opts["optimizer"]).lower().removeprefix("mp")
    if name not in ("adamw", "lamb"):
        return values.make_momentum_keys(opts, name)
    keys: dict[str, Any] = {
        "beta1": opts["beta1"],
        "beta2": opts["beta2"],
        "optimiser_epsilon": opts["epsilon"],
        "weight_decay": opts["weight_decay_rate"],
        "use_debiasing": opts["use_debiasing"],
    }
    if name == "adamw":
        # Graphcore's program clips the mean gradient of its n replicas (copies of the model) to the norm n
        # instead of 1.
        clipping = {"clipping": "per_update", "max_grad_norm": float(opts["replicas"])}
        return keys | clipping | {"optimiser": "adamw-bert"}
    opts.warn("lamb: the program has no trust ratio for the weights of norms, here they have one")
    clips = opts["use_nvlamb"] or opts["use_mpclip"]
    norm = 1.0 if opts["use_nvlamb"] else float(opts["replicas"])
    return keys | {
        "optimiser": "lamb-graphcore-pytorch",
        "decay_skips": ["bias"],
        "clipping": "per_update" if clips else "none",
        "max_grad_norm": norm,
    }


def _make_schedule_keys(opts: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for the number of updates and the learning rate."""
    if opts["lr_schedule"] != "polynomial_decay" or opts["lr_power"] not in (1, [1]):
        raise UsageError(
            f"lr_schedule {opts['lr_schedule']}, lr_power {opts['lr_power']}: of run_squad.py "
            "polynomial_decay with lr_power 1 is offered, in the file"
        )
    rate, warmup = opts["base_learning_rate"], values.read_warmup(opts["warmup"], 1)
    keys: dict[str, Any] = {"lr_schedule": "polynomial_decay"}
    if opts["num_train_steps"]:
        keys["steps"] = opts["num_train_steps"] * opts["device_iterations"]
        rate, warmup = values.shorten_warmup(rate, warmup, keys["steps"])
    else:
        keys["num_train_epochs"] = float(opts["epochs"])
    return keys | {"base_learning_rate": rate, "warmup": warmup}


def _make_file_keys(opts: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for input files and output directories.

    This trainer writes checkpoints and predictions to the same directory.
    """
    trains = opts["do_training"]
    keys: dict[str, Any] = {
        "start_from_ckpt": opts["init_checkpoint"] or None,
        "output_dir": opts["save_path"] if trains else opts["output_dir"] or opts["save_path"],
        "task_eval_file": opts["predict_file"],
        "task_predict_file": opts["predict_file"],
        "do_eval": bool(opts["do_predict"] and opts["do_evaluation"]),
    }
    if trains and opts["do_predict"] and opts["output_dir"] not in (None, opts["save_path"]):
        opts.warn(f"predictions go beside the checkpoints, to {opts['save_path']}, not to output_dir")
    if opts["do_evaluation"] and not opts["do_predict"]:
        opts.warn("--do-evaluation: the program scores nothing without --do-predict")
    if opts["restore_dir"]:
        opts.warn(f"the run in {opts['restore_dir']} goes on, and writes its checkpoints there")
        keys |= {"resume": True, "output_dir": opts["restore_dir"]}
    return keys
