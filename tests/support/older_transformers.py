"""Older releases of transformers, each installed in a separate folder of the environment, for thorough tests.

    python tests/support/older_transformers.py     installs the oldest and the newest (``make`` calls it)

The releases are listed in older-transformers.txt. They share torch, numpy and other packages with the
environment.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

_LIST = Path(__file__).with_name("older-transformers.txt")
_INSTALLED = Path(sys.prefix) / "older-transformers"
_EVERY = "BERTDATA_EVERY_TRANSFORMERS"


def listed_versions() -> dict[str, list[str]]:
    """Return the requirements of each release by its version, oldest first."""
    lines = _LIST.read_text(encoding="utf-8").splitlines()
    found = [line.split() for line in lines if line and not line.startswith("#")]
    return {words[0].removeprefix("transformers=="): words for words in found}


def versions_to_try() -> list[str]:
    """Return the versions to test: the oldest and the newest.

    If the environment variable BERTDATA_EVERY_TRANSFORMERS is 1, return all versions.
    """
    versions = list(listed_versions())
    return versions if os.environ.get(_EVERY) else [versions[0], versions[-1]]


def run_with(version: str, code: str, *arguments: str | Path) -> Any:
    """Run a Python program with a version of transformers. Returns the JSON on the last line that it prints.

    AssertionError with the program's errors if it fails.

    code: the program's text, or a module's name (``tests.support.NAME``). Its arguments are in
        ``sys.argv[1:]``.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(install(version)), str(ROOT)]),
        "USE_TF": "0",  # TensorFlow's import takes longer than all else
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TOKENIZERS_PARALLELISM": "false",
    }
    is_module = re.fullmatch(r"[\w.]+", code)
    command = [sys.executable, "-m" if is_module else "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"transformers {version}: {done.stderr[-3000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def install(version: str) -> Path:
    """Return the folder of a version, after installing it if it is missing."""
    folder = _INSTALLED / version
    _INSTALLED.mkdir(exist_ok=True)
    # Tests run in several processes: one installs, the others wait. The folder appears when it is complete.
    with (_INSTALLED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            growing = tempfile.mkdtemp(dir=_INSTALLED)
            try:
                _pip_install(listed_versions()[version], growing)
                Path(growing).rename(folder)
            finally:
                shutil.rmtree(growing, ignore_errors=True)
    return folder


def _pip_install(requirements: list[str], folder: str) -> None:
    """Install the requirements without their dependencies, which the environment already has."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
    done = subprocess.run([*command, *requirements], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"pip cannot install {' '.join(requirements)}: {done.stderr.strip()}")


if __name__ == "__main__":
    for tested in versions_to_try():
        try:
            install(tested)
        except RuntimeError as error:
            sys.exit(str(error))
