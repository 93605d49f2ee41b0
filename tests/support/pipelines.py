"""Runs of the Beam pipeline, and of the ``bertdata`` commands that have the same result."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from beam_pipelines.prepare import main
from bertdata.cli.main import main as command_line
from tests.support.commands import contents
from tests.support.fork_server import forking_python
from tests.support.paths import EXTRACTED, ROOT

SMALL = ("--max-seq-length", "64", "--max-predictions-per-seq", "10", "--dupe-factor", "1")
SHARDS = ("--training-shards", "3", "--test-shards", "2")
NVIDIA = ("--text-recipe", "nvidia", *SHARDS)
PROCESSES = ("--direct_running_mode", "multi_processing", "--direct_num_workers", "2")


def words(parts: Sequence[Path], vocabulary: Path, output: Path, *flags: str) -> list[str]:
    """Return the pipeline's arguments."""
    return ["--input", *map(str, parts), "--output", str(output), "--vocab", str(vocabulary), *flags]


def prepare(parts: list[Path], vocabulary: Path, output: Path, *flags: str) -> int:
    """Run the pipeline in this process. Returns its exit status."""
    return main(words(parts, vocabulary, output, *flags))


def write_articles(directory: Path, articles_per_file: int) -> Path:
    """Write the golden dump's articles to files with a few articles each, as wikiextractor would."""
    whole = (EXTRACTED / "AA" / "wiki_00").read_bytes()
    found = re.findall(rb"<doc .*?</doc>\n", whole, re.DOTALL)
    (directory / "AA").mkdir(parents=True)
    for number, start in enumerate(range(0, len(found), articles_per_file)):
        data = b"".join(found[start : start + articles_per_file])
        (directory / "AA" / f"wiki_{number:02d}").write_bytes(data)
    return directory


def prepare_in_new_process(words: Sequence[object]) -> subprocess.CompletedProcess[str]:
    """Run ``python -m beam_pipelines.prepare`` in a new process until it ends."""
    return subprocess.run(
        [forking_python("beam"), "-m", "beam_pipelines.prepare", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


def commands(
    source: Path,
    vocabulary: Path,
    place: Path,
    segment: tuple[str, ...],
    create: tuple[str, ...],
    extract: tuple[str, ...] | None = None,
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Run the extract, segment and create commands. Returns the text files and the datasets' files, by name.

    Files of the test shards' datasets are named test/NAME.

    source: a dump or a directory of articles.
    extract: flags of the extraction. None: the flags that the pipeline would choose for the recipe.
    """
    text, shards = place / "text", place / "shards"
    if source.is_file():
        default = ("--extractor", "3.1.0" if "google" in create else "mlperf")
        words = ["extract", str(source), "--output", str(text / "extracted"), "--workers", "1"]
        assert command_line([*words, *(default if extract is None else extract)]) == 0
        source = text / "extracted"
    segment = tuple("--recipe" if word == "--text-recipe" else word for word in segment)
    assert command_line(["segment", str(source), "--output", str(text), "--workers", "1", *segment]) == 0
    common = ["--vocab", str(vocabulary), "--workers", "1", *create]
    assert command_line(["create", str(text), "--output", str(shards), *common]) == 0
    if list(text.glob("*_test_*.txt")):
        words = ["create", f"{text}/*_test_*.txt", "--output", str(held_out_beside(shards)), *common]
        assert command_line(words) == 0
    return contents(text), made_datasets(shards)


def held_out_beside(output: Path) -> Path:
    """Return the directory of the test shards' dataset, which is next to the output."""
    return output.with_name(f"{output.name}.test")


def made_datasets(output: Path) -> dict[str, bytes]:
    """Return the dataset's files by name, and the files of its test set as test/NAME."""
    held_out = contents(held_out_beside(output))
    return contents(output) | {f"test/{name}": data for name, data in held_out.items()}
