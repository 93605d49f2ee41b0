"""The script of ``make horovod``: the kept wheel, what is asked for, errors for missing programs."""

import importlib
import importlib.metadata
import shutil
import sys

import pytest
from packaging.tags import sys_tags

from bertdata.errors import MissingExtraError
from tests.support.paths import ROOT


@pytest.fixture(autouse=True)
def usual_compiler(monkeypatch):
    """The tests choose the compiler, whatever the environment says."""
    monkeypatch.delenv("CXX", raising=False)


@pytest.fixture
def script(monkeypatch, tmp_path):
    """The script, with an empty cache."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HOROVOD_GPU_OPERATIONS", raising=False)
    return importlib.import_module("install_horovod")


@pytest.fixture
def commands(script, monkeypatch):
    """The commands that the script would run."""
    seen = []
    monkeypatch.setattr(script, "run_pip", lambda *words: seen.append(words))
    monkeypatch.setattr(script, "run_command", lambda command, *_: seen.append(tuple(command)))
    return seen


def test_a_kept_wheel_is_installed_and_nothing_built(script, commands, monkeypatch):
    tag = next(iter(sys_tags()))
    monkeypatch.setattr(script, "find_installed_wheel", lambda: "")
    kept = script.find_wheel_directory()
    kept.mkdir(parents=True)
    (kept / "horovod-0.28.1-cp27-cp27m-linux_x86_64.whl").touch()
    assert script.find_kept_wheel() is None
    wheel = kept / f"horovod-0.28.1-{tag}.whl"
    wheel.touch()
    script.install_wheel(["-c", "constraints.txt"])
    assert [command[0] for command in commands[:2]] == ["uninstall", "install"]
    assert commands[1] == ("install", "-c", "constraints.txt", str(wheel))
    monkeypatch.setattr(script, "find_installed_wheel", wheel.as_uri)
    commands.clear()
    script.install_wheel([])
    assert commands == []


@pytest.mark.parametrize(("asked", "checked"), [("", False), ("NCCL", True)])
def test_the_installed_wheel_is_loaded_and_asked_for_what_it_should_have(
    script, commands, monkeypatch, tmp_path, asked, checked
):
    monkeypatch.setenv("HOROVOD_GPU_OPERATIONS", asked)
    monkeypatch.setattr(script, "find_installed_wheel", lambda: None)
    monkeypatch.setattr(script, "build_wheel", lambda kept, operations: tmp_path / f"for-{operations}.whl")
    script.install_wheel([])
    install, load = commands
    assert install == ("install", str(tmp_path / f"for-{asked}.whl"))
    assert "gloo_built()" in load[-1]
    assert ("nccl_built()" in load[-1]) is checked


def test_each_python_torch_and_kind_has_a_wheel_of_its_own(script, monkeypatch):
    names = []
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    for version in ("2.13.0+cpu", "2.14.0"):
        monkeypatch.setattr(importlib.metadata, "version", lambda _, version=version: version)
        names.append(script.find_wheel_directory().name)
    monkeypatch.setenv("HOROVOD_GPU_OPERATIONS", "NCCL")
    names.append(script.find_wheel_directory().name)
    assert names == [
        f"horovod-0.28.1-{python}-torch-{what}" for what in ("2.13.0+cpu-gloo", "2.14.0-gloo", "2.14.0-nccl")
    ]


def test_another_library_for_gpus_is_refused(script, monkeypatch, capsys):
    monkeypatch.setenv("HOROVOD_GPU_OPERATIONS", "MPI")
    assert script.main([]) == 2
    assert capsys.readouterr().err == (
        "install_horovod: error: HOROVOD_GPU_OPERATIONS=MPI: expected NCCL, or nothing for processors\n"
    )


def test_a_missing_compiler_is_named(script, monkeypatch, capsys):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert script.main([]) == 2
    assert capsys.readouterr().err == (
        "install_horovod: error: no-such-compiler: no such program; "
        "a C++ compiler and make are needed to build Horovod\n"
    )


def test_a_missing_torch_is_named(script, monkeypatch):
    def nothing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", nothing)
    with pytest.raises(MissingExtraError, match="torch is not installed"):
        script.find_wheel_directory()


def test_a_failing_pip_is_quoted(script, monkeypatch, capsys):
    monkeypatch.setattr("horovod_build.find_standard", lambda: 17)
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    assert script.main([]) == 1
    assert capsys.readouterr().err == "install_horovod: error: pip install failed\n"
