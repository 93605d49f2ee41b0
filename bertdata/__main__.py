"""Entry point of ``python -m bertdata`` and of the console script."""

import gc
import signal
import sys

_NEW_OBJECTS = 50_000
"""Number of new objects after which Python's garbage collector runs.

Python's default is so low that the collector would run often and find hardly anything, because reference
counting already frees nearly all objects.
"""


def run() -> int:
    """Run the command line of this process and return its exit status.

    While modules are being imported, Ctrl-C ends the process without a traceback. Once the command has ended,
    Ctrl-C is ignored, because the exit status is already decided and Python's shutdown must not be
    interrupted.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_NEW_OBJECTS, 20, 20)
    from bertdata.cli.main import main

    try:
        signal.signal(signal.SIGINT, handler)
        return main()
    except KeyboardInterrupt:  # Ctrl-C outside of main's own handling
        return 128 + signal.SIGINT
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.freeze()  # skips the garbage collection at exit, which can take as long as a small command


if __name__ == "__main__":
    sys.exit(run())
