"""The pipeline's program as a process of its own."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.fork_server import forking_python
from tests.support.paths import EXTRACTED, ROOT

SMALL = ("--max-seq-length", "64", "--max-predictions-per-seq", "10", "--dupe-factor", "1")
PROCESSES = ("--direct_running_mode", "multi_processing", "--direct_num_workers", "2")


def words(parts: Sequence[Path], vocabulary: Path, output: Path, *flags: str) -> list[str]:
    """The pipeline's arguments."""
    return ["--input", *map(str, parts), "--output", str(output), "--vocab", str(vocabulary), *flags]


def write_articles(directory: Path, articles_per_file: int) -> Path:
    """Write the golden dump's articles to a directory in files of a few, as wikiextractor would."""
    whole = (EXTRACTED / "AA" / "wiki_00").read_bytes()
    found = re.findall(rb"<doc .*?</doc>\n", whole, re.DOTALL)
    (directory / "AA").mkdir(parents=True)
    for number, start in enumerate(range(0, len(found), articles_per_file)):
        data = b"".join(found[start : start + articles_per_file])
        (directory / "AA" / f"wiki_{number:02d}").write_bytes(data)
    return directory


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
