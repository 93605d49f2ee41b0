"""The limit on the number of files that this process may have open."""

from collections.abc import Iterator
from contextlib import contextmanager

from bertdata.errors import SettingsError

_EXTRA_FILES = 256
"""Number of open files to allow besides the requested number: libraries and the pipes of workers need some.
"""


@contextmanager
def allow_open_files(count: int, remedy: str = "raise ulimit -Hn") -> Iterator[None]:
    """Allow this process to open ``count`` more files during the block, by raising its soft limit.

    remedy: what the user can do if the hard limit is lower. SettingsError is then raised, and says it.
    """
    try:
        import resource
    except ModuleNotFoundError:  # a system without these limits
        yield
        return
    kind, needed = resource.RLIMIT_NOFILE, count + _EXTRA_FILES
    soft, hard = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        yield
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise SettingsError(f"{needed} files must be open at once, allowed are {hard}; {remedy}")
    resource.setrlimit(kind, (needed, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))
