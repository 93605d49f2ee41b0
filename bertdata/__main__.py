"""``python -m bertdata``, and the console script."""

import signal
import sys


def run() -> int:
    """Run the command line as this process's program; the exit status.

    SIGINT ends the process without a traceback while modules are imported, and is ignored once the command
    has ended: its exit status is settled, and Python's own shutdown must not be cut short.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bertdata.cli.main import main

    try:
        signal.signal(signal.SIGINT, handler)
        return main()
    except KeyboardInterrupt:  # just before main begins, or just after it has ended
        return 128 + signal.SIGINT
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(run())
