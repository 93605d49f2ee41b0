"""Compiling the model by its parts, compared with compiling it as one graph: time, kernels, bytes.

``python -m benchmarks.compiled_parts [CASE ...]`` prints a table for a pretended H100. It needs Triton, but
no GPU. With ``--processor`` it prints a table for this machine's processor, for narrow models of full depth.

For the pretended H100 (``benchmarks.pretended_card``), torch's compiler generates the kernels of a
micro-batch of true size. Triton does not compile these kernels, and they never run. On the processor, the
kernels are compiled and run. The seconds are CPU seconds of this process and of the C++ compilers that it
starts, for one token budget, without PyTorch's caches. Kernels and bytes are those of a micro-batch's forward
and backward pass. Bytes are the least that each kernel reads and writes. The additions to the gradients in
fp32 are left out, because they are the same in both ways, with one exception: if embeddings and heads have
separate graphs, the word embeddings get two gradients, and adding them is counted.
"""

import argparse
import os
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from benchmarks.gpu.sizes import FULL, Sizes
from benchmarks.gpu.updates import make_phase_data
from benchmarks.pretended_card import compile_for_card, native_dropout, pretend_card
from benchmarks.pretended_h100 import KernelCounts, count_kernels
from trainer.config.model import ModelConfig
from trainer.data.batches import FlatBatch
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.loader import Loader
from trainer.devices import cuda_losses
from trainer.devices.cpu import cpu_attention
from trainer.devices.cuda_attention import flash_attention
from trainer.model.headed import HeadedBert
from trainer.run.runtime import find_model_config
from trainer.tasks.choice import find_data_task, find_task
from trainer.tasks.task import Task
from trainer.update.half_weights import HalfWeights
from trainer.update.learner import Learner

NARROW = {"hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128, "vocab_size": 1000}
"""Widths of the models that are compiled for the processor. The time to compile hardly depends on them."""

PROCESSOR_BATCH = 8
"""Examples of a micro-batch on the processor."""

Way = Callable[[Learner, Callable[..., Any]], None]
"""A function that compiles a learner by means of a backend of torch.compile."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A model and a micro-batch of one of its usual sizes.

    name: name of the configuration in ``benchmarks.gpu.sizes``.
    shape: the model's settings.
    task: the task with the loss.
    batch: the micro-batch.
    """

    name: str
    shape: ModelConfig
    task: Task
    batch: FlatBatch


@dataclass(frozen=True, kw_only=True, slots=True)
class CompileFigures:
    """What compiling and running one micro-batch has shown.

    seconds: CPU seconds for compiling.
    graphs: number of graphs, forward and backward pass counted separately.
    counts: counts of the kernels of a micro-batch, or None on the processor.
    """

    seconds: float
    graphs: int
    counts: KernelCounts | None = None


def compile_whole(learner: Learner, backend: Callable[..., Any]) -> None:
    """Compile the model and its loss as one graph."""
    learner.compile(backend=backend, dynamic=False)


def compile_parts(learner: Learner, backend: Callable[..., Any]) -> None:
    """Compile embeddings, layers and heads each by a graph, as the trainer does."""
    learner.compile_parts(partial(torch.compile, backend=backend, dynamic=False))


WAYS: dict[str, Way] = {"one graph": compile_whole, "by parts": compile_parts}


def make_cases(name: str, sizes: Sizes, **keys: Any) -> list[Case]:
    """Return a case for each usual size of a micro-batch, the largest first.

    name: name of the configuration.
    keys: configuration keys to replace.
    """
    config = sizes.config(name, **keys)
    data = make_phase_data(config, sizes.phases[name].fill)
    size = config.update.batch_size or 1
    form = make_form(Rows(data), batch_size=size, micro_batches=sizes.accumulation, few_widths=True)
    batches = list(form.make_blank_batches())
    if not batches:
        loader = Loader(Rows(data), form=form, batch_size=size)
        batches = next(iter(loader)).batches
        loader.close()
    shape = find_model_config(config, data)
    task = find_task(find_data_task([data]), config, cuda_losses.cross_entropy)
    return [
        Case(name=name, shape=shape, task=task, batch=one) for one in batches if isinstance(one, FlatBatch)
    ]


def measure_for_card(case: Case, compile_learner: Way) -> CompileFigures:
    """Generate the kernels of a micro-batch for the pretended GPU, and count the kernels that it runs."""
    generated, ran = list[KernelCounts](), list[KernelCounts]()

    def count_runs(run: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function of a pass, which adds the pass's kernels to those that ran."""
        kernels = generated[-1]

        def run_and_count(*given: Any) -> Any:
            ran.append(kernels)
            return run(*given)

        return run_and_count

    with torch.device("meta"):
        model = case.task.new_model(case.shape, flash_attention)
    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        pretend_card(lambda graph: generated.append(count_kernels(graph))),
        patch.object(F, "dropout", native_dropout),
        torch.autocast("cpu", torch.bfloat16),
        torch._inductor.config.patch(force_disable_caches=True),
    ):
        learner = make_learner(model.to_empty(device="cpu"), case.task)
        compile_learner(learner, partial(compile_for_card, wrap=count_runs))
        seconds = time_pass(HalfWeights(learner, torch.bfloat16), case.batch.map(torch.zeros_like))
    if compile_learner is compile_parts and model.ties_words:
        words = model.bert.embeddings.word_embeddings.weight.numel()
        ran.append(KernelCounts(1, 12 * words, 12 * words))
    return CompileFigures(seconds=seconds, graphs=len(generated), counts=sum(ran, KernelCounts()))


def measure_for_processor(case: Case, compile_learner: Way) -> CompileFigures:
    """Compile a micro-batch for this machine's processor."""
    from torch._inductor.compile_fx import compile_fx

    torch.manual_seed(1)
    learner, graphs = make_learner(case.task.new_model(case.shape, cpu_attention), case.task), 0
    with torch._inductor.config.patch(force_disable_caches=True, compile_threads=1):
        compile_learner(learner, compile_fx)
        seconds = time_pass(learner, case.batch)
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    return CompileFigures(seconds=seconds, graphs=2 * graphs)


def make_learner(model: HeadedBert, task: Task) -> Learner:
    """Return a model that is not divided, together with its loss."""
    worker: Any = SimpleNamespace(model=model, task=task, model_share=SimpleNamespace(is_split=False))
    return Learner(worker)


def time_pass(learner: Callable[[FlatBatch], Any], batch: FlatBatch) -> float:
    """Return the CPU seconds of the first forward and backward pass, which compiles them."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    before = read_cpu_seconds()
    learner(batch).loss.backward()
    return read_cpu_seconds() - before


def read_cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the processes that it has started and that have ended."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def format_row(case: Case, way: str, found: CompileFigures) -> str:
    """Return a row of the table.

    way: name of the way of compiling.
    """
    cells = [case.name, f"{len(case.batch.input_ids):,}", way, str(found.graphs), f"{found.seconds:.1f}"]
    if found.counts is not None:
        cells += [f"{found.counts.launches:,.0f}", f"{found.counts.bytes / 1e9:.1f}"]
    return f"| {' | '.join(cells)} |"


def main(words: Sequence[str] | None = None) -> int:
    """Print the table. Returns the exit status.

    words: the command line. None: that of this process.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled_parts", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"{', '.join(FULL.phases)}; default: all")
    parser.add_argument("--processor", action="store_true", help="compile for this machine's processor")
    parser.add_argument("--largest", action="store_true", help="only the largest size of each case")
    given = parser.parse_args(words)
    if not given.processor and find_spec("triton") is None:
        print("benchmarks.compiled_parts: needs Triton (pip install triton), or --processor", file=sys.stderr)
        return 2
    keys = {**NARROW, "batch_size": PROCESSOR_BATCH, "device": "cpu"} if given.processor else {}
    print(f"| | tokens | compiled | graphs | CPU s |{'' if given.processor else ' kernels | GB |'}")
    print(f"|---|---|---|---|---|{'' if given.processor else '---|---|'}")
    for name in given.cases or FULL.phases:
        for case in make_cases(name, FULL, **keys)[: 1 if given.largest else None]:
            for way, compile_learner in WAYS.items():
                measure = measure_for_processor if given.processor else measure_for_card
                print(format_row(case, way, measure(case, compile_learner)), flush=True)
    sys.stdout.flush()
    os._exit(0)  # Exit without the exit handlers, which would close a driver that does not exist.


if __name__ == "__main__":
    sys.exit(main())
