"""The warning that a finished directory was made again because its inputs have changed.

A run with the same settings and the same names of inputs continues an earlier run. If the content of an input
has changed since, the files made from it are made again, which replaces the earlier files.
"""

from collections.abc import Mapping

_MOST_NAMES = 3


def make_changed_warnings(directory: str, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a warning if inputs have changed since the directory was finished. Otherwise the list is empty.

    before: md5 of each input by name, from the manifest that the directory had before this run. Empty if the
        directory was not finished.
    now: md5 of each input by name.
    """
    changed = [name for name, md5 in now.items() if before.get(name, md5) != md5]
    if not changed:
        return []
    more = f" and {len(changed) - _MOST_NAMES} more" if len(changed) > _MOST_NAMES else ""
    names = f"{', '.join(changed[:_MOST_NAMES])}{more}"
    return [
        f"{directory}: the content of {names} has changed since an earlier run; what was made from it "
        "before is replaced"
    ]
