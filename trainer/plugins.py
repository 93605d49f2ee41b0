"""Everything that the trainer finds by name, and imports when it is asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from bertdata.errors import SettingsError

GLUE = ("mrpc", "cola", "sst-2", "sts-b", "qqp", "mnli", "mnli-mm", "qnli", "rte", "wnli")

FINE_TUNED = {
    "squad": "trainer.tasks.squad.data:SquadData",
    **dict.fromkeys((*GLUE, "classification"), "trainer.tasks.classification.data:TableData"),
}
"""The tasks that start from a pre-trained model: the side of each that needs no torch."""

TABLE: Mapping[str, Mapping[str, str]] = {
    "command": {
        "pretrain": "trainer.commands.pretrain:run",
        "evaluate": "trainer.commands.evaluate:run",
        "predict": "trainer.commands.predict:run",
        "doctor": "trainer.commands.doctor:run",
        "finetune": "trainer.commands.finetune:run",
        "features": "trainer.commands.features:run",
        "score": "trainer.commands.score:run",
        "split": "trainer.commands.split:run",
        "report": "trainer.commands.report:run",
        "convert": "trainer.commands.convert:run",
        "like": "trainer.commands.like:run",
    },
    "keys": {
        "run": "trainer.config.section:RunSection",
        "workers": "trainer.config.run_options:WorkersSection",
        "start": "trainer.config.run_options:StartSection",
        "evaluation": "trainer.config.run_options:EvaluationSection",
        "data": "trainer.config.section:DataSection",
        "loading": "trainer.config.loading:LoadingSection",
        "masking": "trainer.config.masking:MaskingSection",
        "model": "trainer.config.model:MODEL_SECTION",
        "modernbert": "trainer.config.modernbert:MODERNBERT_SECTION",
        "update": "trainer.config.section:UpdateSection",
        "optimiser": "trainer.config.update_options:OptimiserSection",
        "scaling": "trainer.config.update_options:ScalingSection",
        "split": "trainer.config.split:SplitSection",
        "schedule": "trainer.config.section:ScheduleSection",
        "formula": "trainer.config.update_options:FormulaSection",
        "recipe": "trainer.config.recipe:RecipeSection",
        "reports": "trainer.config.section:ReportsSection",
        "loggers": "trainer.config.run_options:LoggersSection",
        "finetuning": "trainer.config.finetuning:FinetuningSection",
        "cuda": "trainer.config.device_keys:CudaSection",
        "hpu": "trainer.config.vendor_keys:HpuSection",
        "ipu": "trainer.config.vendor_keys:IpuSection",
        "xla": "trainer.config.vendor_keys:XlaSection",
    },
    "model file": {
        "keys of other programs": "trainer.config.model_file:FOREIGN",
        "its keys": "trainer.config.model_file:read_model_file",
    },
    "model settings": {
        "bert": "trainer.config.model:ModelConfig",
        "roberta": "trainer.config.roberta:RobertaConfig",
        "modernbert": "trainer.config.modernbert:ModernBertConfig",
    },
    "encoder": {
        "bert": "trainer.model.bert:Bert",
        "roberta": "trainer.model.bert:Bert",
        "modernbert": "trainer.model.modernbert:ModernBert",
    },
    "attention": {
        "cpu blocks": "trainer.devices.window_blocks:masked_blocks",
    },
    "device": {
        "cpu": "trainer.devices.cpu:Cpu",
        "cuda": "trainer.devices.cuda:Cuda",
        "hpu": "trainer.devices.hpu:Hpu",
        "ipu": "trainer.devices.ipu.device:Ipu",
        "xla": "trainer.devices.xla:Xla",
    },
    "collective": {
        "horovod": "trainer.workers.horovod:Horovod",
        "torch_distributed": "trainer.workers.torch_distributed:TorchDistributed",
        "single": "trainer.workers.collective:Collective",
        "poprun": "trainer.workers.poprun:Poprun",
    },
    "strategy": {
        "replicated": "trainer.update.strategy:Strategy",
        "of several workers": "trainer.update.replicated:Replicated",
        "pipelined": "trainer.splitting.pipelined:Pipelined",
        "sharded": "trainer.splitting.split_strategy:Sharded",
        "whole_updates": "trainer.update.ipu_programs:IpuTraining",
    },
    "split model": {
        "place": "trainer.run.dividing:find_place",
        "plan": "trainer.splitting.divide:divide",
        "tensors": "trainer.splitting.split_tensors:SplitTensors",
        "weights to evaluate": "trainer.splitting.split_tensors:read_split_weights",
        "drawing": "trainer.report.split_plan:draw_file",
    },
    "end of an update": {
        "in 16 bits": "trainer.update.skipping:SkippingStep",
        "by the device": "trainer.update.device_step:DeviceStep",
    },
    "plain step": {
        "lamb": "trainer.update.plain_steps:step_of_lamb",
        "adamw": "trainer.update.plain_steps:step_of_lamb",
        "sgd": "trainer.update.plain_steps:step_of_sgd",
        "stableadamw": "trainer.update.stable_adamw:step_of_stable_adamw",
    },
    "preset": {
        "lamb-mlperf": "trainer.config.updates.mlperf:LAMB",
        "lamb-nvidia": "trainer.config.updates.nvidia:LAMB",
        "lamb-nvlamb": "trainer.config.updates.nvidia:NVLAMB",
        "lamb-habana-tf": "trainer.config.updates.habana:LAMB",
        "lamb-graphcore": "trainer.config.updates.graphcore:LAMB",
        "lamb-graphcore-pytorch": "trainer.config.updates.graphcore:LAMB_PYTORCH",
        "adamw-bert": "trainer.config.updates.mlperf:ADAMW_BERT",
        "adamw": "trainer.config.updates.pytorch:ADAMW",
        "stableadamw": "trainer.config.updates.modernbert:STABLE_ADAMW",
        "stableadamw-modernbert": "trainer.config.updates.modernbert:STABLE_ADAMW_MODERNBERT",
        "momentum": "trainer.config.updates.pytorch:MOMENTUM",
        "sgd": "trainer.config.updates.pytorch:SGD",
    },
    "schedule": {
        "mlperf": "trainer.config.updates.mlperf:MLPERF",
        "nvidia-poly": "trainer.config.updates.nvidia:NVIDIA_POLY",
        "nvidia-linear": "trainer.config.updates.nvidia_finetuning:NVIDIA_LINEAR",
        "habana-tf": "trainer.config.updates.habana:HABANA_TF",
        "polynomial_decay": "trainer.config.updates.graphcore:POLYNOMIAL_DECAY",
        "natural_exponential": "trainer.config.updates.graphcore:NATURAL_EXPONENTIAL",
        "trapezoidal": "trainer.config.updates.modernbert:TRAPEZOIDAL",
        "custom": "trainer.config.updates.graphcore:CUSTOM",
    },
    "optimiser": {
        "lamb": "trainer.update.lamb:Lamb",
        "adamw": "trainer.update.lamb:Lamb",
        "sgd": "trainer.update.sgd:Sgd",
        "stableadamw": "trainer.update.stable_adamw:StableAdamW",
    },
    "examples": {
        "generated": "trainer.tasks.generated:generated_examples",
    },
    "task": {
        "pretraining": "trainer.tasks.pretraining:Pretraining",
        "masked_words": "trainer.tasks.pretraining:MaskedWords",
        "span_boundaries": "trainer.tasks.span_boundaries:SpanBoundaries",
        "squad": "trainer.tasks.squad.task:Squad",
        "classification": "trainer.tasks.classification.task:Classification",
        "mrpc": "trainer.tasks.classification.task:Classification",
        "cola": "trainer.tasks.classification.task:Classification",
        "sst-2": "trainer.tasks.classification.task:Classification",
        "sts-b": "trainer.tasks.classification.task:Classification",
        "qqp": "trainer.tasks.classification.task:Classification",
        "mnli": "trainer.tasks.classification.task:Classification",
        "mnli-mm": "trainer.tasks.classification.task:Classification",
        "qnli": "trainer.tasks.classification.task:Classification",
        "rte": "trainer.tasks.classification.task:Classification",
        "wnli": "trainer.tasks.classification.task:Classification",
    },
    "log": {
        "bar": "trainer.logs.progress_bar:ProgressBar",
        "further": "trainer.logs.further_logs:make_loggers",
        "results": "trainer.logs.evaluation_results:EvaluationResults",
        "curves": "trainer.logs.curves:Curves",
        "mllog": "trainer.logs.mllog:Mllog",
        "tensorboard": "trainer.logs.scalars:TensorBoard",
        "wandb": "trainer.logs.scalars:WeightsAndBiases",
    },
    "program": {
        "with a flag": "trainer.programs.program:programs_with",
    },
    "launcher": {
        "--dist": "trainer.workers.launch:launched",
        "worker of --dist": "trainer.workers.launch:as_worker",
        "mpirun or srun": "trainer.workers.job_launchers:find_place",
        "environment of mpirun or srun": "trainer.workers.job_launchers:join_environment",
        "unknown": "trainer.workers.job_launchers:refuse_unknown_launchers",
    },
    "update": {
        "counted in tokens": "trainer.run.growing:GrowingUpdates",
    },
    "rows": {
        "made at load": "trainer.data.load_packing:make_rows",
        "of packs": "trainer.data.packs:PackRows",
        "dynamic": "trainer.data.dynamic_masks:masked_rows",
        "fairseq": "trainer.data.dynamic_masks:masked_rows",
        "fairseq-0.12": "trainer.data.dynamic_masks:masked_rows",
        "modernbert": "trainer.data.modernbert_rows:modernbert_rows",
    },
    "mixture": {
        "order": "trainer.data.mixture:order_of",
        "epochs": "trainer.data.mixture:tell_epochs",
    },
    "batches": {
        "of padded rows": "trainer.data.padded_rows:row_form",
        "of padded examples": "trainer.data.padded_rows:RowForm",
    },
    "masks": {
        "dynamic": "trainer.data.dynamic_masks:mask_at_load",
        "fairseq": "trainer.data.dynamic_masks:mask_at_load",
        "fairseq-0.12": "trainer.data.dynamic_masks:mask_at_load",
        "modernbert": "trainer.data.dynamic_masks:unmasked_source",
        "drawn once": "trainer.data.dynamic_masks:mask_once",
    },
    "data of the task": {
        "squad": "trainer.tasks.squad.data:SquadData",
        "mrpc": "trainer.tasks.classification.data:TableData",
        "cola": "trainer.tasks.classification.data:TableData",
        "sst-2": "trainer.tasks.classification.data:TableData",
        "sts-b": "trainer.tasks.classification.data:TableData",
        "qqp": "trainer.tasks.classification.data:TableData",
        "mnli": "trainer.tasks.classification.data:TableData",
        "mnli-mm": "trainer.tasks.classification.data:TableData",
        "qnli": "trainer.tasks.classification.data:TableData",
        "rte": "trainer.tasks.classification.data:TableData",
        "wnli": "trainer.tasks.classification.data:TableData",
        "classification": "trainer.tasks.classification.data:TableData",
    },
    "fine-tuned model": {
        "evaluation": "trainer.commands.finetune:evaluate_fine_tuned",
        "prediction": "trainer.tasks.task_data:predict_task",
    },
    "checkpoint": {
        "of another program": "trainer.checkpoints.formats.kinds:read_checkpoint",
        "of any program": "trainer.checkpoints.formats.kinds:is_recognised",
        "by name": "trainer.checkpoints.formats.hub_cache:find_pretrained",
    },
}


def names(kind: str) -> Mapping[str, str]:
    """Return MODULE:ATTRIBUTE of every name of the kind."""
    return TABLE.get(kind, {})


def is_name(kind: str, name: str) -> bool:
    return name in names(kind)


def check_name(kind: str, name: str) -> None:
    if not is_name(kind, name):
        raise SettingsError(f"{kind} {name!r}: no such {kind}; known are {', '.join(names(kind))}")


def find(kind: str, name: str) -> Any:
    check_name(kind, name)
    module, _, attribute = names(kind)[name].partition(":")
    return getattr(import_module(module), attribute)
