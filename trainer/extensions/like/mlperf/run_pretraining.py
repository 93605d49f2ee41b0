"""MLPerf's run_pretraining.py: training and evaluation beside it or after it, on GPUs and TPUs."""

from typing import Any

from bertdata.cli.common.absl_flags import boolean, integer
from bertdata.cli.common.program_flags import ABSL_APP, Flag, Given
from trainer.extensions.like.checkpoints import KEEP_ALL, has_checkpoints
from trainer.extensions.like.constants import MOMENTS, sizes_of
from trainer.extensions.like.google import HOST_FLAGS, LOGGED_STEPS
from trainer.extensions.like.machine import find_shape
from trainer.extensions.like.mlperf.evaluation import machine_keys, of_replica, resolve_evaluation
from trainer.extensions.like.program import Meaning, Program, phase_keys, require_flags, require_work

_TABLE = [
    Flag("--bert_config_file", meaning="bert_config.json, the shape of the model; required"),
    Flag("--input_file", meaning="TFRecord files, patterns separated by commas: the data to train on, or "
         "with --do_eval --nodo_train those to evaluate on; required"),
    Flag("--output_dir", key="output_dir", meaning="directory of checkpoints and results; required"),
    Flag("--init_checkpoint", meaning="checkpoint to take the weights from, unless output_dir has one"),
    Flag("--max_seq_length", integer, 128, "ids of an example", key="max_seq_length"),
    Flag("--max_predictions_per_seq", integer, 20, "masked ids of an example", key="max_predictions_per_seq"),
    Flag("--do_train", boolean, False, "train"),
    Flag("--do_eval", boolean, False, "evaluate, after training or without it"),
    Flag("--train_batch_size", integer, 32, "examples of a micro-step over all GPUs or cores"),
    Flag("--eval_batch_size", integer, 8, "examples of an evaluation step over all GPUs or cores"),
    Flag("--optimizer", default="adamw", values=("adamw", "lamb"), meaning="optimiser"),
    Flag("--learning_rate", float, 5e-5, "learning rate", key="base_learning_rate"),
    Flag("--poly_power", float, 1.0, "power of the rate's decay", key="power"),
    Flag("--num_train_steps", integer, 100000, "micro-steps; evaluation: the last to wait for"),
    Flag("--num_warmup_steps", integer, 10000, "micro-steps of warm-up"),
    Flag("--start_warmup_step", integer, 0, "micro-step at which warm-up starts; may be negative"),
    Flag("--save_checkpoints_steps", integer, 1000, "micro-steps between two checkpoints"),
    Flag("--max_eval_steps", integer, 100, "evaluation steps, each of one replica's batch"),
    Flag("--use_tpu", boolean, False, "train on TPU cores"),
    Flag("--num_tpu_cores", integer, 8, "cores, with --use_tpu"),
    Flag("--num_gpus", integer, 0, "GPUs of this machine; 0: the processor"),
    Flag("--steps_per_update", integer, 1, "micro-steps of an update"),
    Flag("--keep_checkpoint_max", integer, 5, "newest checkpoints that are kept"),
    Flag("--lamb_weight_decay_rate", float, 0.01, "LAMB: weight decay"),
    Flag("--lamb_beta_1", float, 0.9, "LAMB: decay rate of the first moment"),
    Flag("--lamb_beta_2", float, 0.999, "LAMB: decay rate of the second moment"),
    Flag("--log_epsilon", float, -6.0, "LAMB: epsilon as a power of ten"),
    Flag("--clip_by_global_norm_after_gradient_allreduce", boolean, False,
         "LAMB: clip once an update after the reduction, not each replica's micro-batches"),
    *HOST_FLAGS,
]  # fmt: skip

_OF_LAMB = ("lamb_weight_decay_rate", "lamb_beta_1", "lamb_beta_2", "log_epsilon")


def resolve(given: Given) -> Meaning:
    """The training or the evaluation that the command line asks for."""
    require_flags(given, "input_file", "bert_config_file", "output_dir")
    require_work(given, "do_train", "do_eval")
    return _training(given) if given["do_train"] else resolve_evaluation(given)


def _training(given: Given) -> Meaning:
    machine = machine_keys(given)
    shape, missing, warnings = find_shape(given["bert_config_file"], "BERT-Large")
    micro_steps = max(1, given["steps_per_update"])
    size = of_replica(given, "train_batch_size", machine["world_size"])
    keys = machine | shape | phase_keys(given, _TABLE) | _optimiser(given, machine["world_size"], warnings)
    keys |= {
        "train_data": given["input_file"],
        "batch_size": size,
        "accumulation": micro_steps,
        "start_from_ckpt": given["init_checkpoint"] or None,
        "start_moments": False,
        "resume": has_checkpoints(given["output_dir"]),
        "lr_schedule": "mlperf",
        "keep_checkpoints": given["keep_checkpoint_max"] or KEEP_ALL,
        "log_every": max(1, LOGGED_STEPS // micro_steps),
    }
    keys |= _steps(given, micro_steps, warnings)
    if given["do_eval"]:
        per_pass = of_replica(given, "eval_batch_size", machine["world_size"])
        keys |= {
            "eval_data": given["input_file"],
            "eval_every": 0,
            "eval_batch_size": per_pass,
            "eval_examples": given["max_eval_steps"] * per_pass,
        }
        warnings.append("do_eval with do_train: input_file is trained on and then evaluated on")
    if keys["resume"]:
        warnings.append(f"{given['output_dir']}: has checkpoints, so that the run continues from the newest")
    return Meaning(
        summary=f"training, {sizes_of([keys])} examples an update, {keys['steps']:,} updates, "
        f"{given['optimizer']}, {machine['device']}",
        phases=[keys],
        warnings=warnings,
        missing=missing,
    )


def _optimiser(given: Given, replicas: int, warnings: list[str]) -> dict[str, Any]:
    """The optimiser's keys. AdamW's are fixed, and clipping after the reduction is LAMB's only."""
    clips_once = given["clip_by_global_norm_after_gradient_allreduce"]
    if given["optimizer"] == "adamw":
        if idle := [name for name in _OF_LAMB if name in given]:
            warnings.append(f"adamw does not read {', '.join(idle)}")
        if clips_once:
            warnings.append("adamw with clip_by_global_norm_after_gradient_allreduce: nothing is clipped")
        return {
            "optimiser": "adamw-bert",
            **MOMENTS,
            "clipping": "none" if clips_once else "per_micro_batch",
            "max_grad_norm": 1.0,
        }
    if clips_once and replicas > 1:
        warnings.append("the program clips the sum of the replicas' gradients to 1, this trainer their mean")
    return {
        "optimiser": "lamb-mlperf",
        "beta1": given["lamb_beta_1"],
        "beta2": given["lamb_beta_2"],
        "optimiser_epsilon": 10.0 ** given["log_epsilon"],
        "weight_decay": given["lamb_weight_decay_rate"],
        "clipping": "per_update" if clips_once else "per_micro_batch",
        "max_grad_norm": 1.0,
    }


def _steps(given: Given, micro_steps: int, warnings: list[str]) -> dict[str, Any]:
    """The numbers of micro-steps as numbers of updates."""
    names = ("num_train_steps", "num_warmup_steps", "start_warmup_step", "save_checkpoints_steps")
    if odd := [name for name in names if given[name] % micro_steps]:
        warnings.append(f"no multiple of steps_per_update ({micro_steps}), and rounded: {', '.join(odd)}")
    steps = max(1, given["num_train_steps"] // micro_steps)
    warmup, start, save = (round(given[name] / micro_steps) for name in names[1:])
    keys = {"steps": steps, "warmup": warmup, "start_warmup_step": start, "checkpoint_every": max(1, save)}
    if steps <= warmup and steps - start <= warmup:  # a schedule must be longer than its warm-up
        warnings.append(f"the run of {steps} updates ends within its warm-up of {warmup}")
        keys |= {"steps": warmup + 1, "steps_this_run": steps}
    return keys


_ON_TPUS = (
    "--iterations_per_loop=3 --lamb_beta_1=0.88 --lamb_beta_2=0.88 "
    "--lamb_weight_decay_rate=0.0166629 --learning_rate=0.00288293 "
    "--log_epsilon=-6 --max_eval_steps=125 --max_predictions_per_seq=76 --max_seq_length=512 "
    "--num_tpu_cores={} --num_train_steps=600 --num_warmup_steps=287 --optimizer=lamb "
    "--output_dir=gs://out --save_checkpoints_steps=3 --start_warmup_step=-76 --steps_per_update=1 "
    "--train_batch_size=8192 --use_tpu --tpu_name=name --tpu_zone=zone --gcp_project=project"
)
"""The last part of the commands for so many cores."""

PROGRAM = Program(
    name="mlperf/run_pretraining.py",
    title="MLPerf run_pretraining.py",
    source="mlcommons/training 9947bdf2, language_model/tensorflow/bert/run_pretraining.py",
    commands={"": _TABLE},
    resolve=resolve,
    syntax=ABSL_APP,
    published=(
        "--bert_config_file=bert_config.json --output_dir=/tmp/output/ --input_file='tfrecord/part*' "
        "--nodo_eval --do_train --eval_batch_size=8 --learning_rate=0.0001 "
        "--init_checkpoint=./checkpoint/model.ckpt-28252 --iterations_per_loop=1000 "
        "--max_predictions_per_seq=76 --max_seq_length=512 --num_train_steps=107538 --num_warmup_steps=1562 "
        "--optimizer=lamb --save_checkpoints_steps=6250 --start_warmup_step=0 --num_gpus=8 "
        "--train_batch_size=24",
        "--bert_config_file=bert_config.json --output_dir=/tmp/output/ --input_file=tfrecord/eval_10k "
        "--do_eval --nodo_train --eval_batch_size=8 --init_checkpoint=./checkpoint/model.ckpt-28252 "
        "--max_eval_steps=1250 --max_predictions_per_seq=76 --max_seq_length=512 --num_gpus=1 "
        "--num_train_steps=107538 --optimizer=lamb --train_batch_size=24 --nouse_tpu",
    ),
    also_published=(
        "--bert_config_file=gs://in/bert_config.json --nodo_eval --do_train --eval_batch_size=640 "
        "--init_checkpoint=gs://in/model.ckpt-28252 --input_file=gs://in/tf_records4/part-* "
        f"{_ON_TPUS.format(128)}",
        "--bert_config_file=gs://in/bert_config.json --do_eval --nodo_train --eval_batch_size=640 "
        f"--init_checkpoint=gs://in/model.ckpt-28252 --input_file=gs://in/eval_10k {_ON_TPUS.format(8)}",
    ),
)
