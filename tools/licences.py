"""Lists the licences of all packages that this project's extras install, as the packages' own metadata say.

Usage: ``python tools/licences.py [EXTRA ...]`` (default: all). Each line has the name of a package, a tab and
its licence. Packages that are not installed on this machine are left out.
"""

import importlib.metadata
import sys
from collections.abc import Iterator, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "bertdata-toolkit"


def list_packages(
    extras: Sequence[str], *, project: str = PROJECT
) -> dict[str, importlib.metadata.Distribution]:
    """Return the installed packages, by name, that a project with these extras needs, directly or not."""
    found = dict[str, importlib.metadata.Distribution]()
    due = [(project, frozenset(extras))]
    seen = set[tuple[str, frozenset[str]]]()
    while due:
        name, wanted = due.pop()
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if name != project:
            found[canonicalize_name(name)] = package
        for needed in _list_requirements(package, wanted):
            if needed not in seen:
                seen.add(needed)
                due.append(needed)
    return dict(sorted(found.items()))


def _list_requirements(
    package: importlib.metadata.Distribution, extras: frozenset[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the name and the extras of each package that a package with these extras needs here."""
    for line in package.requires or []:
        needed = Requirement(line)
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            yield canonicalize_name(needed.name), frozenset(needed.extras)


def find_licence(package: importlib.metadata.Distribution) -> str:
    """Return the licence that a package states: an SPDX expression, else classifiers, else a line of text."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classifiers = [line for line in metadata.get_all("Classifier") or [] if line.startswith("License :: ")]
    if names := [line.rpartition(" :: ")[2] for line in classifiers if line != "License :: OSI Approved"]:
        return " AND ".join(names)
    return str(metadata.get("License") or "").strip().partition("\n")[0]


def main(extras: Sequence[str]) -> int:
    """Print the packages and their licences. Return the exit status."""
    for name, package in list_packages(extras or ["all"]).items():
        print(f"{name}\t{find_licence(package)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
