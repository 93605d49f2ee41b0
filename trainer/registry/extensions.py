"""The names that extensions add to the registry, read where a name is none of the core's."""

from collections.abc import Mapping

from bertdata.examples.masking.settings import MASKINGS

EXTENSIONS = "trainer.extensions"
_SPLITTING = f"{EXTENSIONS}.splitting"
_FINETUNING = f"{EXTENSIONS}.finetuning"
_FORMATS = f"{EXTENSIONS}.formats"
_VENDORS = f"{EXTENSIONS}.vendors"
_LOADING = f"{EXTENSIONS}.loading"
_RECIPE = f"{EXTENSIONS}.recipe"
_LAUNCHERS = f"{EXTENSIONS}.launchers"
_LOGGERS = f"{EXTENSIONS}.loggers"
_GLUE = ("mrpc", "cola", "sst-2", "sts-b", "qqp", "mnli", "mnli-mm", "qnli", "rte", "wnli")

FINE_TUNED = {
    "squad": f"{_FINETUNING}.squad.data:SquadData",
    **dict.fromkeys((*_GLUE, "classification"), f"{_FINETUNING}.classification.data:TableData"),
}
"""The tasks that start from a pre-trained model, by name."""

NAMES: Mapping[str, Mapping[str, str]] = {
    "command": {
        "finetune": f"{_FINETUNING}.finetune_command:run",
        "features": f"{_FINETUNING}.features:run",
        "score": f"{_FINETUNING}.score:run",
        "split": f"{_SPLITTING}.show.command:run",
        "report": f"{EXTENSIONS}.run_report.command:run",
        "convert": f"{_FORMATS}.convert_command:run",
        "like": f"{EXTENSIONS}.like.command:run",
    },
    "keys": {
        "hpu": f"{_VENDORS}.keys:HpuSection",
        "ipu": f"{_VENDORS}.keys:IpuSection",
        "xla": f"{_VENDORS}.keys:XlaSection",
    },
    "program": {"with a flag": f"{EXTENSIONS}.like.program:programs_with"},
    "device": {
        "hpu": f"{_VENDORS}.hpu:Hpu",
        "ipu": f"{_VENDORS}.ipu.device:Ipu",
        "xla": f"{_VENDORS}.xla:Xla",
    },
    "collective": {"poprun": f"{_VENDORS}.poprun:Poprun"},
    "launcher": {
        "--dist": f"{_LAUNCHERS}.launch:launched",
        "worker of --dist": f"{_LAUNCHERS}.launch:as_worker",
        "mpirun or srun": f"{_LAUNCHERS}.job_launchers:find_place",
        "environment of mpirun or srun": f"{_LAUNCHERS}.job_launchers:join_environment",
        "unknown": f"{_LAUNCHERS}.job_launchers:refuse_unknown_launchers",
    },
    "strategy": {
        "pipelined": f"{_SPLITTING}.pipelined:Pipelined",
        "sharded": f"{_SPLITTING}.split_strategy:Sharded",
        "whole_updates": f"{_VENDORS}.ipu.programs:IpuTraining",
    },
    "split model": {
        "plan": f"{_SPLITTING}.divide:divide",
        "tensors": f"{_SPLITTING}.split_tensors:SplitTensors",
        "weights to evaluate": f"{_SPLITTING}.split_tensors:read_split_weights",
        "drawing": f"{_SPLITTING}.show.block:draw_file",
    },
    "update": {"counted in tokens": f"{_RECIPE}.growing:GrowingUpdates"},
    "end of an update": {"by the device": f"{_VENDORS}.device_step:DeviceStep"},
    "plain step": {"stableadamw": f"{_RECIPE}.stable_adamw:step_of_stable_adamw"},
    "optimiser": {"stableadamw": f"{_RECIPE}.stable_adamw:StableAdamW"},
    "rows": {
        "made at load": f"{_LOADING}.load_packing:make_rows",
        "of packs": f"{_LOADING}.packs:PackRows",
        **dict.fromkeys(MASKINGS, f"{_LOADING}.dynamic_masks:masked_rows"),
        "modernbert": f"{_LOADING}.modernbert_rows:modernbert_rows",
    },
    "mixture": {"order": f"{_LOADING}.mixture:order_of", "epochs": f"{_LOADING}.mixture:tell_epochs"},
    "batches": {
        "of padded rows": f"{_LOADING}.padded_rows:row_form",
        "of padded examples": f"{_LOADING}.padded_rows:RowForm",
    },
    "masks": {
        **dict.fromkeys(MASKINGS, f"{_LOADING}.dynamic_masks:mask_at_load"),
        "modernbert": f"{_LOADING}.dynamic_masks:unmasked_source",
        "drawn once": f"{_LOADING}.dynamic_masks:mask_once",
    },
    "task": {
        "span_boundaries": f"{EXTENSIONS}.tasks.span_boundaries:SpanBoundaries",
        "squad": f"{_FINETUNING}.squad.task:Squad",
        **dict.fromkeys(("classification", *_GLUE), f"{_FINETUNING}.classification.task:Classification"),
    },
    "data of the task": FINE_TUNED,
    "fine-tuned model": {
        "evaluation": f"{_FINETUNING}.finetune_command:evaluate_fine_tuned",
        "prediction": f"{_FINETUNING}.task_data:predict_task",
    },
    "checkpoint": {
        "of another program": f"{_FORMATS}.kinds:read_checkpoint",
        "of any program": f"{_FORMATS}.kinds:is_recognised",
        "by name": f"{_FORMATS}.hub_cache:find_pretrained",
    },
    "log": {
        "curves": f"{EXTENSIONS}.run_report.curves:Curves",
        "mllog": f"{_LOGGERS}.mllog:Mllog",
        "tensorboard": f"{_LOGGERS}.scalars:TensorBoard",
        "wandb": f"{_LOGGERS}.scalars:WeightsAndBiases",
    },
}
"""MODULE:ATTRIBUTE by kind and name, as the registry has them."""
