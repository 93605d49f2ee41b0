"""Source package and worker image: complete, buildable, of the tested versions."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()


def run(*command: object, cwd: Path) -> str:
    """Run the command, which must succeed; its output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.thorough
def test_the_kernels_build_from_the_source_package_alone_and_make_the_same_shard(
    corpus: list[Path], tmp_path: Path
) -> None:
    python = sys.executable
    command = ("setup.py", "-q", "egg_info", "--egg-base", tmp_path, "sdist", "--dist-dir", tmp_path)
    run(python, *command, cwd=ROOT)
    (package,) = tmp_path.glob("bertdata?toolkit-*.tar.gz")
    with tarfile.open(package) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert not list(source.rglob("*.so"))
    run(python, "setup.py", "-q", "build_ext", "--inplace", cwd=source)
    where = run(python, "-c", "from bertdata import _native; print(_native.kernels.__file__)", cwd=source)
    assert Path(where.strip()).is_relative_to(source)

    part, vocabulary = corpus[0], ROOT / "golden" / "vocab.txt"
    made = []
    for place in (source, ROOT):
        output = tmp_path / f"shards-{len(made)}"
        flags = ("--output", output, "--vocab", vocabulary, "--dupe-factor", 1, "--engine", "native")
        run(python, "-m", "bertdata", "create", part, *flags, "--workers", 1, cwd=place)
        made.append((output / "MD5SUMS").read_bytes())
    assert made[0] == made[1]


def test_the_worker_image_is_of_the_tested_beam_and_python() -> None:
    (beam,) = re.findall(r"^apache-beam==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    images = re.findall(r"^FROM apache/beam_python3\.(\d+)_sdk:(\S+)", DOCKERFILE, re.MULTILINE)
    assert len(images) == DOCKERFILE.count("FROM ") == 2
    assert len(set(images)) == 1
    assert images[0][1] == beam
    first, behind = re.findall(r"\(3, (\d+)\)", (ROOT / "Makefile").read_text())  # of constraints.txt
    assert int(first) <= int(images[0][0]) < int(behind)
    assert not re.search("^(ENTRYPOINT|CMD)", DOCKERFILE, re.MULTILINE), "Beam's own starts the worker"


def test_all_that_the_worker_image_installs_is_of_a_pinned_version() -> None:
    steps = re.split(r"^RUN |&&", DOCKERFILE.replace("\\\n", ""), flags=re.MULTILINE)
    installing = [step for step in steps if re.search(r"pip (install|wheel) ", step)]
    assert len(installing) == 3
    assert all(re.search(r"--constraint /tmp/|PIP_CONSTRAINT=", step) for step in installing)
    pinned = re.findall("^([^= ]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert {"apache-beam", "cyclonedx-bom", "gcsfs", "h5py", "setuptools", "pybind11"} <= set(pinned)


def test_the_worker_image_copies_what_is_there_and_all_that_the_package_is_made_of() -> None:
    copied: set[str] = set()
    for options, words in re.findall(r"^COPY ((?:--from=\S+ )?)(.+)$", DOCKERFILE, re.MULTILINE):
        if not options:
            copied.update(words.split()[:-1])
    assert not [name for name in copied if not (ROOT / name).exists()]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert copied == {line.removeprefix("!") for line in ignored if line.startswith("!")}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} & {
        "bertdata", "beam_pipelines", "schemas", "trainer"
    }  # fmt: skip
    assert packages | {"schemas", "setup.py", "pyproject.toml", "README.md"} <= copied


def test_the_worker_image_does_not_run_as_root_and_says_what_is_in_it() -> None:
    lines = DOCKERFILE.splitlines()
    (user,) = (line.split()[1] for line in lines if line.startswith("USER "))
    assert user not in ("root", "0")
    assert f"RUN useradd --create-home {user}" in lines
    assert not [line for line in lines[lines.index(f"USER {user}") + 1 :] if line], "later lines need root"
    assert "--output-file /usr/share/bertdata.cdx.json" in DOCKERFILE


def test_every_extra_that_the_worker_image_installs_exists() -> None:
    (extras,) = re.findall(r'"\$\(ls /wheels/\*\.whl\)\[(.+)\]"', DOCKERFILE)
    declared = re.findall(r'^    "(\w+)": \[', (ROOT / "setup.py").read_text(), re.MULTILINE)
    assert set(extras.split(",")) <= set(declared)
