"""The same bytes whatever runs the command: workers, hash seed, locale, order, interpreter, a second run."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bertdata import _native
from tests.support.paths import ROOT

RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
VERSIONS = sorted({"3.10", "3.11", "3.12", "3.13", RUNNING}, key=lambda version: int(version.split(".")[1]))
SETTINGS = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=2")


@pytest.fixture(scope="module")
def parts(corpus: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three parts of the corpus's first articles, each of another size; one has a name that is not ASCII."""
    directory = tmp_path_factory.mktemp("parts")
    paths = [directory / name for name in ("part-b", "Part-a", "part-ç-字")]
    for number, (path, source) in enumerate(zip(paths, corpus, strict=True), 2):
        articles = source.read_text(encoding="utf-8").split("\n\n")
        path.write_text("\n\n".join(articles[:number]) + "\n", encoding="utf-8")
    return paths


def run(
    parts: list[Path],
    vocabulary: Path,
    output: Path,
    *flags: str,
    python: str = sys.executable,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """``bertdata create`` in a process of its own, in the environment given and no other."""
    command = [python, "-m", "bertdata", "create", *map(os.fspath, parts), *SETTINGS, *flags]
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))
    }
    return subprocess.run(
        [*command, f"--output={output}", f"--vocab={vocabulary}"],
        env={**inherited, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **(environment or {})},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        cwd=vocabulary.parent,
        timeout=300,
    )


def create(*arguments: Any, **options: Any) -> dict[str, bytes]:
    """The files that ``run`` makes, by name."""
    done = run(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return files_of(arguments[2])


def files_of(directory: Path) -> dict[str, bytes]:
    files = {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }
    shards = sum(name.endswith(".tfrecord") for name in files)
    assert len(files) == 2 * shards + 3, "shards, lengths, vocabulary, manifest, md5 sums, nothing left over"
    return files


@pytest.fixture(scope="module")
def expected(parts, small_vocabulary_file, tmp_path_factory) -> dict[str, bytes]:
    return create(parts, small_vocabulary_file, tmp_path_factory.mktemp("expected") / "out", "--workers=1")


@pytest.mark.parametrize("workers", [2, 3])
def test_any_number_of_workers_makes_the_same_bytes(
    workers, expected, parts, small_vocabulary_file, tmp_path
):
    found = create(parts, small_vocabulary_file, tmp_path / "out", f"--workers={workers}")
    assert found == expected


ENVIRONMENTS = [  # each value in one of as few as can be
    {"PYTHONHASHSEED": "0", "LC_ALL": "C", "PYTHONOPTIMIZE": "2"},
    {"PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8", "TZ": "Asia/Kathmandu"},
    {"PYTHONHASHSEED": "random", "LC_ALL": "POSIX"},
]
ASCII_ONLY = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


@pytest.mark.parametrize(
    "environment", ENVIRONMENTS, ids=lambda found: " ".join(f"{k}={v}" for k, v in found.items())
)
def test_any_environment_makes_the_same_bytes(environment, expected, parts, small_vocabulary_file, tmp_path):
    found = create(parts, small_vocabulary_file, tmp_path / "out", "--workers=1", environment=environment)
    assert found == expected


def test_a_locale_that_python_takes_for_ascii_makes_the_same_bytes(parts, small_vocabulary_file, tmp_path):
    ascii_names = [part for part in parts if part.name.isascii()]
    expected = create(ascii_names, small_vocabulary_file, tmp_path / "expected", "--workers=1")
    found = create(
        ascii_names, small_vocabulary_file, tmp_path / "out", "--workers=1", environment=ASCII_ONLY
    )
    assert found == expected


def test_a_name_that_cannot_be_read_as_utf8_is_refused(parts, small_vocabulary_file, tmp_path):
    done = run(parts, small_vocabulary_file, tmp_path / "out", environment=ASCII_ONLY)
    assert done.returncode == 2
    assert done.stderr.endswith(
        "the name is not UTF-8, or not seen as such; rename it, or set LC_ALL=C.UTF-8\n"
    )
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_order_of_the_inputs_does_not_count(expected, parts, small_vocabulary_file, tmp_path):
    assert create(parts[::-1], small_vocabulary_file, tmp_path / "out", "--workers=2") == expected


def test_the_directory_of_the_inputs_does_not_count(expected, parts, small_vocabulary_file, tmp_path):
    moved = [tmp_path / str(number) / part.name for number, part in enumerate(parts)]
    for part, place in zip(parts, moved, strict=True):
        place.parent.mkdir()
        shutil.copy(part, place)
    assert create(moved, small_vocabulary_file, tmp_path / "out", "--workers=1") == expected


def test_a_second_run_changes_nothing(expected, parts, small_vocabulary_file, tmp_path):
    output = tmp_path / "out"
    create(parts, small_vocabulary_file, output, "--workers=2")
    before = {path: path.stat().st_mtime_ns for path in output.glob("*.tfrecord")}
    assert create(parts, small_vocabulary_file, output, "--workers=2") == expected
    assert {path: path.stat().st_mtime_ns for path in output.glob("*.tfrecord")} == before


def test_a_second_run_makes_what_is_missing_or_damaged(expected, parts, small_vocabulary_file, tmp_path):
    output = tmp_path / "out"
    create(parts, small_vocabulary_file, output, "--workers=1")
    (output / f"{parts[0].name}.tfrecord").unlink()
    (output / f"{parts[1].name}.tfrecord").write_bytes(b"damaged")
    assert create(parts, small_vocabulary_file, output, "--workers=1") == expected


@cache
def find_interpreter(version: str) -> str | None:
    """An interpreter of that version that runs: the one that runs this, one of pyenv's, one on the path."""
    if version == RUNNING:
        return sys.executable
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [str(path) for path in sorted(versions.glob(f"{version}.*/bin/python"))]
    for candidate in [*candidates, shutil.which(f"python{version}")]:
        if candidate is None:
            continue
        script = "import sys; print('%d.%d' % sys.version_info[:2])"
        try:
            answer = subprocess.run([candidate, "-c", script], capture_output=True, text=True, timeout=60)
        except OSError:
            continue
        if answer.returncode == 0 and answer.stdout.strip() == version:
            return candidate
    return None


@pytest.mark.parametrize("version", VERSIONS)
def test_every_python_makes_the_same_bytes(version, expected, parts, small_vocabulary_file, tmp_path):
    python = find_interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} found")
    found = create(
        parts, small_vocabulary_file, tmp_path / "out", "--engine=python", "--workers=1", python=python
    )
    assert found == expected


@pytest.mark.skipif(not _native.available(), reason="the kernels are not built")
def test_several_workers_of_the_python_engine_make_the_same_bytes(
    expected, parts, small_vocabulary_file, tmp_path
):
    found = create(parts, small_vocabulary_file, tmp_path / "out", "--engine=python", "--workers=2")
    assert found == expected
