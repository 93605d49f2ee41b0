"""``python -m bertdata``, and the console script."""

import gc
import signal
import sys

_NEW_OBJECTS = 50_000
"""New objects after which Python looks for garbage among them; nearly all are freed without that."""


def run() -> int:
    """Run the command line as this process's program. Returns the exit status.

    SIGINT ends the process without a traceback while modules are imported, and is ignored once the command
    has ended: its exit status is settled, and Python's own shutdown must not be cut short.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_NEW_OBJECTS, 20, 20)
    from bertdata.cli.main import main

    try:
        signal.signal(signal.SIGINT, handler)
        return main()
    except KeyboardInterrupt:  # just before main begins, or just after it has ended
        return 128 + signal.SIGINT
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.freeze()  # the process ends: it need not look for garbage, which takes as long as a small command


if __name__ == "__main__":
    sys.exit(run())
