"""Worker processes of a run on this machine: starting them, stopping them, and noticing when one has died."""

import os
import subprocess
import sys
import threading
import time
from typing import Any

from apache_beam.portability.api import endpoints_pb2
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    SUBPROCESS_LOCK,
    GrpcWorkerHandler,
    WorkerHandler,
)
from apache_beam.transforms.environments import Environment, SubprocessSDKEnvironment
from google.protobuf import json_format, text_format

from beam_pipelines.report.errors import WORKER_DIED
from beam_pipelines.runners import worker

URN = "bertdata:environment:local_worker:v1"
MODULE = worker.__name__
GRACE_SECONDS = 10
"""Seconds in which a worker may exit by itself after the run has ended or failed. Then it is killed."""

_ABORT_EVERY_SECONDS = 0.2


@Environment.register_urn(URN, bytes)
class LocalWorkers(SubprocessSDKEnvironment):  # type: ignore[misc]
    """Beam environment whose workers are the processes ``python -m beam_pipelines.runners.worker``."""

    def to_runner_api_parameter(self, context: Any) -> tuple[str, bytes]:
        """Return the name and the command of this environment, as Beam stores them in a pipeline."""
        return URN, self.command_string.encode()

    @staticmethod
    def from_runner_api_parameter(
        payload: bytes, capabilities: Any, artifacts: Any, resource_hints: Any, context: Any
    ) -> "LocalWorkers":
        """Return the environment that a pipeline stores: the inverse of ``to_runner_api_parameter``."""
        return LocalWorkers(payload.decode(), capabilities, artifacts, resource_hints)


@WorkerHandler.register_environment(URN, bytes)
class LocalWorkerHandler(GrpcWorkerHandler):  # type: ignore[misc]
    """The runner's connection to one worker process.

    Beam's own class waits forever for a process that died before it connected. At the end of a run it also
    waits for a process that connects too late. This class does neither.
    """

    def __init__(self, module: bytes, state: Any, provision_info: Any, grpc_server: Any) -> None:
        super().__init__(state, provision_info, grpc_server)
        self._module = module.decode()
        self._stopping = False

    def start_worker(self) -> None:
        """Start the worker process. Its environment variables contain Beam's addresses and options."""
        control = endpoints_pb2.ApiServiceDescriptor(url=self.control_address)
        options = self.provision_info.provision_info.pipeline_options
        environment = {
            **os.environ,
            "CONTROL_API_SERVICE_DESCRIPTOR": text_format.MessageToString(control),
            "PIPELINE_OPTIONS": json_format.MessageToJson(options),
            "WORKER_ID": self.worker_id,
            worker.LAUNCHER: str(os.getpid()),
        }
        with SUBPROCESS_LOCK:
            self._process = subprocess.Popen([sys.executable, "-m", self._module], env=environment)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """Wait until the worker process has ended, then let every request to it fail."""
        self._process.wait()
        # This is a loop, because the runner may send another request after the connection was aborted.
        while not self._stopping:
            self.control_conn.abort(RuntimeError(WORKER_DIED))
            self.data_conn.close()
            time.sleep(_ABORT_EVERY_SECONDS)

    def stop_worker(self) -> None:
        """Wait until the process exits by itself, at most GRACE_SECONDS. Then kill it."""
        self._stopping = True
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
