"""What a person sees of a pipeline's log: our warnings, and not Beam's account of its own workings."""

import logging
import sys

from beam_pipelines.options import PROGRAM

_OURS = "beam_pipelines"
_FORWARDED = "apache_beam.runners.portability.local_job_service"
"""The logger under which Beam passes on what its local worker processes log."""


def show_warnings() -> None:
    """Print our warnings on standard error, also those of local worker processes."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(f"{PROGRAM}: warning: %(message)s"))
    handler.setLevel(logging.WARNING)
    handler.addFilter(is_ours)
    logging.getLogger().handlers[:] = [handler]


def is_ours(record: logging.LogRecord) -> bool:
    """Whether the record comes from our stages; one that a worker process sent is unpacked."""
    if record.name == _FORWARDED and isinstance(record.args, tuple) and len(record.args) == 1:
        from apache_beam.portability.api.beam_fn_api_pb2 import LogEntry
        from google.protobuf import text_format

        entry = text_format.Parse(str(record.args[0]), LogEntry())
        record.msg, record.args = entry.message, ()
        return _OURS in entry.log_location
    return record.name.startswith(_OURS)
