"""Installs the packages that extras of this project need, without building the installed checkout again.

python tools/install_extras.py [any option of pip install] EXTRA ...
"""

import importlib.metadata
import subprocess
import sys
from collections.abc import Sequence

from packaging.requirements import Requirement


def main(arguments: Sequence[str]) -> int:
    """Run pip install for the packages that the extras need. Return its exit status."""
    wanted = [word for word in arguments if word in list_extras()]
    options = [word for word in arguments if word not in wanted]
    command = [sys.executable, "-m", "pip", "install", *options, *list_requirements(wanted)]
    return subprocess.run(command, check=False).returncode


def list_requirements(extras: Sequence[str]) -> list[str]:
    """Return the packages that the extras need on this machine, as requirements for pip."""
    found = []
    for line in _find_checkout().requires or []:
        requirement = Requirement(line)
        marker, requirement.marker = requirement.marker, None
        if marker is not None and any(marker.evaluate({"extra": extra}) for extra in extras):
            found.append(str(requirement))
    return found


def list_extras() -> list[str]:
    """Return the names of all extras of this project."""
    return _find_checkout().metadata.get_all("Provides-Extra") or []


def _find_checkout() -> importlib.metadata.Distribution:
    """Return the installed package that has the command bertdata, as Python's metadata describe it."""
    for found in importlib.metadata.distributions():
        if any(entry.group == "console_scripts" and entry.name == "bertdata" for entry in found.entry_points):
            return found
    raise SystemExit("install_extras: error: bertdata is not installed: pip install --editable .")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
