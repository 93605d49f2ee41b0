"""Graphcore's IPUs, through PopTorch 3, in one process or in several that poprun started."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from bertdata.errors import SettingsError
from trainer.collectives.collective import Collective
from trainer.config.settings import Config
from trainer.data.batches import RowBatch
from trainer.devices.availability import Availability
from trainer.devices.device import Device
from trainer.devices.ipu.options import check_training, inference_options, loss_scale, make_optimiser
from trainer.devices.ipu.stages import (
    TENSORS,
    Pipeline,
    Pretraining,
    checkpoint_layers,
    combine_losses,
    make_stages,
    plan_pipeline,
    serialize_projection,
)
from trainer.devices.ipu.updater import IpuUpdater, Program
from trainer.devices.loss_scale import LossScale
from trainer.model.bert import BertForPreTraining
from trainer.optim import Preset
from trainer.tasks.losses import Losses

_SDK = "source the Poplar SDK's enable scripts and install its PopTorch wheel"
_NO_IPU = "see gc-info --list-devices and IPUOF_VIPU_API_PARTITION_ID"


class Ipu(Device):
    """The IPUs of one process: replicas of the model, each on the IPUs of its pipeline.

    Tensors stay in host memory between calls. Training and evaluation are two programs that take turns
    on the same IPUs.
    """

    name = "ipu"
    process_group = "gloo"
    collectives = ("single", "poprun")
    idle = ("compile", "deterministic", "init_loss_scale", "min_loss_scale", "max_loss_scale")
    fixed_shapes = True
    pipeline: Pipeline
    module: Pretraining

    def __init__(self, config: Config, local_rank: int = 0) -> None:
        super().__init__(config)
        if config.update.precision == "bf16":
            remedy = "give --precision fp16 --loss-scaling 1024"
            raise SettingsError(f"device 'ipu': precision bf16: IPUs have fp16; {remedy}")
        self.torch_device = torch.device("cpu")
        self.poptorch = _find_poptorch()
        if not config.run.compile_only and not self.poptorch.ipuHardwareIsAvailable():
            raise SettingsError(f"device 'ipu' is not there: PopTorch finds no IPU; {_NO_IPU}")
        self._popdist = _find_popdist()
        self.replicas = self._popdist.getNumLocalReplicas() if self._popdist else config.update.replicas or 1
        self.updates_per_call = config.ipu.batches_per_step or 1
        self._updater: IpuUpdater | None = None
        self._inference: Any = None

    def place(self, model: BertForPreTraining) -> BertForPreTraining:
        """The model, still on the host, with its stages marked and in the configured precision."""
        poptorch, given = self.poptorch, self.config.ipu
        self.pipeline = plan_pipeline(given, model.config.num_hidden_layers)
        if self.config.update.precision == "fp16":
            model.half()
        make_stages(poptorch, self.pipeline, model)
        if given.enable_recomputation:
            checkpoint_layers(poptorch, model)
        if given.matmul_serialize_factor is not None:
            serialize_projection(poptorch, model, given.matmul_serialize_factor)
        self.module = Pretraining(poptorch, model)
        return model

    def fresh_options(self) -> Any:
        """Options with only the number of replicas set; popdist's where poprun started this process."""
        if self._popdist is None:
            options = self.poptorch.Options()
            options.replicationFactor(self.replicas)
            return options
        if (given := self._popdist.getNumIpusPerReplica()) != self.pipeline.ipus_per_replica:
            wanted = f"give poprun --ipus-per-replica {self.pipeline.ipus_per_replica}"
            raise SettingsError(f"device 'ipu': poprun was told {given} IPUs a replica; {wanted}")
        return import_module("popdist.poptorch").Options(ipus_per_replica=self.pipeline.ipus_per_replica)

    def updater(self, workers: Collective, model: BertForPreTraining) -> IpuUpdater:
        _, accumulation = self.config.update.micro_batches(workers.size * self.replicas)
        check_training(self.config, self.pipeline, accumulation)
        if workers.size != (self._popdist.getNumInstances() if self._popdist else 1):
            found = f"{workers.size} processes that poprun did not start"
            raise SettingsError(f"device 'ipu': {found}; replicas need no processes, or start by poprun")
        program = Program(
            poptorch=self.poptorch,
            module=self.module,
            pipeline=self.pipeline,
            replicas=self.replicas,
            fresh_options=self.fresh_options,
        )
        self._updater = IpuUpdater(self.config, self, workers, model, program)
        return self._updater

    def optimiser(self, preset: Preset, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        made: torch.optim.Optimizer = make_optimiser(self.poptorch, self.config, preset, groups)
        return made

    def scaler(self, precision: str, *, initial: float, floor: float, ceiling: float) -> LossScale:
        """The fixed scale, for the checkpoint only: PopTorch's optimisers scale the loss themselves."""
        fixed = loss_scale(self.config, 0)
        return LossScale(fixed, fixed, fixed)

    @contextmanager
    def evaluating(self, model: BertForPreTraining) -> Iterator[Callable[[RowBatch], Losses]]:
        self.module.eval()
        with self._updater.off_the_ipus() if self._updater else nullcontext():
            if self._inference is not None:
                self._inference.attachToDevice()
            yield self._evaluate
            if self._inference is not None:
                self._inference.detachFromDevice()
        self.module.train()

    def _evaluate(self, batch: RowBatch) -> Losses:
        """The losses of a batch over all replicas, padded with rows of weight 0 to a multiple of them."""
        rows = -(-len(batch) // self.replicas) * self.replicas
        tensors = [getattr(batch, name) for name in TENSORS]
        if missing := rows - len(batch):
            tensors = [torch.cat([one, one.new_zeros(missing, *one.shape[1:])]) for one in tensors]
            tensors[-1][-missing:] = -1
        if self._inference is None:
            options = inference_options(self.poptorch, self.fresh_options(), self.config, self.pipeline)
            self._inference = self.poptorch.inferenceModel(self.module, options)
            self._inference.compile(*tensors)
        return Losses(*combine_losses(self._inference(*tensors)))

    def to_host(self, tensor: Tensor) -> Tensor:
        """A plain tensor in fp32; any access to PopTorch's own tensor class reads from the IPU."""
        return tensor.detach().as_subclass(Tensor).float()

    def release(self) -> None:
        """Destroy both programs, so that the next phase's programs get the IPUs."""
        if self._updater is not None:
            self._updater.release()
        if self._inference is not None:
            self._inference.destroy()

    def describe(self) -> str:
        pipeline, version = self.pipeline, self.poptorch.__version__
        stages = f"stages on IPUs {', '.join(map(str, pipeline.ipus))}"
        return (
            f"ipu: PopTorch {version}, {self.replicas} replicas of {pipeline.ipus_per_replica} IPUs, {stages}"
        )


def examine() -> Availability:
    """PopTorch and the IPUs of this machine; count stays 1, because one worker drives all replicas."""
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


def _find_poptorch() -> ModuleType:
    try:
        return import_module("poptorch")
    except ImportError as error:
        raise SettingsError(f"device 'ipu' is not there: no PopTorch ({error}); {_SDK}") from None


@cache
def _find_popdist() -> ModuleType | None:
    """popdist, joined once in this process, or None where poprun did not start it."""
    try:
        popdist = import_module("popdist")
    except ImportError:
        return None
    if not popdist.isPopdistEnvSet():
        return None
    popdist.init()
    return popdist
