"""Runner that runs Beam pipelines with Dask, on a running cluster or on worker processes that it starts."""

import argparse
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

import dask
import distributed
from apache_beam.metrics.cells import DistributionResult
from apache_beam.metrics.execution import MetricKey, MetricResult
from apache_beam.metrics.metric import MetricResults, MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.dask import dask_runner
from apache_beam.runners.dask.overrides import dask_overrides
from apache_beam.runners.runner import PipelineResult, PipelineState

from beam_pipelines.runners.dask_bundles import BundleReport, Translation
from beam_pipelines.runners.local_limits import limit_workers
from bertdata.errors import SettingsError
from bertdata.io.process_pool import count_available_cores

MOST_PARTITIONS = 500
"""Largest number of partitions that a collection is divided into.

If there are more elements, several share a partition. The number is limited because grouping needs as many
tasks as the square of the number of partitions.
"""

_LOGGER = logging.getLogger(__name__)


class LocalOptions(PipelineOptions):  # type: ignore[misc]
    """Command-line options of local worker processes: ``--dask_workers``, the number of them to start.

    Beam's own flags for Dask can only connect to a cluster that is already running.
    """

    @classmethod
    def _add_argparse_args(cls, parser: argparse.ArgumentParser) -> None:
        """Add the flag to Beam's parser. Beam calls this method for each class of options."""
        parser.add_argument("--dask_workers", type=int, default=None)


class DaskRunner(dask_runner.DaskRunner):  # type: ignore[misc]
    """Beam's Dask runner, with this package's translation (``dask_bundles``) and with local worker processes.

    Raises SettingsError for flags that exclude each other, and if the scheduler of the cluster does not
    answer.
    """

    def __init__(self, options: PipelineOptions) -> None:
        super().__init__()
        given = options.view_as(dask_runner.DaskOptions).get_all_options(drop_default=True, current_only=True)
        self._npartitions = given.pop("npartitions", None)
        self._partition_size = given.pop("partition_size", None)
        self.runs_here = not ({"address", "scheduler_file"} & set(given))
        workers = options.view_as(LocalOptions).dask_workers
        if workers is not None and not (1 <= workers <= limit_workers() and self.runs_here):
            raise SettingsError(
                f"--dask_workers {workers}: expected 1 to {limit_workers()} on this machine, and neither "
                "--dask_client_address nor --dask_scheduler_file beside it"
            )
        self._workers = workers or count_available_cores()
        self._connect: Callable[[], distributed.Client] = lambda: distributed.Client(**given)
        self._client = None if self.runs_here else self._connect_to_scheduler(given)

    def _connect_to_scheduler(self, given: dict[str, Any]) -> distributed.Client:
        """Connect to the scheduler of the running cluster. Raises SettingsError if it does not answer.

        given: values of Beam's flags for Dask, by name.
        """
        try:
            return distributed.Client(**given)
        except (OSError, ValueError) as error:
            place = given.get("address") or given["scheduler_file"]
            raise SettingsError(f"{place}: no Dask scheduler answers there: {error}") from None

    def run_pipeline(self, pipeline: Any, options: PipelineOptions) -> "DaskResult":
        """Start the pipeline on the cluster. Returns at once, without waiting for the pipeline's end."""
        pipeline.replace_all(dask_overrides())
        translation = Translation(os.urandom(8).hex(), self._count_partitions)
        pipeline.visit(translation)
        client = self._client or self._start_workers()
        reports = [part for bag in translation.reports for part in bag.to_delayed(optimize_graph=False)]
        return DaskResult(client, client.compute(reports), close_cluster=self.runs_here)

    def _start_workers(self) -> distributed.Client:
        """Start worker processes with one thread each, and return a client that is connected to them.

        The processes write no logs. They are not daemons, so that they may start processes themselves.
        """
        with _block_interrupts_in_children(), dask.config.set({"distributed.worker.daemon": False}):
            cluster = distributed.LocalCluster(
                n_workers=self._workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL + 1,
            )
        return distributed.Client(cluster)

    def _count_partitions(self, elements: int) -> int:
        """Return the number of partitions that a collection with this number of elements is divided into.

        By default each element has a partition of its own, so that little work is lost if a partition's task
        fails.
        """
        if self._partition_size:
            return -(-elements // self._partition_size) or 1
        return min(elements, self._npartitions or MOST_PARTITIONS) or 1


@contextmanager
def _block_interrupts_in_children() -> Iterator[None]:
    """Return a context manager that makes processes started in its block ignore Ctrl-C (SIGINT).

    Otherwise each of them would print a traceback. This process still receives the signal and stops the
    others.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started here, because it would unblock the signal if it were first started inside the block.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class DaskResult(PipelineResult):  # type: ignore[misc]
    """Handle of a running pipeline.

    Its metrics cover the bundles (groups of elements) that are finished so far.
    """

    def __init__(
        self, client: distributed.Client, futures: list[distributed.Future], *, close_cluster: bool
    ) -> None:
        super().__init__(PipelineState.RUNNING)
        self._client = client
        self._futures = futures
        self._close_cluster = close_cluster
        self._metrics = DaskMetrics()

    def wait_until_finish(self, duration: int | None = None) -> str:
        """Wait until the pipeline has ended, and return its final state. Raises the error of a failed bundle.

        duration: longest time to wait in milliseconds. None: no limit.
        """
        timeout = None if duration is None else duration / 1000
        try:
            done = distributed.as_completed(self._futures, with_results=True, timeout=timeout)
            for _, (report,) in done:
                self._metrics.add(report)
                for warning in report.warnings:
                    _LOGGER.warning("%s", warning)
            self._state = PipelineState.DONE
        except BaseException:
            self._state = PipelineState.FAILED
            raise
        finally:
            self._close()
        return str(self._state)

    def cancel(self) -> str:
        """Stop the pipeline and return its state, which is then "CANCELLED"."""
        self._close()
        self._state = PipelineState.CANCELLED
        return str(self._state)

    def _close(self) -> None:
        """Cancel all tasks that are left and disconnect from the cluster.

        If the cluster was started for this run, it is stopped too.
        """
        self._client.cancel(self._futures)
        if self._close_cluster:
            self._client.shutdown()
        self._client.close()

    def metrics(self) -> "DaskMetrics":
        """Return the metrics of the bundles that are finished so far."""
        return self._metrics


class DaskMetrics(MetricResults):  # type: ignore[misc]
    """Sums of the metrics of all bundles. If a task ran several times, only its successful attempt counts."""

    def __init__(self) -> None:
        super().__init__()
        self._counters: dict[MetricKey, int] = {}
        self._distributions: dict[MetricKey, Any] = {}

    def add(self, report: BundleReport) -> None:
        """Add the metrics in the report of a finished bundle."""
        for key, amount in report.metrics.counters.items():
            self._counters[key] = self._counters.get(key, 0) + amount
        for key, data in report.metrics.distributions.items():
            known = self._distributions.get(key)
            self._distributions[key] = data if known is None else known.combine(data)

    def query(self, filter: MetricsFilter | None = None) -> dict[str, list[MetricResult]]:
        """Return the metrics that match the filter, in the form that Beam's class MetricResults returns."""
        found = {
            self.COUNTERS: self._counters,
            self.DISTRIBUTIONS: {key: DistributionResult(data) for key, data in self._distributions.items()},
        }
        return {
            kind: [
                MetricResult(key, value, value) for key, value in values.items() if self.matches(filter, key)
            ]
            for kind, values in found.items()
        }
