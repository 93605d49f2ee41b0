"""Watching of portable jobs that run longer than Beam's time limit for requests.

Beam asks a job server for a job's states and messages with the same time limit as for all other requests
(``--job_server_timeout``, 300 s). Beam would take a longer job for a failed one, and stop its local workers.
"""

from collections.abc import Callable, Iterator
from typing import Any


def watch_to_the_end(result: Any) -> None:
    """Make the result of a portable runner repeat its request whenever the time limit has passed.

    The results of other runners are not changed.
    """
    from apache_beam.portability.api import beam_job_api_pb2
    from apache_beam.runners.portability.portable_runner import PipelineResult

    if not isinstance(result, PipelineResult):
        return
    server, job = result._job_service, result._job_id

    def states() -> Any:
        return server.GetStateStream(beam_job_api_pb2.GetJobStateRequest(job_id=job))

    def messages() -> Any:
        return server.GetMessageStream(beam_job_api_pb2.JobMessagesRequest(job_id=job))

    result._state_stream = resume_stream(result._state_stream, states)
    result._message_stream = resume_stream(result._message_stream, messages)


def resume_stream(stream: Iterator[Any], again: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Yield the stream's items. When the request's time limit passes, continue with a new stream.

    Other errors are raised.

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
