"""A pipeline as a graph of Dask tasks: each bundle of a DoFn is one task, and tells what it counted.

As Beam 2.77 translates a pipeline for Dask, the tagged outputs of a DoFn are mixed, what the last
transform does not need is left out, a side input is made again in every task, and nothing is counted.
Here a task gives back its outputs by tag, its metrics and its warnings; grouping and flattening are
Beam's own translation.
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
class Tally:
    """What a bundle counted, and the warnings it gave."""

    metrics: MetricUpdates
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a bundle made, by tag, None for the main output; and its tally."""

    outputs: dict[str | None, list[Any]]
    tally: Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundles:
    """A DoFn as a function of a partition's elements and of its side inputs."""

    run: str
    label: str
    fn: beam.DoFn
    window_fn: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    views: tuple[tuple[type, dict[str, Any]], ...]

    def __dask_tokenize__(self) -> tuple[str, str]:
        """No task of another run is ever taken for one of this."""
        return self.run, self.label

    def __call__(self, elements: Iterable[Any], *sides: list[Any]) -> list[Outcome]:
        """One outcome, in a list: a partition is a list."""
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
        with _warnings_kept() as warnings, _counting(self.label) as container:
            invoker.invoke_setup()
            try:
                invoker.invoke_start_bundle()
                for element in elements:
                    invoker.invoke_process(get_windowed_value(element, self.window_fn))
                invoker.invoke_finish_bundle()
            finally:
                invoker.invoke_teardown()
        outputs = {tag: receiver.values for tag, receiver in receivers.items()}
        return [Outcome(outputs, Tally(container.get_cumulative(), warnings))]


@dataclass
class _Receiver(Receiver):  # type: ignore[misc]
    values: list[Any] = field(default_factory=list)

    def receive(self, windowed_value: Any) -> None:
        self.values.append(windowed_value.value)


class _Receivers(defaultdict[str | None, _Receiver]):
    def __init__(self) -> None:
        super().__init__(_Receiver)


@contextmanager
def _counting(label: str) -> Iterator[MetricsContainer]:
    """Where this thread's metrics go."""
    container = MetricsContainer(label)
    sampler = statesampler.StateSampler("", CounterFactory())
    sampler.start()
    try:
        with sampler.scoped_state(label, "bundle", metrics_container=container):
            yield container
    finally:
        sampler.stop()


@contextmanager
def _warnings_kept() -> Iterator[list[str]]:
    """The warnings that this thread gives, which the launcher will print."""
    handler = _Keeper(threading.get_ident())
    logger = logging.getLogger("beam_pipelines")
    logger.addHandler(handler)
    try:
        yield handler.kept
    finally:
        logger.removeHandler(handler)


class _Keeper(logging.Handler):
    def __init__(self, thread: int) -> None:
        super().__init__(logging.WARNING)
        self.kept: list[str] = []
        self._thread = thread

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self.kept.append(record.getMessage())


class Translation(PipelineVisitor):  # type: ignore[misc]
    """The bags of a pipeline's collections; ``tallies`` are what to compute, and all there is to compute.

    ``partitions`` tells in how many partitions so many elements go.
    """

    def __init__(self, run: str, partitions: Any) -> None:
        self.tallies: list[dask.bag.Bag] = []
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
        bundles = Bundles(
            run=self._run,
            label=node.full_label,
            fn=node.transform.fn,
            window_fn=main.windowing.windowfn,
            arguments=tuple(arguments),
            keywords=keywords,
            views=tuple((type(side), side._view_options()) for side in node.side_inputs),
        )
        sides = [_whole(self._bags[side.pvalue]) for side in node.side_inputs]
        outcomes = elements.map_partitions(bundles, *sides, token=node.full_label)
        for output in node.outputs.values():
            self._bags[output] = outcomes.map_partitions(_values, output.tag)
        self.tallies.append(outcomes.map_partitions(_tally))


def _whole(bag: dask.bag.Bag) -> Any:
    """The elements of all partitions, made once."""
    return dask.delayed(_concatenated, pure=True)(bag.to_delayed(optimize_graph=False))


def _concatenated(partitions: list[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(partitions))


def _values(outcomes: list[Outcome], tag: str | None) -> list[Any]:
    return outcomes[0].outputs.get(tag, [])


def _tally(outcomes: list[Outcome]) -> list[Tally]:
    return [outcomes[0].tally]
