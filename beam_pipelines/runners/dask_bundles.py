"""A pipeline as a graph of Dask tasks: one task for each bundle of a DoFn.

Beam 2.77's own translation for Dask mixes the tagged outputs of a DoFn, leaves out what the last
transform does not need, computes a side input again in every task, and keeps no metrics. Here a task
returns its outputs by tag, its metrics and its warnings; grouping and flattening are Beam's own
translation.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import apache_beam as beam
import dask
import dask.bag
from apache_beam.metrics.execution import MetricsContainer, MetricUpdates
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor
from apache_beam.runners.common import DoFnContext, DoFnInvoker, DoFnSignature, Receiver, _OutputHandler
from apache_beam.runners.dask.overrides import _Create
from apache_beam.runners.dask.transform_evaluator import TRANSLATIONS, Flatten, NoOp, get_windowed_value
from apache_beam.runners.worker import statesampler
from apache_beam.transforms.sideinputs import SideInputMap
from apache_beam.utils.counters import CounterFactory


@dataclass(frozen=True, slots=True)
class BundleReport:
    """Metrics and warnings of a bundle."""

    metrics: MetricUpdates
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class BundleResult:
    """Outputs of a bundle by tag, None for the main output, and its report."""

    outputs: dict[str | None, list[Any]]
    report: BundleReport


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFunction:
    """A DoFn as a function from a partition's elements, and its side inputs, to a bundle's result."""

    run: str
    label: str
    fn: beam.DoFn
    window_fn: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    views: tuple[tuple[type, dict[str, Any]], ...]

    def __dask_tokenize__(self) -> tuple[str, str]:
        """A token of this run alone: Dask would take tasks with equal tokens for the same task."""
        return self.run, self.label

    def __call__(self, elements: Iterable[Any], *sides: list[Any]) -> list[BundleResult]:
        """One result, in a list: Dask's partitions are lists."""
        receivers = _Receivers()
        invoker = DoFnInvoker.create_invoker(
            DoFnSignature(self.fn),
            _OutputHandler(
                window_fn=self.window_fn,
                main_receivers=receivers[None],
                tagged_receivers=receivers,
                per_element_output_counter=None,
                output_batch_converter=None,
                process_yields_batches=False,
                process_batch_yields_elements=False,
            ),
            context=DoFnContext(self.label, state=None),
            side_inputs=[
                SideInputMap(view, options, [get_windowed_value(value, self.window_fn) for value in side])
                for (view, options), side in zip(self.views, sides, strict=True)
            ],
            input_args=list(self.arguments),
            input_kwargs=self.keywords,
            user_state_context=None,
            bundle_finalizer_param=beam.DoFn.BundleFinalizerParam(),
        )
        with _collected_warnings() as warnings, _metrics_container(self.label) as container:
            invoker.invoke_setup()
            try:
                invoker.invoke_start_bundle()
                for element in elements:
                    invoker.invoke_process(get_windowed_value(element, self.window_fn))
                invoker.invoke_finish_bundle()
            finally:
                invoker.invoke_teardown()
        outputs = {tag: receiver.values for tag, receiver in receivers.items()}
        return [BundleResult(outputs, BundleReport(container.get_cumulative(), warnings))]


@dataclass
class _Receiver(Receiver):  # type: ignore[misc]
    values: list[Any] = field(default_factory=list)

    def receive(self, windowed_value: Any) -> None:
        self.values.append(windowed_value.value)


class _Receivers(defaultdict[str | None, _Receiver]):
    def __init__(self) -> None:
        super().__init__(_Receiver)


@contextmanager
def _metrics_container(label: str) -> Iterator[MetricsContainer]:
    """The container of this thread's metrics inside the block."""
    container = MetricsContainer(label)
    sampler = statesampler.StateSampler("", CounterFactory())
    sampler.start()
    try:
        with sampler.scoped_state(label, "bundle", metrics_container=container):
            yield container
    finally:
        sampler.stop()


@contextmanager
def _collected_warnings() -> Iterator[list[str]]:
    """The warnings that this thread logs inside the block. The launcher prints them."""
    handler = _WarningCollector(threading.get_ident())
    logger = logging.getLogger("beam_pipelines")
    logger.addHandler(handler)
    try:
        yield handler.messages
    finally:
        logger.removeHandler(handler)


class _WarningCollector(logging.Handler):
    def __init__(self, thread: int) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        self._thread = thread

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self.messages.append(record.getMessage())


class Translation(PipelineVisitor):  # type: ignore[misc]
    """A visitor that makes a Dask bag of each collection of a pipeline.

    ``reports`` are the bags to compute, and computing them runs the whole pipeline. ``partitions``
    gives the number of partitions for a number of elements.
    """

    def __init__(self, run: str, partitions: Any) -> None:
        self.reports: list[dask.bag.Bag] = []
        self._run = run
        self._partitions = partitions
        self._bags: dict[beam.pvalue.PValue, dask.bag.Bag] = {}

    def visit_transform(self, node: AppliedPTransform) -> None:
        inputs = [self._bags[value] for value in node.inputs if value in self._bags]
        if isinstance(node.transform, _Create):
            bag = self._create(list(node.transform.values))
        elif type(node.transform) is beam.ParDo:
            self._add_bundles(node, inputs[0])
            return
        else:
            operation = TRANSLATIONS.get(type(node.transform), NoOp)(node)
            bag = operation.apply(inputs if isinstance(operation, Flatten) else inputs[0])
        for output in node.outputs.values():
            self._bags[output] = bag

    def _create(self, elements: list[Any]) -> dask.bag.Bag:
        return dask.bag.from_sequence(elements, npartitions=self._partitions(len(elements)))

    def _add_bundles(self, node: AppliedPTransform, elements: dask.bag.Bag) -> None:
        arguments, keywords = node.transform.raw_side_inputs
        (main,) = node.main_inputs.values()
        bundles = BundleFunction(
            run=self._run,
            label=node.full_label,
            fn=node.transform.fn,
            window_fn=main.windowing.windowfn,
            arguments=tuple(arguments),
            keywords=keywords,
            views=tuple((type(side), side._view_options()) for side in node.side_inputs),
        )
        sides = [_all_elements(self._bags[side.pvalue]) for side in node.side_inputs]
        results = elements.map_partitions(bundles, *sides, token=node.full_label)
        for output in node.outputs.values():
            self._bags[output] = results.map_partitions(_values, output.tag)
        self.reports.append(results.map_partitions(_reports))


def _all_elements(bag: dask.bag.Bag) -> Any:
    """The elements of all partitions as one list, computed once."""
    return dask.delayed(_concatenated, pure=True)(bag.to_delayed(optimize_graph=False))


def _concatenated(partitions: list[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(partitions))


def _values(results: list[BundleResult], tag: str | None) -> list[Any]:
    return results[0].outputs.get(tag, [])


def _reports(results: list[BundleResult]) -> list[BundleReport]:
    return [results[0].report]
