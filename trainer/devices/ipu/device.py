"""Graphcore's IPUs as a device, driven by one process, or by several processes that poprun started."""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from bertdata.errors import SettingsError
from trainer.config.settings import Config
from trainer.devices.availability import Availability
from trainer.devices.device import Compilable, Device
from trainer.devices.ipu.stages import (
    IpuPipeline,
    checkpoint_layers,
    mark_stages,
    plan_pipeline,
    serialize_projection,
)
from trainer.model.headed import BertForMaskedLM, BertForPreTraining, HeadedBert
from trainer.model.layers import Layer

_SDK = "source the Poplar SDK's enable scripts and install its PopTorch wheel"
_NO_IPU = "see gc-info --list-devices and IPUOF_VIPU_API_PARTITION_ID"
_LEAST_LOGIT = -1e4


def cross_entropy(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Return two fp32 numbers for each row: its loss, and 1.0 if the label has the largest logit, otherwise
    0.0.

    Only operations are used for which PopART (Graphcore's runtime) has a gradient. Logits are clamped first:
    those of the vocabulary's padding are minus infinity, and the loss would contain 0 * inf.
    """
    logits = logits.float().clamp(min=_LEAST_LOGIT)
    losses = F.cross_entropy(logits, ids, reduction="none")
    return losses, (logits.detach().argmax(dim=1) == ids).float()


class Ipu(Device):
    """The IPUs of one process. They compute one or more copies of the model (replicas). Each copy is a
    pipeline.

    A pipeline divides the layers among several IPUs. Between calls of PopTorch, all tensors are in host
    memory.
    """

    name = "ipu"
    strategy = "whole_updates"
    process_group = "gloo"
    collectives = ("single", "poprun")
    idle = ("compile", "deterministic", "init_loss_scale", "min_loss_scale", "max_loss_scale")
    needs_rows = True
    compiles_always = True
    row_losses = staticmethod(cross_entropy)
    pipeline: IpuPipeline

    def __init__(self, config: Config, local_rank: int = 0) -> None:
        super().__init__(config)
        if config.update.precision == "bf16":
            raise SettingsError(
                "device 'ipu': precision bf16: IPUs have fp16; give --precision fp16 --loss-scaling 1024"
            )
        if config.loading.bins:
            raise SettingsError("device 'ipu': bins make rows of several widths, its programs take one")
        self.torch_device = torch.device("cpu")
        try:
            self.poptorch = import_module("poptorch")
        except ImportError as error:
            raise SettingsError(f"device 'ipu' is not there: no PopTorch ({error}); {_SDK}") from None
        if not config.run.compile_only and not self.poptorch.ipuHardwareIsAvailable():
            raise SettingsError(f"device 'ipu' is not there: PopTorch finds no IPU; {_NO_IPU}")
        self._popdist = _find_popdist()
        self.replicas = self._popdist.getNumLocalReplicas() if self._popdist else config.update.replicas or 1
        self.updates_per_call = config.ipu.batches_per_step or 1

    def place(self, model: HeadedBert) -> HeadedBert:
        """Return the model in the configured precision, with the stages of the pipeline marked. It stays on
        the host.
        """
        if type(model) not in (BertForMaskedLM, BertForPreTraining):
            raise SettingsError(
                "device 'ipu' pre-trains on masked words, with or without next sentence, only; train this on "
                "another device"
            )
        if not isinstance(model.bert.encoder.layer[0], Layer):
            raise SettingsError(
                f"device 'ipu': model_type {model.config.model_type}: its stages are those of a bert or a "
                "roberta; train it on another device"
            )
        poptorch, given = self.poptorch, self.config.ipu
        self.pipeline = plan_pipeline(given, model.config.num_hidden_layers)
        if self.config.update.precision == "fp16":
            model.half()
        mark_stages(poptorch, self.pipeline, model)
        if given.enable_recomputation:
            checkpoint_layers(poptorch, model)
        if given.matmul_serialize_factor is not None:
            serialize_projection(poptorch, model, given.matmul_serialize_factor)
        return model

    def compile(self, learner: Compilable) -> None:
        """Do nothing. PopTorch compiles whole programs when they are first called."""

    def check_updates(self, updates: int) -> None:
        if updates % self.updates_per_call:
            raise SettingsError(
                f"{updates} updates to make, expected a multiple of the {self.updates_per_call} that "
                "the device makes at a time"
            )

    def check_workers(self, workers: int) -> None:
        """Raise SettingsError if there are several processes and poprun did not start them."""
        if workers != (self._popdist.getNumInstances() if self._popdist else 1):
            raise SettingsError(
                f"device 'ipu': {workers} processes that poprun did not start; replicas need no "
                "processes, or start by poprun"
            )

    def fresh_options(self) -> Any:
        """Return new PopTorch options in which only the number of replicas is set.

        If poprun started this process, its library popdist makes the options.
        """
        if self._popdist is None:
            options = self.poptorch.Options()
            options.replicationFactor(self.replicas)
            return options
        if (given := self._popdist.getNumIpusPerReplica()) != self.pipeline.ipus_per_replica:
            raise SettingsError(
                f"device 'ipu': poprun was told {given} IPUs a replica; give poprun "
                f"--ipus-per-replica {self.pipeline.ipus_per_replica}"
            )
        return import_module("popdist.poptorch").Options(ipus_per_replica=self.pipeline.ipus_per_replica)

    def to_host(self, tensor: Tensor) -> Tensor:
        """Return the tensor as a plain fp32 tensor, because PopTorch's tensor class reads from the IPU at
        each access.
        """
        return tensor.detach().as_subclass(Tensor).float()

    def describe(self) -> str:
        pipeline, version = self.pipeline, self.poptorch.__version__
        stages = f"stages on IPUs {', '.join(map(str, pipeline.ipus))}"
        return (
            f"ipu: PopTorch {version}, {self.replicas} replicas of {pipeline.ipus_per_replica} IPUs, {stages}"
        )


def examine() -> Availability:
    """Return whether this machine has PopTorch and IPUs.

    The count stays 1, because one worker drives all copies of the model.
    """
    try:
        poptorch = import_module("poptorch")
    except ImportError as error:
        return Availability("ipu", False, f"no PopTorch ({error})", _SDK)
    if not poptorch.ipuHardwareIsAvailable():
        return Availability("ipu", False, f"PopTorch {poptorch.__version__} finds no IPU", _NO_IPU)
    pods = next(count for count in (64, 16, 4, 2, 1) if poptorch.ipuHardwareIsAvailable(count))
    generation = f"of generation {poptorch.ipuHardwareVersion()}"
    return Availability(
        "ipu", True, f"at least {pods} IPUs {generation}; PopTorch {poptorch.__version__}; fp16"
    )


@cache
def _find_popdist() -> ModuleType | None:
    """Return the library popdist if poprun started this process, otherwise None.

    The process joins the other processes of poprun at the first call.
    """
    try:
        popdist = import_module("popdist")
    except ImportError:
        return None
    if not popdist.isPopdistEnvSet():
        return None
    popdist.init()
    return popdist
