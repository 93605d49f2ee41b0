"""Everything that the trainer finds by name, and imports when it is asked for.

The core imports no package of trainer.extensions: each can be deleted, and what names it then fails with one
line. The names that they add are in ``trainer.registry.extensions``.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from bertdata.errors import SettingsError

_UPDATES = "trainer.config.updates"

CORE: Mapping[str, Mapping[str, str]] = {
    "command": {
        "pretrain": "trainer.run.pretrain_command:run",
        "evaluate": "trainer.run.evaluate_command:run",
        "predict": "trainer.run.predict_command:run",
        "doctor": "trainer.run.doctor:run",
    },
    "keys": {  # in the order of the configuration
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
        **dict.fromkeys(("bert", "roberta"), "trainer.model.bert:Bert"),
        "modernbert": "trainer.model.modernbert:ModernBert",
    },
    "attention": {"cpu blocks": "trainer.devices.window_blocks:masked_blocks"},
    "device": {"cpu": "trainer.devices.cpu:Cpu", "cuda": "trainer.devices.cuda:Cuda"},
    "collective": {
        "horovod": "trainer.collectives.horovod:Horovod",
        "torch_distributed": "trainer.collectives.torch_distributed:TorchDistributed",
        "single": "trainer.collectives.collective:Collective",
    },
    "strategy": {
        "replicated": "trainer.update.strategy:Strategy",
        "of several workers": "trainer.update.replicated:Replicated",
    },
    "split model": {"place": "trainer.run.dividing:find_place"},
    "end of an update": {"in 16 bits": "trainer.update.skipping:SkippingStep"},
    "plain step": {
        "lamb": "trainer.update.plain_steps:step_of_lamb",
        "adamw": "trainer.update.plain_steps:step_of_lamb",
        "sgd": "trainer.update.plain_steps:step_of_sgd",
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
        "nvidia-linear": f"{_UPDATES}.nvidia_finetuning:NVIDIA_LINEAR",
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
    },
    "examples": {"generated": "trainer.model.generated:generated_examples"},
    "task": {
        "pretraining": "trainer.model.pretraining:Pretraining",
        "masked_words": "trainer.model.pretraining:MaskedWords",
    },
    "log": {
        "bar": "trainer.report.progress_bar:ProgressBar",
        "further": "trainer.report.further_logs:make_loggers",
        "results": "trainer.report.evaluation_results:EvaluationResults",
    },
}
"""The core's MODULE:ATTRIBUTE by kind and name; kind and name together are what an error calls it."""


def names(kind: str) -> Mapping[str, str]:
    """MODULE:ATTRIBUTE of every name of a kind: the core's, then those of the extensions."""
    from trainer.registry.extensions import NAMES

    return {**CORE.get(kind, {}), **NAMES.get(kind, {})}


def is_name(kind: str, name: str) -> bool:
    """True for a name of the kind."""
    return name in CORE.get(kind, {}) or name in names(kind)


def check_name(kind: str, name: str) -> None:
    """SettingsError for an unknown name."""
    if not is_name(kind, name):
        raise SettingsError(f"{kind} {name!r}: no such {kind}; known are {', '.join(names(kind))}")


def find(kind: str, name: str) -> Any:
    """The object of that name, imported now.

    SettingsError for an unknown name, and for an extension that is not there.
    """
    check_name(kind, name)
    module, _, attribute = (CORE.get(kind, {}).get(name) or names(kind)[name]).partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")
        if ".".join(missing[:2]) != "trainer.extensions":
            raise
        folder = "/".join(missing[:3])
        raise SettingsError(f"{kind} {name}: {folder} is not there; install the whole of bertdata") from None
