"""``python -m trainer COMMAND ...``, and the console script."""

import signal
import sys


def run() -> int:
    """Run the command line as this process's program. Returns the exit status.

    SIGINT ends the process without a traceback while modules are imported. A second one may come while the
    first is told, or while Python shuts down.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from trainer.program import main as run_command

    try:
        signal.signal(signal.SIGINT, handler)
        return run_command()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def main(arguments: list[str] | None = None) -> int:
    """Run one command within a program. Returns its exit status."""
    from trainer.program import main as run_command

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(run())
