"""The pipeline's program as a process of its own."""

import os
import subprocess
from collections.abc import Sequence

from tests.support.fork_server import forking_python
from tests.support.paths import ROOT


def prepare_in_new_process(words: Sequence[object]) -> subprocess.CompletedProcess[str]:
    """Run ``python -m beam_pipelines.prepare`` to its end."""
    return subprocess.run(
        [forking_python("beam"), "-m", "beam_pipelines.prepare", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
