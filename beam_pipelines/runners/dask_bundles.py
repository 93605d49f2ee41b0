"""Translation of a Beam pipeline to a graph of Dask tasks.

Each task runs a DoFn (a function of a Beam stage) on a bundle, that is, a group of elements.

Beam 2.77 has such a translation, but with four flaws. It mixes up the tagged outputs of a DoFn, drops outputs
that the last transform does not need, computes a side input again in every task, and loses the metrics. In
this translation each task returns its outputs by tag, its metrics and its warnings. Grouping and flattening
are still translated by Beam.
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
    """Metrics and warnings of the task that ran a DoFn on a bundle (a group of elements)."""

    metrics: MetricUpdates
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class BundleResult:
    """Result of running a DoFn on a bundle (a group of elements).

    outputs: the output elements by their tag. The tag of the main output is None.
    report: the task's metrics and warnings.
    """

    outputs: dict[str | None, list[Any]]
    report: BundleReport


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFunction:
    """Callable that runs a DoFn on the elements of a Dask partition.

    run: random name of the pipeline run, so that Dask never takes tasks of two runs for the same task.
    label: name of the stage that the DoFn belongs to.
    fn: the DoFn.
    arguments, keywords: its further arguments, with placeholders for the side inputs.
    views: how the DoFn sees each side input: as a single value, a list or a dict.
    """

    run: str
    label: str
    fn: beam.DoFn
    window_fn: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    views: tuple[tuple[type, dict[str, Any]], ...]

    def __dask_tokenize__(self) -> tuple[str, str]:
        """Return a token that only this stage of this run has.

        Dask takes two tasks with equal tokens for the same task, even if they are from two runs on one
        cluster.
        """
        return self.run, self.label

    def __call__(self, elements: Iterable[Any], *sides: list[Any]) -> list[BundleResult]:
        """Run the DoFn on the elements of a partition.

        The result is a list with one item, because Dask's partitions are lists.

        sides: all elements of each side input.
        """
        # These are the calls that Beam's local runner makes for a bundle: setup, start_bundle, process for
        # every element, finish_bundle, teardown. Outputs are not sent on, but collected in lists.
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
    """Receiver of a bundle's outputs with one tag. It collects them in a list."""

    values: list[Any] = field(default_factory=list)

    def receive(self, windowed_value: Any) -> None:
        """Add an output to the list. Beam calls this for each element that the DoFn yields."""
        self.values.append(windowed_value.value)


class _Receivers(defaultdict[str | None, _Receiver]):
    """Dict of receivers by output tag. A missing receiver is created when it is first looked up."""

    def __init__(self) -> None:
        super().__init__(_Receiver)


@contextmanager
def _collect_metrics(label: str) -> Iterator[MetricsContainer]:
    """Return a context manager that collects the Beam metrics which this thread counts while its block runs.

    label: name of the stage that the metrics belong to.
    """
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
    """Return a context manager that collects the warnings which this thread logs while its block runs.

    They are sent to the launching process, which prints them.
    """
    handler = _WarningCollector(threading.get_ident())
    logger = logging.getLogger("beam_pipelines")
    logger.addHandler(handler)
    try:
        yield handler.messages
    finally:
        logger.removeHandler(handler)


class _WarningCollector(logging.Handler):
    """Log handler that keeps the warnings of one thread and ignores all other records."""

    def __init__(self, thread: int) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        self._thread = thread

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record's message if the record is a warning of the thread."""
        if record.thread == self._thread:
            self.messages.append(record.getMessage())


class Translation(PipelineVisitor):  # type: ignore[misc]
    """Visitor that walks through a Beam pipeline and creates a Dask bag for each of its collections.

    reports: bags of bundle reports. Computing these bags runs the whole pipeline.
    run: random name of the pipeline run.
    partitions: function that returns the number of partitions for a number of elements.
    """

    def __init__(self, run: str, partitions: Any) -> None:
        self.reports: list[dask.bag.Bag] = []
        self._run = run
        self._partitions = partitions
        self._bags: dict[beam.pvalue.PValue, dask.bag.Bag] = {}

    def visit_transform(self, node: AppliedPTransform) -> None:
        """Create the Dask bags for the outputs of one transform.

        Beam calls this for every transform, each after the transforms whose outputs it reads.
        """
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
        """Create a bag from elements that the pipeline itself contains (``beam.Create``)."""
        return dask.bag.from_sequence(elements, npartitions=self._partitions(len(elements)))

    def _add_bundles(self, node: AppliedPTransform, elements: dask.bag.Bag) -> None:
        """Create the bags of a stage that runs a DoFn: one for each output tag, and one for the reports.

        elements: bag of the stage's input.
        """
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
    """Join the lists of all partitions into one list."""
    return list(chain.from_iterable(partitions))


def _select_outputs(results: list[BundleResult], tag: str | None) -> list[Any]:
    """Return the outputs of a partition that have this tag."""
    return results[0].outputs.get(tag, [])


def _select_reports(results: list[BundleResult]) -> list[BundleReport]:
    """Return the report of a partition in a list, because Dask's partitions are lists."""
    return [results[0].report]
