"""Installing without a compiler, and running without kernels."""

import os
import subprocess
import sys

import pytest

from bertdata import _native
from bertdata.cli.main import main
from tests.support.paths import ROOT


def test_a_failing_compiler_does_not_fail_the_build(tmp_path):
    environment = {**os.environ, "CC": "false", "CXX": "false"}
    command = [
        sys.executable,
        "setup.py",
        "build_ext",
        f"--build-lib={tmp_path}",
        f"--build-temp={tmp_path / 'temp'}",
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*.so"))


@pytest.fixture
def without_kernels(monkeypatch):
    monkeypatch.setattr(_native, "kernels", None)
    monkeypatch.setattr(_native, "why_missing", "no module named _kernels")


def test_without_kernels_a_command_says_so_in_one_line_and_makes_the_same_bytes(
    without_kernels, capsys, corpus, small_vocabulary_file, tmp_path
):
    flags = ["--vocab", str(small_vocabulary_file), "--dupe-factor=1", "--workers=1"]
    assert main(["create", str(corpus[0]), "--output", str(tmp_path / "slow"), *flags]) == 0
    assert capsys.readouterr().err.splitlines()[0] == (
        "bertdata: the native engine is not built here; running the slow Python engine. To build it in a "
        "source tree: pip install --editable ."
    )
    fast = subprocess.run(
        [
            sys.executable,
            "-m",
            "bertdata",
            "create",
            str(corpus[0]),
            "--output",
            str(tmp_path / "fast"),
            *flags,
        ],
        cwd=ROOT,
        capture_output=True,
    )
    assert fast.returncode == 0
    for name in ("manifest.json", "MD5SUMS"):
        assert (tmp_path / "slow" / name).read_bytes() == (tmp_path / "fast" / name).read_bytes()


def test_the_native_engine_asked_for_by_name_must_be_there(without_kernels, capsys, corpus, tmp_path):
    paths = [str(corpus[0]), "--output", str(tmp_path / "o"), "--vocab", str(ROOT / "golden/vocab.txt")]
    status = main(["create", *paths, "--engine", "native", "--workers", "1"])
    assert status == 2
    assert (
        "the kernels are not built (no module named _kernels); use --engine python" in capsys.readouterr().err
    )
