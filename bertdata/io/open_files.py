"""The number of files that this process may have open at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from bertdata.errors import SettingsError

_OTHERS = 256
"""Files of the process beside those that are asked for: libraries, pipes of its workers."""


@contextmanager
def many_open_files(count: int) -> Iterator[None]:
    """Raise the process's own limit to so many more open files. SettingsError where the system's is lower."""
    try:
        import resource
    except ModuleNotFoundError:  # a system without such limits
        yield
        return
    kind, needed = resource.RLIMIT_NOFILE, count + _OTHERS
    soft, hard = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        yield
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise SettingsError(f"{needed} files must be open at once, allowed are {hard}; raise ulimit -Hn")
    resource.setrlimit(kind, (needed, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))
