"""Watching of jobs on a job server that run longer than Beam's time limit for a request to it.

Beam asks a job server (of Flink or Spark, for example) for a job's states and messages. The answers to such a
request arrive as long as the job runs, but Beam gives them the same time limit as all other requests
(``--job_server_timeout``, 300 s). Without this module, Beam would take a longer job for a failed job, and
would stop its local workers.
"""

from collections.abc import Callable, Iterator
from typing import Any


def renew_expired_requests(result: Any) -> None:
    """Make a running job's result repeat its requests to the job server whenever their time limit has passed.

    Results of runners without a job server are not changed.

    result: what ``pipeline.run()`` returned.
    """
    from apache_beam.portability.api import beam_job_api_pb2
    from apache_beam.runners.portability.portable_runner import PipelineResult

    if not isinstance(result, PipelineResult):
        return
    server, job = result._job_service, result._job_id

    def open_states() -> Any:
        """Open a new stream of the job's states."""
        return server.GetStateStream(beam_job_api_pb2.GetJobStateRequest(job_id=job))

    def open_messages() -> Any:
        """Open a new stream of the job's messages."""
        return server.GetMessageStream(beam_job_api_pb2.JobMessagesRequest(job_id=job))

    result._state_stream = resume_stream(result._state_stream, open_states)
    result._message_stream = resume_stream(result._message_stream, open_messages)


def resume_stream(stream: Iterator[Any], again: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Yield the items of a job server's stream. When its time limit has passed, go on with a new stream.

    Any other error of the stream is raised.

    again: function that opens a new stream.
    """
    import grpc

    try:
        yield from stream
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
            raise
    else:
        return
    yield from again()
