"""Changes to Horovod's source package, and the C++ standard that torch's headers ask for."""

import importlib
import importlib.metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from bertdata.errors import AssetError, MissingExtraError
from tests.support.paths import ROOT


@pytest.fixture(autouse=True)
def usual_compiler(monkeypatch):
    """The tests choose the compiler, whatever the environment says."""
    monkeypatch.delenv("CXX", raising=False)


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("horovod_build")


@pytest.fixture
def source(script, tmp_path):
    """A source package that holds what is changed, and nothing else."""
    for name, old, _ in script.CHANGES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        with open(tmp_path / name, "a") as file:
            file.write(f"before\n    {old}\nafter\n")
    return tmp_path


def test_each_change_is_made_once(script, source):
    script.patch_source(source, 20)
    texts = {name: (source / name).read_text() for name, _, _ in script.CHANGES}
    assert not [old for name, old, _ in script.CHANGES if old in texts[name]]
    for name in ("CMakeLists.txt", "horovod/torch/CMakeLists.txt"):
        assert "before\n    set(CMAKE_CXX_STANDARD 20)\nafter\n" in texts[name]
    assert not [text for text in texts.values() if "distutils" in text]


def test_a_gpu_build_is_made_only_if_it_is_asked_for(script, source):
    script.patch_source(source, 17)
    asked = 'NOT "$ENV{HOROVOD_GPU_OPERATIONS}" STREQUAL ""'
    assert f"if({asked})\ncheck_language(CUDA)\nelse()\n" in (source / "CMakeLists.txt").read_text()
    found = (source / "cmake/Modules/FindPytorch.cmake").read_text()
    assert "print(bool(torch.version.cuda and CUDA_HOME and '$ENV{HOROVOD_GPU_OPERATIONS}'))" in found


def test_another_source_package_is_refused(script, source):
    script.patch_source(source, 17)
    with pytest.raises(AssetError, match=r"CMakeLists.txt: 0 times 'set\(CMAKE_CXX.*', expected once"):
        script.patch_source(source, 17)


@pytest.fixture
def torch_of(monkeypatch, tmp_path):
    """Installs a torch whose headers hold these lines."""

    def install(*lines: str) -> None:
        header = tmp_path / "torch/include/torch/extension.h"
        header.parent.mkdir(parents=True)
        header.write_text("\n".join(lines) + "\n")
        there = SimpleNamespace(locate_file=lambda name: Path(tmp_path, name))
        monkeypatch.setattr(importlib.metadata, "distribution", lambda name: there)
        monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.99")

    return install


@pytest.mark.parametrize(("least", "standard"), [(201402, 17), (201703, 17), (202002, 20)])
def test_the_standard_is_the_lowest_that_torchs_headers_accept(script, torch_of, least, standard):
    torch_of(f"#if __cplusplus < {least}L", "#error too old", "#endif")
    assert script.find_standard() == standard


def test_a_compiler_that_knows_no_such_standard_is_named(script, torch_of):
    torch_of("#error C++99 is needed")
    with pytest.raises(MissingExtraError, match=r"cannot read the headers of torch 2.99 .*C\+\+99 is needed"):
        script.find_standard()


def build_environment(script, monkeypatch, tmp_path, operations):
    """The environment in which a wheel would be built."""
    seen = []

    def run(command, failure, environment=None, log=None):
        seen.append(environment)
        Path(command[-2], "horovod-0.28.1-py3-none-any.whl").touch()

    monkeypatch.setattr(script, "find_standard", lambda: 17)
    monkeypatch.setattr(script, "run_pip", lambda *words, environment=None: None)
    monkeypatch.setattr(script, "unpack_source", lambda place: place)
    monkeypatch.setattr(script, "patch_source", lambda source, standard: None)
    monkeypatch.setattr(script, "run_command", run)
    wheel = script.build_wheel(tmp_path / "kept", operations)
    assert wheel.is_file()
    assert wheel.parent == tmp_path / "kept"
    return seen[0]


def test_for_processors_nothing_of_cuda_is_asked_for(script, monkeypatch, tmp_path):
    monkeypatch.setenv("HOROVOD_GPU_ALLREDUCE", "NCCL")
    environment = build_environment(script, monkeypatch, tmp_path, "")
    assert not [name for name in environment if name.startswith("HOROVOD_GPU_")]
    assert environment["HOROVOD_WITH_GLOO"] == environment["HOROVOD_WITHOUT_NVTX"] == "1"


def test_for_gpus_the_toolkit_is_named(script, monkeypatch, tmp_path):
    monkeypatch.setattr(
        script.cuda_toolkit, "find_build_variables", lambda place, pip: {"HOROVOD_CUDA_HOME": "/cuda"}
    )
    environment = build_environment(script, monkeypatch, tmp_path, "NCCL")
    assert environment["HOROVOD_GPU_OPERATIONS"] == "NCCL"
    assert environment["HOROVOD_CUDA_HOME"] == "/cuda"
