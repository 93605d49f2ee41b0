"""Translation of a pipeline to a graph of Dask tasks.

Each task runs a DoFn (a Beam function) on a bundle of elements.

The translation in Beam 2.77 has four flaws. It mixes the tagged outputs of a DoFn, drops outputs that the
last transform does not need, computes a side input again in every task, and loses the metrics. Here each task
returns its outputs by tag, its metrics and its warnings. Grouping and flattening are still translated by
Beam.
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
    """Outputs of a bundle by tag (None: the main output), and its report."""

    outputs: dict[str | None, list[Any]]
    report: BundleReport


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFunction:
    """A function that runs a DoFn on the elements of a Dask partition.

    run: random name of the run.
    label: name of the stage.
    views: how the DoFn sees each side input (single value, list or dict).
    """

    run: str
    label: str
    fn: beam.DoFn
    window_fn: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    views: tuple[tuple[type, dict[str, Any]], ...]

    def __dask_tokenize__(self) -> tuple[str, str]:
        """Return a token unique to this run and stage.

        Dask treats tasks with equal tokens as the same task, even across runs on one cluster.
        """
        return self.run, self.label

    def __call__(self, elements: Iterable[Any], *sides: list[Any]) -> list[BundleResult]:
        """Run the DoFn on the elements. Returns one result in a list, because Dask's partitions are lists."""
        # The same calls that Beam's local runner makes for a bundle: setup, start_bundle, process for every
        # element, finish_bundle, teardown. All outputs are collected in lists instead of being sent on.
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
        with _collect_warnings() as warnings, _collect_metrics(self.label) as container:
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
    """A Beam receiver that collects a bundle's outputs with one tag in a list."""

    values: list[Any] = field(default_factory=list)

    def receive(self, windowed_value: Any) -> None:
        self.values.append(windowed_value.value)


class _Receivers(defaultdict[str | None, _Receiver]):
    """A dict of receivers by tag. A receiver is created at the tag's first output."""

    def __init__(self) -> None:
        super().__init__(_Receiver)


@contextmanager
def _collect_metrics(label: str) -> Iterator[MetricsContainer]:
    """Collect this thread's metrics during the block."""
    container = MetricsContainer(label)
    sampler = statesampler.StateSampler("", CounterFactory())
    sampler.start()
    try:
        with sampler.scoped_state(label, "bundle", metrics_container=container):
            yield container
    finally:
        sampler.stop()


@contextmanager
def _collect_warnings() -> Iterator[list[str]]:
    """Collect the warnings that this thread logs during the block. The launcher prints them."""
    handler = _WarningCollector(threading.get_ident())
    logger = logging.getLogger("beam_pipelines")
    logger.addHandler(handler)
    try:
        yield handler.messages
    finally:
        logger.removeHandler(handler)


class _WarningCollector(logging.Handler):
    """A log handler that keeps the warnings of one thread."""

    def __init__(self, thread: int) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        self._thread = thread

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self.messages.append(record.getMessage())


class Translation(PipelineVisitor):  # type: ignore[misc]
    """A visitor that creates a Dask bag for each collection of a pipeline.

    reports: the bags to compute. Computing them runs the whole pipeline.
    partitions: function from a number of elements to a number of partitions.
    """

    def __init__(self, run: str, partitions: Any) -> None:
        self.reports: list[dask.bag.Bag] = []
        self._run = run
        self._partitions = partitions
        self._bags: dict[beam.pvalue.PValue, dask.bag.Bag] = {}

    def visit_transform(self, node: AppliedPTransform) -> None:
        """Create the bags of a transform's outputs. Beam calls this in the order of the data."""
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
        """Create a bag from elements in memory."""
        return dask.bag.from_sequence(elements, npartitions=self._partitions(len(elements)))

    def _add_bundles(self, node: AppliedPTransform, elements: dask.bag.Bag) -> None:
        """Create the bags of a DoFn: one bag per output tag, and one for the bundles' reports."""
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
        # Every partition needs all elements of each side input. So the elements of a side input are first
        # joined into a single value.
        sides = [_join_partitions(self._bags[side.pvalue]) for side in node.side_inputs]
        results = elements.map_partitions(bundles, *sides, token=node.full_label)
        for output in node.outputs.values():
            self._bags[output] = results.map_partitions(_select_outputs, output.tag)
        self.reports.append(results.map_partitions(_select_reports))


def _join_partitions(bag: dask.bag.Bag) -> Any:
    """Return the elements of all partitions as a single delayed list, which Dask computes only once."""
    return dask.delayed(_concatenate, pure=True)(bag.to_delayed(optimize_graph=False))


def _concatenate(partitions: list[list[Any]]) -> list[Any]:
    """Join the partitions."""
    return list(chain.from_iterable(partitions))


def _select_outputs(results: list[BundleResult], tag: str | None) -> list[Any]:
    """Return the bundle's outputs with this tag."""
    return results[0].outputs.get(tag, [])


def _select_reports(results: list[BundleResult]) -> list[BundleReport]:
    """Return the bundle's report, in a list."""
    return [results[0].report]
