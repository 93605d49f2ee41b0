"""The names that a user can choose (devices, optimisers, tasks and so on), with the object for each name.

Objects are imported only when they are used. A user's own object is named ``package.module:NAME``. Nothing
else in the trainer is looked up by a string.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from bertdata.errors import SettingsError

GLUE = ("mrpc", "cola", "sst-2", "sts-b", "qqp", "mnli", "mnli-mm", "qnli", "rte", "wnli")

FINE_TUNED = {
    "squad": "trainer.tasks.squad.data:SquadData",
    **dict.fromkeys((*GLUE, "classification"), "trainer.tasks.classification.data:TableData"),
}
"""For each fine-tuning task, the class that reads its files and makes its features. These classes do not need
torch.
"""

_DRAWN = "trainer.data.dynamic_masks:DRAWN_BY_RATE"
_SCHEDULES = "trainer.config.schedules"

TABLE: Mapping[str, Mapping[str, str]] = {
    "command": {
        "pretrain": "trainer.commands.pretrain:run",
        "finetune": "trainer.commands.finetune:run",
        "evaluate": "trainer.commands.evaluate:run",
        "predict": "trainer.commands.predict:run",
        "features": "trainer.commands.features:run",
        "score": "trainer.commands.score:run",
        "split": "trainer.commands.split:run",
        "report": "trainer.commands.report:run",
        "convert": "trainer.commands.convert:run",
        "like": "trainer.commands.like:run",
        "doctor": "trainer.commands.doctor:run",
    },
    "model settings": {  # the configuration class of a model, chosen by --model-type
        "bert": "trainer.config.model:ModelConfig",
        "roberta": "trainer.config.roberta:RobertaConfig",
        "modernbert": "trainer.config.modernbert:ModernBertConfig",
    },
    "encoder": {  # the class of the encoder for such a configuration
        "bert": "trainer.model.bert:Bert",
        "roberta": "trainer.model.bert:Bert",
        "modernbert": "trainer.model.modernbert:ModernBert",
    },
    "device": {
        "cpu": "trainer.devices.cpu:Cpu",
        "cuda": "trainer.devices.cuda:Cuda",
        "hpu": "trainer.devices.hpu:Hpu",
        "ipu": "trainer.devices.ipu.device:Ipu",
        "xla": "trainer.devices.xla:Xla",
    },
    "collective": {
        "single": "trainer.workers.collective:Collective",
        "torch_distributed": "trainer.workers.torch_distributed:TorchDistributed",
        "horovod": "trainer.workers.horovod:Horovod",
        "poprun": "trainer.workers.poprun:Poprun",
    },
    "strategy": {
        "replicated": "trainer.update.strategy:Strategy",
        "sharded": "trainer.splitting.split_strategy:Sharded",
        "pipelined": "trainer.splitting.pipelined:Pipelined",
        "whole_updates": "trainer.update.ipu_programs:IpuTraining",
    },
    "optimiser": {
        "lamb-mlperf": f"{_SCHEDULES}.mlperf:LAMB",
        "lamb-nvidia": f"{_SCHEDULES}.nvidia:LAMB",
        "lamb-nvlamb": f"{_SCHEDULES}.nvidia:NVLAMB",
        "lamb-habana-tf": f"{_SCHEDULES}.habana:LAMB",
        "lamb-graphcore": f"{_SCHEDULES}.graphcore:LAMB",
        "lamb-graphcore-pytorch": f"{_SCHEDULES}.graphcore:LAMB_PYTORCH",
        "adamw-bert": f"{_SCHEDULES}.mlperf:ADAMW_BERT",
        "adamw": f"{_SCHEDULES}.pytorch:ADAMW",
        "stableadamw": f"{_SCHEDULES}.modernbert:STABLE_ADAMW",
        "stableadamw-modernbert": f"{_SCHEDULES}.modernbert:STABLE_ADAMW_MODERNBERT",
        "momentum": f"{_SCHEDULES}.pytorch:MOMENTUM",
        "sgd": f"{_SCHEDULES}.pytorch:SGD",
    },
    "schedule": {  # the learning rate as a function of the update
        "mlperf": f"{_SCHEDULES}.mlperf:MLPERF",
        "nvidia-poly": f"{_SCHEDULES}.nvidia:NVIDIA_POLY",
        "nvidia-linear": f"{_SCHEDULES}.nvidia_finetuning:NVIDIA_LINEAR",
        "nvidia-bertadam": f"{_SCHEDULES}.nvidia_finetuning:NVIDIA_BERTADAM",
        "habana-tf": f"{_SCHEDULES}.habana:HABANA_TF",
        "polynomial_decay": f"{_SCHEDULES}.graphcore:POLYNOMIAL_DECAY",
        "natural_exponential": f"{_SCHEDULES}.graphcore:NATURAL_EXPONENTIAL",
        "trapezoidal": f"{_SCHEDULES}.modernbert:TRAPEZOIDAL",
        "custom": f"{_SCHEDULES}.graphcore:CUSTOM",
    },
    "masking": {
        "dynamic": _DRAWN,
        "fairseq": _DRAWN,
        "fairseq-0.12": _DRAWN,
        "modernbert": "trainer.data.modernbert_rows:AS_MODERNBERT",
    },
    "task": {
        "pretraining": "trainer.tasks.pretraining:Pretraining",
        "masked_words": "trainer.tasks.pretraining:MaskedWords",
        "span_boundaries": "trainer.tasks.span_boundaries:SpanBoundaries",
        "squad": "trainer.tasks.squad.task:Squad",
        **dict.fromkeys((*GLUE, "classification"), "trainer.tasks.classification.task:Classification"),
    },
    "data of the task": FINE_TUNED,
}
"""For each kind of object, such as "optimiser", a table of the names that a user can choose. The value of a
name says where the object is: MODULE:ATTRIBUTE.
"""


def list_names(kind: str) -> tuple[str, ...]:
    """Return all built-in names of a kind, for example of the kind "optimiser"."""
    return tuple(TABLE[kind])


def is_name(kind: str, name: str) -> bool:
    """Return True if the kind (for example "optimiser") has this built-in name."""
    return name in TABLE[kind]


def check_name(kind: str, name: str) -> None:
    """Raise SettingsError for an unknown name, and suggest the most similar one.

    A name with a colon (package.module:NAME) means a user's own object, and is always accepted.
    """
    if name in TABLE[kind] or ":" in name:
        return
    nearest = get_close_matches(name, TABLE[kind], n=1)
    hint = f"; the nearest known is {nearest[0]}" if nearest else ""
    raise SettingsError(f"{kind} {name!r}: no such {kind}; known are {', '.join(TABLE[kind])}{hint}")


def find(kind: str, name: str) -> Any:
    """Import and return the object with this name. Raise SettingsError if the name is unknown."""
    check_name(kind, name)
    module, _, attribute = TABLE[kind].get(name, name).partition(":")
    if name in TABLE[kind]:
        return getattr(import_module(module), attribute)
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"{kind} {name!r}: {error}") from None
