"""What a person sees of a run's log: our warnings, and not Beam's account of its own workings."""

import logging
import sys

from beam_pipelines.options import PROGRAM


def show_warnings() -> None:
    """Print our own warnings on standard error, and no one else's."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(f"{PROGRAM}: warning: %(message)s"))
    handler.setLevel(logging.WARNING)
    handler.addFilter(logging.Filter("beam_pipelines"))
    logging.getLogger().handlers[:] = [handler]
