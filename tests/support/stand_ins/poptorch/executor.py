"""The executor of a module, with copies of weights and optimiser state as the device's memory.

Stored tensors have 16 bits where the device stores 16 bits. Products are computed in fp32, which CPUs are
built for.
"""

from pathlib import Path
from typing import Any

import torch
from recording import call
from torch import Tensor

from poptorch.blocks import trace
from poptorch.enums import ConnectionType, ReductionType
from poptorch.optim import Optimizer
from poptorch.options import Options, PipelinedExecution

NO_EXECUTABLE = "Model has not been compiled or has been destroyed."


class PoplarExecutor:
    """A callable that trains or runs a module on the emulated device.

    kind: ``training`` or ``inference``, for the record.
    """

    attached: "PoplarExecutor | None" = None  # there is one set of IPUs

    def __init__(self, model: torch.nn.Module, options: Options, *, optimizer: Any, training: bool) -> None:
        options.frozen = True
        if not training and options.Training.gradient_accumulation != 1:
            raise RuntimeError("You must set poptorch.Options().Training.gradientAccumulation to 1")
        assert not training or isinstance(optimizer, Optimizer)
        self.kind = "training" if training else "inference"
        self._model, self._options, self._optimizer, self._training = model, options, optimizer, training
        self._compiled = self._dirty_host_weights = False
        self._device: dict[str, Tensor] = {}
        self._state: dict[str, dict[str, Tensor]] = {}
        if optimizer:
            optimizer.executor = self

    def isCompiled(self) -> bool:
        return self._compiled

    def isAttachedToDevice(self) -> bool:
        return PoplarExecutor.attached is self

    def compile(self, *tensors: Tensor) -> None:
        call(f"{self.kind}.compile", *tensors)
        options = self._options
        stages = trace(self._model, *(tensor[: len(tensor) // self._count(tensor)] for tensor in tensors))
        ipus = max(stages) + 1
        if ipus & (ipus - 1) and not options.rounds:
            raise RuntimeError(f"{ipus} IPUs: the number of IPUs must be a power of 2")
        depth = options.Training.gradient_accumulation if self._training else options.iterations
        needed = 2 * len(stages) - 1 if self._training else len(stages)
        fills = isinstance(options.strategy, PipelinedExecution) and options.strategy.fills
        if fills and len(stages) > 1 and depth < needed:
            raise RuntimeError(
                f"For pipelining, depth (gradient accumulation factor) must equal at least the number of "
                f"pipeline stages ({needed})"
            )
        self._compiled = True
        if options.cache:
            Path(options.cache).mkdir(parents=True, exist_ok=True)
            (Path(options.cache) / f"{self.kind}.popef").write_bytes(b"executable")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed or 0)
            self._random = torch.get_rng_state()
        if options.connection is not ConnectionType.Never:
            self._attach()

    def _count(self, tensor: Tensor) -> int:
        """Return the number of micro-batches in a call."""
        options = self._options
        count = options.iterations * options.replicas * options.Training.gradient_accumulation
        assert len(tensor) % count == 0, (
            f"Invalid batch dimension: {len(tensor)}, a multiple of {count} wanted"
        )
        return count

    def _attach(self) -> None:
        if PoplarExecutor.attached is not None:
            raise RuntimeError(f"no IPUs left: the {PoplarExecutor.attached.kind} model holds them")
        PoplarExecutor.attached = self
        self.copyWeightsToDevice()
        if self._optimizer:
            if self._optimizer.host["ipu_state"] is not None:
                self._optimizer.ipu_state_is_dirty = True
                self._write_state()
            else:
                self._state = {name: self._optimizer.fresh(weight) for name, weight in self._device.items()}
                self._optimizer.host_state_is_dirty = True

    def attachToDevice(self) -> None:
        call(f"{self.kind}.attachToDevice")
        self._require()
        if PoplarExecutor.attached is self:
            raise RuntimeError("Device is already attached")
        self._attach()

    def detachFromDevice(self) -> None:
        call(f"{self.kind}.detachFromDevice")
        self._require()
        if PoplarExecutor.attached is not self:
            raise RuntimeError("Device is not attached")
        if self._dirty_host_weights:
            self._to_host()
        if self._optimizer:
            self._optimizer.state_dict()
        PoplarExecutor.attached = None
        self._device = {}

    def destroy(self) -> None:
        """Release the device.

        The weights are copied back. The optimiser's state is lost unless it was read before.
        """
        call(f"{self.kind}.destroy")
        if not self._compiled:
            return
        if self._dirty_host_weights:
            self._to_host()
        if PoplarExecutor.attached is self:
            PoplarExecutor.attached = None
        self._compiled, self._device, self._state = False, {}, {}

    def copyWeightsToHost(self) -> None:
        call(f"{self.kind}.copyWeightsToHost")
        self._require()
        self._to_host()

    def _to_host(self) -> None:
        self._dirty_host_weights = False
        with torch.no_grad():
            for name, weight in self._model.named_parameters():
                weight.copy_(self._device[name])

    def copyWeightsToDevice(self) -> None:
        self._require()
        self._device = {name: weight.detach().clone() for name, weight in self._model.named_parameters()}

    def _require(self) -> None:
        if not self._compiled:
            raise RuntimeError(NO_EXECUTABLE)

    def setOptimizer(self, optimizer: Optimizer) -> None:
        groups = [{"lr": float(f"{group['lr']:.6g}")} for group in optimizer.param_groups]
        call("training.setOptimizer", groups, loss_scaling=optimizer.loss_scaling)
        assert optimizer is self._optimizer, "the stand-in knows one optimiser"
        if self.isAttachedToDevice():
            self._write_state()

    def read_state(self) -> dict[str, Tensor]:
        """Return the optimiser's tensors by PopART's names, such as ``Accl1___model.weight``."""
        return {
            f"{kind}___model.{name}": value.clone()
            for name, state in self._state.items()
            for kind, value in state.items()
        }

    def _write_state(self) -> None:
        if not self._optimizer.ipu_state_is_dirty:
            return
        held = self._optimizer.host["ipu_state"]
        for name, weight in self._device.items():
            fresh = self._optimizer.fresh(weight)
            given = {kind: held.get(f"{kind}___model.{name}", value) for kind, value in fresh.items()}
            for kind, value in given.items():
                assert (value.dtype, value.shape) == (fresh[kind].dtype, fresh[kind].shape), (kind, name)
            self._state[name] = {kind: value.clone() for kind, value in given.items()}
        self._optimizer.ipu_state_is_dirty = False

    def __call__(self, *tensors: Tensor) -> Any:
        assert self._options.connection is not ConnectionType.Never, (
            "Trying to run a model on an offline device (ConnectionType.Never)"
        )
        if not self._compiled:
            self.compile(*tensors)
        call(f"{self.kind}.__call__", *tensors)
        if PoplarExecutor.attached is not self:
            self._attach()
        count = self._count(tensors[0])
        batches = list(zip(*(tensor.chunk(count) for tensor in tensors), strict=True))
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self._random)
            outputs = self._train(batches) if self._training else self._infer(batches)
            self._random = torch.get_rng_state()
        if self._options.synthetic:
            outputs = [tuple(torch.full_like(part, torch.nan) for part in output) for output in outputs]
        joined = [
            torch.cat([part.reshape(-1, *part.shape[1:]) for part in parts])
            for parts in zip(*outputs, strict=True)
        ]
        return tuple(joined) if len(joined) > 1 else joined[0]

    def _infer(self, batches: list[Any]) -> list[tuple[Tensor, ...]]:
        with torch.no_grad():
            weights = {name: weight.float() for name, weight in self._device.items()}
            outputs = [torch.func.functional_call(self._model, weights, batch) for batch in batches]
        return [output if isinstance(output, tuple) else (output,) for output in outputs]

    def _train(self, batches: list[Any]) -> list[tuple[Tensor, ...]]:
        """Run training steps. Inputs and outputs are ordered as [iterations, accumulation, replicas]."""
        self._write_state()
        per_update, outputs = len(batches) // self._options.iterations, []
        for first in range(0, len(batches), per_update):
            outputs += self._update(batches[first : first + per_update])
        self._dirty_host_weights = self._optimizer.host_state_is_dirty = True
        return outputs

    def _update(self, batches: list[Any]) -> list[tuple[Tensor, ...]]:
        optimizer, options, outputs = self._optimizer, self._options, []
        held = dict(self._model.named_parameters())  # the groups know the weights by these
        names = {id(weight): name for name, weight in held.items()}
        sums = {name: torch.zeros_like(w, dtype=optimizer.accum_type) for name, w in self._device.items()}
        is_mean = options.Training.reduction is ReductionType.Mean
        share = 1 / (len(batches) * options.processes) if is_mean else 1.0
        early = share if optimizer.accum_type is torch.float16 else 1.0  # lest 16 bits overflow
        for batch in batches:
            weights = {name: weight.float().requires_grad_() for name, weight in self._device.items()}
            output = torch.func.functional_call(self._model, weights, batch)
            loss = output[0]
            gradients = torch.autograd.grad(loss * optimizer.loss_scaling, list(weights.values()))
            for total, gradient in zip(sums.values(), gradients, strict=True):
                total += (gradient.float() * early).to(total.dtype)
            outputs.append(tuple(part.detach().reshape(-1) for part in output))
        late = share / early / optimizer.loss_scaling
        summed = [self._over_processes(total.float()) * late for total in sums.values()]
        gradients = dict(zip(sums, optimizer.clip(summed), strict=True))
        for group in optimizer.param_groups:
            for name in (names[id(weight)] for weight in group["params"]):
                weight = self._device[name].detach().float()
                change = optimizer.change(group, weight, gradients[name], self._state[name])
                self._device[name] = (weight + change).to(self._device[name].dtype)
        return outputs

    def _over_processes(self, total: Tensor) -> Tensor:
        if self._options.processes > 1:
            torch.distributed.all_reduce(total)  # on the real device, the links between IPUs add up
        return total
