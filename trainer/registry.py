"""Everything that the trainer finds by name, and imports when it is asked for.

The core imports no package of trainer.extensions: each can be deleted, and what names it here then fails
with one line.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from bertdata.errors import SettingsError
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
_UPDATES = "trainer.config.updates"
_GLUE = ("mrpc", "cola", "sst-2", "sts-b", "qqp", "mnli", "mnli-mm", "qnli", "rte", "wnli")

NAMES: Mapping[str, Mapping[str, str]] = {
    "command": {
        "pretrain": "trainer.run.pretrain_command:run",
        "finetune": f"{_FINETUNING}.finetune_command:run",
        "evaluate": "trainer.run.evaluate_command:run",
        "predict": "trainer.run.predict_command:run",
        "features": f"{_FINETUNING}.features:run",
        "score": f"{_FINETUNING}.score:run",
        "split": f"{_SPLITTING}.show.command:run",
        "report": f"{EXTENSIONS}.run_report.command:run",
        "convert": f"{_FORMATS}.convert_command:run",
        "like": f"{EXTENSIONS}.like.command:run",
        "doctor": "trainer.run.doctor:run",
    },
    "keys": {
        "masking": "trainer.config.masking:MaskingSection",
        "modernbert": "trainer.config.modernbert:MODERNBERT_SECTION",
        "split": "trainer.config.split:SplitSection",
        "recipe": "trainer.config.recipe:RecipeSection",
        "finetuning": "trainer.config.finetuning:FinetuningSection",
        "cuda": "trainer.config.device_keys:CudaSection",
        "hpu": f"{_VENDORS}.keys:HpuSection",
        "ipu": f"{_VENDORS}.keys:IpuSection",
        "xla": f"{_VENDORS}.keys:XlaSection",
    },
    "model file": {
        "keys of other programs": "trainer.config.model_file:FOREIGN",
        "its keys": "trainer.config.model_file:read_model_file",
    },
    "program": {"with a flag": f"{EXTENSIONS}.like.registry:programs_with"},
    "model settings": {
        "bert": "trainer.config.model:ModelConfig",
        "roberta": "trainer.config.roberta:RobertaConfig",
        "modernbert": "trainer.config.modernbert:ModernBertConfig",
    },
    "encoder": {
        **dict.fromkeys(("bert", "roberta"), "trainer.model.bert:Bert"),
        "modernbert": "trainer.model.modernbert:ModernBert",
    },
    "attention": {"cpu blocks": "trainer.devices.window_blocks:masked_blocks"},
    "device": {
        "cpu": "trainer.devices.cpu:Cpu",
        "cuda": "trainer.devices.cuda:Cuda",
        "hpu": f"{_VENDORS}.hpu:Hpu",
        "ipu": f"{_VENDORS}.ipu.device:Ipu",
        "xla": f"{_VENDORS}.xla:Xla",
    },
    "collective": {
        "horovod": "trainer.collectives.horovod:Horovod",
        "torch_distributed": "trainer.collectives.torch_distributed:TorchDistributed",
        "poprun": f"{_VENDORS}.poprun:Poprun",
        "single": "trainer.collectives.collective:Collective",
    },
    "launcher": {
        "--dist": f"{_LAUNCHERS}.launch:launched",
        "worker of --dist": f"{_LAUNCHERS}.launch:as_worker",
        "mpirun or srun": f"{_LAUNCHERS}.job_launchers:find_place",
        "environment of mpirun or srun": f"{_LAUNCHERS}.job_launchers:join_environment",
        "unknown": f"{_LAUNCHERS}.job_launchers:refuse_unknown_launchers",
    },
    "strategy": {
        "pipelined": f"{_SPLITTING}.pipelined:Pipelined",
        "replicated": "trainer.update.strategy:Strategy",
        "sharded": f"{_SPLITTING}.sharded:Sharded",
        "whole_updates": f"{_VENDORS}.ipu.programs:IpuTraining",
    },
    "split model": {
        "plan": f"{_SPLITTING}.divide:divide",
        "tensors": f"{_SPLITTING}.split_tensors:SplitTensors",
        "weights to evaluate": f"{_SPLITTING}.split_tensors:read_split_weights",
        "drawing": f"{_SPLITTING}.show.block:draw_file",
    },
    "update": {
        "weights in 16 bits": "trainer.update.half_weights:HalfWeights",
        "averages over workers": "trainer.update.averaging:WorkerAverages",
        "counted in tokens": f"{_RECIPE}.growing:GrowingUpdates",
        "sums of micro-batches": "trainer.update.micro_batch_sums:MicroBatchSums",
    },
    "end of an update": {
        "in 16 bits": "trainer.update.skipping:SkippingStep",
        "by the device": f"{_VENDORS}.device_step:DeviceStep",
    },
    "plain step": {
        "lamb": "trainer.update.plain_steps:step_of_lamb",
        "adamw": "trainer.update.plain_steps:step_of_lamb",
        "sgd": "trainer.update.plain_steps:step_of_sgd",
        "stableadamw": f"{_RECIPE}.stable_adamw:step_of_stable_adamw",
    },
    "preset": {
        "lamb-mlperf": f"{_UPDATES}.mlperf:LAMB",
        "lamb-nvidia": f"{_UPDATES}.nvidia:LAMB",
        "lamb-nvlamb": f"{_UPDATES}.nvidia:NVLAMB",
        "lamb-habana-tf": f"{_UPDATES}.habana:LAMB",
        "lamb-graphcore": f"{_UPDATES}.graphcore:LAMB",
        "lamb-graphcore-pytorch": f"{_UPDATES}.graphcore:LAMB_PYTORCH",
        "adamw-bert": f"{_UPDATES}.mlperf:ADAMW_BERT",
        "adamw": f"{_UPDATES}.pytorch:ADAMW",
        "stableadamw": f"{_UPDATES}.modernbert:STABLE_ADAMW",
        "stableadamw-modernbert": f"{_UPDATES}.modernbert:STABLE_ADAMW_MODERNBERT",
        "momentum": f"{_UPDATES}.pytorch:MOMENTUM",
        "sgd": f"{_UPDATES}.pytorch:SGD",
    },
    "schedule": {
        "mlperf": f"{_UPDATES}.mlperf:MLPERF",
        "nvidia-poly": f"{_UPDATES}.nvidia:NVIDIA_POLY",
        "nvidia-linear": f"{_UPDATES}.nvidia:NVIDIA_LINEAR",
        "habana-tf": f"{_UPDATES}.habana:HABANA_TF",
        "polynomial_decay": f"{_UPDATES}.graphcore:POLYNOMIAL_DECAY",
        "natural_exponential": f"{_UPDATES}.graphcore:NATURAL_EXPONENTIAL",
        "trapezoidal": f"{_UPDATES}.modernbert:TRAPEZOIDAL",
        "custom": f"{_UPDATES}.graphcore:CUSTOM",
    },
    "optimiser": {
        "lamb": "trainer.update.lamb:Lamb",
        "adamw": "trainer.update.lamb:Lamb",  # PyTorch's AdamW: no group has trust ratios
        "sgd": "trainer.update.sgd:Sgd",
        "stableadamw": f"{_RECIPE}.stable_adamw:StableAdamW",
    },
    "rows": {
        "packed at load": f"{_LOADING}.load_packing:RowsPackedAtLoad",
        "of packs": f"{_LOADING}.packs:PackRows",
        "from length bins": f"{_LOADING}.bins:RowsFromBins",
        **dict.fromkeys(MASKINGS, f"{_LOADING}.dynamic_masks:masked_rows"),
        "modernbert": f"{_LOADING}.modernbert_rows:modernbert_rows",
    },
    "mixture": {"order": f"{_LOADING}.mixture:order_of", "epochs": f"{_LOADING}.mixture:tell_epochs"},
    "batches": {
        "of padded rows": f"{_LOADING}.padded_rows:row_form",
        "of padded examples": f"{_LOADING}.padded_rows:RowForm",
    },
    "examples": {"generated": "trainer.model.generated:generated_examples"},
    "masks": {
        **dict.fromkeys(MASKINGS, f"{_LOADING}.dynamic_masks:mask_at_load"),
        "modernbert": f"{_LOADING}.modernbert_rows:unmasked_source",
        "drawn once": f"{_LOADING}.dynamic_masks:mask_once",
    },
    "task": {
        "pretraining": "trainer.model.pretraining:Pretraining",
        "masked_words": "trainer.model.pretraining:MaskedWords",
        "span_boundaries": f"{EXTENSIONS}.tasks.span_boundaries:SpanBoundaries",
        "squad": f"{_FINETUNING}.squad.task:Squad",
        **dict.fromkeys(("classification", *_GLUE), f"{_FINETUNING}.classification.task:Classification"),
    },
    "data of the task": {
        "squad": f"{_FINETUNING}.squad.data:SquadData",
        **dict.fromkeys((*_GLUE, "classification"), f"{_FINETUNING}.classification.data:TableData"),
    },
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
        "lines": "trainer.report.terminal:Terminal",
        "bar": "trainer.report.progress_bar:ProgressBar",
        "dllogger": "trainer.report.dllogger:Dllogger",
        "tables": "trainer.report.tables:Tables",
        "results": "trainer.report.evaluation_results:EvaluationResults",
        "curves": f"{EXTENSIONS}.run_report.curves:draw_curves",
        "mllog": f"{_LOGGERS}.mllog:Mllog",
        "tensorboard": f"{_LOGGERS}.scalars:TensorBoard",
        "wandb": f"{_LOGGERS}.scalars:WeightsAndBiases",
    },
}
"""MODULE:ATTRIBUTE by kind and name; kind and name together are what an error calls it."""

FINE_TUNED = NAMES["data of the task"]
"""The tasks that start from a pre-trained model, by name."""


def find(kind: str, name: str) -> Any:
    """The object of that name, imported now. SettingsError as from ``find_module``."""
    return getattr(find_module(kind, name), NAMES[kind][name].partition(":")[2])


def find_own(name: str) -> Any:
    """The object of one's own that package.module:NAME names. SettingsError where it is not there."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"{name}: {error}") from None


def find_module(kind: str, name: str) -> ModuleType:
    """The module of that name. SettingsError for an unknown name, and for an extension that is not there."""
    check_name(kind, name)
    try:
        return import_module(NAMES[kind][name].partition(":")[0])
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")
        if ".".join(missing[:2]) != EXTENSIONS:
            raise
        folder = "/".join(missing[:3])
        raise SettingsError(f"{kind} {name}: {folder} is not there; install the whole of bertdata") from None


def check_name(kind: str, name: str) -> None:
    """SettingsError for an unknown name."""
    if name not in NAMES[kind]:
        raise SettingsError(f"{kind} {name!r}: no such {kind}; known are {', '.join(NAMES[kind])}")
