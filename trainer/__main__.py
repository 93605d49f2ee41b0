"""Entry point of ``python -m trainer COMMAND ...`` and of the console script."""

import signal
import sys


def run() -> int:
    """Run the command line as this process's program. Return the exit status.

    Ctrl-C while modules are imported ends the process without a traceback. After the command SIGINT is
    ignored, because a second Ctrl-C may come while the first Ctrl-C is reported or while Python shuts down.
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
    """Run a command line of the trainer from other Python code. Return the exit status.
    arguments: the words after ``python -m trainer``. None: those of this process.
    """
    from trainer.program import main as run_command

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(run())
