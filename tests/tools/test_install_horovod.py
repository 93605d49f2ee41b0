"""The script of ``make horovod``: the patch, the kept wheel, errors for missing programs."""

import importlib.metadata
import importlib.util
import shutil

import pytest
from packaging.tags import sys_tags

from bertdata.errors import AssetError, MissingExtraError
from tests.support.launching import ROOT


@pytest.fixture
def script(monkeypatch, tmp_path):
    """The script, with an empty cache."""
    specification = importlib.util.spec_from_file_location(
        "install_horovod", ROOT / "tools" / "install_horovod.py"
    )
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HOROVOD_GPU_OPERATIONS", raising=False)
    return module


@pytest.fixture
def commands(script, monkeypatch):
    """The commands that the script would run."""
    seen = []
    monkeypatch.setattr(script, "_run", lambda command, *_, **__: seen.append(command))
    return seen


def test_the_patch_changes_one_line_of_each_file(script, tmp_path):
    for name in script.PATCHED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before\n    set(CMAKE_CXX_STANDARD 14)\nafter\n")
    script.patch(tmp_path)
    for name in script.PATCHED:
        assert (tmp_path / name).read_text() == "before\n    set(CMAKE_CXX_STANDARD 17)\nafter\n"
    with pytest.raises(AssetError, match="CMakeLists.txt: 0 lines .*expected one"):
        script.patch(tmp_path)


def test_a_kept_wheel_is_installed_and_nothing_built(script, commands, monkeypatch):
    tag = next(iter(sys_tags()))
    monkeypatch.setattr(script, "installed_from", lambda: "")
    kept = script.wheel_directory()
    kept.mkdir(parents=True)
    (kept / "horovod-0.28.1-cp27-cp27m-linux_x86_64.whl").touch()
    assert script.kept_wheel() is None
    wheel = kept / f"horovod-0.28.1-{tag}.whl"
    wheel.touch()
    script.install(["-c", "constraints.txt"])
    assert [command[3] for command in commands[:2]] == ["uninstall", "install"]
    assert commands[1][-3:] == ["-c", "constraints.txt", str(wheel)]
    monkeypatch.setattr(script, "installed_from", wheel.as_uri)
    commands.clear()
    script.install([])
    assert commands == []


def test_each_torch_has_a_wheel_of_its_own(script, monkeypatch):
    names = []
    for version in ("2.13.0+cpu", "2.14.0"):
        monkeypatch.setattr(importlib.metadata, "version", lambda _, version=version: version)
        names.append(script.wheel_directory().name)
    monkeypatch.setenv("HOROVOD_GPU_OPERATIONS", "NCCL")
    names.append(script.wheel_directory().name)
    assert names == [f"horovod-0.28.1-torch-{what}" for what in ("2.13.0+cpu", "2.14.0", "2.14.0-nccl")]


def test_a_missing_compiler_is_named(script, monkeypatch, capsys):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert script.main([]) == 2
    assert capsys.readouterr().err == (
        "install_horovod: error: no-such-compiler: no such program; "
        "a C++17 compiler and make are needed to build Horovod\n"
    )


def test_a_missing_torch_is_named(script, monkeypatch):
    def nothing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", nothing)
    with pytest.raises(MissingExtraError, match="torch is not installed"):
        script.wheel_directory()


def test_a_failing_pip_is_quoted(script, monkeypatch, capsys):
    monkeypatch.setattr(script.sys, "executable", shutil.which("false"))
    monkeypatch.setattr(script.shutil, "which", lambda name: name)
    assert script.main([]) == 1
    assert capsys.readouterr().err == "install_horovod: error: pip install failed\n"
