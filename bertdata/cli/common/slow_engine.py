"""The line that every program prints if the C++ kernels are not built."""

from bertdata._native import available
from bertdata.io.terminal import say_error


def warn_about_slow_engine(program: str) -> None:
    """Print a line to standard error if the C++ kernels are not built, so that Python does their work.

    A common cause: the package was installed from a source tree without ``--editable``, and Python then
    imports the source tree itself, in which no kernels were built.

    program: name of the program, printed before the message.
    """
    if not available():
        say_error(
            f"{program}: the native engine is not built here; running the slow Python engine. To build it in "
            "a source tree: pip install --editable ."
        )
