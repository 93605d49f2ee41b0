"""Local directories that stand for a run's directory at a URL, such as ``s3://bucket/run``.

A run at a URL is written in a working directory on this machine, which is uploaded in the background. Whoever
only reads the run (an evaluation, a conversion) uses a second directory, so that it never disturbs a run of
the same machine. Both lie in the cache (``BERTDATA_CACHE``, or ``~/.cache/bertdata``) and have the same names
in every process::

    runs/bucket-run-1f0c8a9e/work/      written by the run
    runs/bucket-run-1f0c8a9e/copy/      downloaded by readers

A file ``uploaded.json`` next to them holds the ``state.json`` of the newest checkpoint that this machine has
uploaded. If it still is the newest of the store, no other run has written there since, and later checkpoints
that are only in the working directory belong to the run.
"""

import re
from hashlib import md5
from pathlib import Path

from bertdata.io.assets import find_cache_directory

_LONGEST_NAME = 60
"""Characters of the URL that the directory's name shows, so that the name fits any file system."""


def find_working_folder(url: str) -> Path:
    """Return the local directory in which a run at this URL is written."""
    return _find_folder(url) / "work"


def find_upload_note(working_folder: Path) -> Path:
    """Return the path of the note about the newest checkpoint that a working directory's run has uploaded."""
    return working_folder.with_name("uploaded.json")


def find_copies_folder(url: str) -> Path:
    """Return the local directory into which readers download parts of the run at this URL."""
    return _find_folder(url) / "copy"


def _find_folder(url: str) -> Path:
    """Return the directory of the cache that belongs to the URL."""
    url = url.rstrip("/")
    readable = re.sub(r"[^\w.-]+", "-", url.partition("://")[2])[-_LONGEST_NAME:].strip("-")
    digest = md5(url.encode(), usedforsecurity=False).hexdigest()[:8]
    return find_cache_directory() / "runs" / f"{readable}-{digest}"
