"""Revisions of a dump's pages, counted: a dump of histories has several of a page.

Twin of _native/wiki/revisions.h.
"""

from bertdata._native import Engine, kernels, use_native

_TAG = b"<revision>"


def count_revisions(data: bytes, engine: Engine) -> int:
    """Return the number of revisions in the data. Text in a dump is escaped, so each tag is one."""
    if use_native(engine):
        found: int = kernels.count_revisions(data)
        return found
    return data.count(_TAG)


def has_several(page: bytes) -> bool:
    """Return whether the page holds more than one revision."""
    return page.count(_TAG) > 1
