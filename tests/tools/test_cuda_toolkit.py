"""The toolkit and NCCL for a build of Horovod for GPUs: the system's, else those of torch's packages."""

import importlib
import importlib.metadata
from pathlib import Path

import pytest

from bertdata.errors import MissingExtraError
from tests.support.paths import ROOT


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    for name in ("HOROVOD_CUDA_HOME", "CUDA_HOME", "CUDA_PATH", "HOROVOD_NCCL_HOME"):
        monkeypatch.delenv(name, raising=False)
    script = importlib.import_module("cuda_toolkit")
    monkeypatch.setattr(script, "find_system_homes", list)
    return script


def toolkit(home: Path, release: str) -> Path:
    """A toolkit whose compiler says that it is of this release."""
    (home / "bin").mkdir(parents=True)
    (home / "include").mkdir()
    (home / "include" / "cuda_runtime.h").touch()
    compiler = home / "bin" / "nvcc"
    compiler.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.88'\n")
    compiler.chmod(0o755)
    return home


def no_pip(*words):
    raise AssertionError(f"pip {words}")


def test_a_torch_without_cuda_is_refused(script, monkeypatch, tmp_path):
    monkeypatch.setattr("torch.version.cuda", None)
    with pytest.raises(MissingExtraError, match="has no CUDA: install the CUDA build of torch"):
        script.find_build_variables(tmp_path, no_pip)


def test_the_systems_toolkit_is_taken_if_its_major_version_is_torchs(script, monkeypatch, tmp_path):
    homes = [toolkit(tmp_path / "12", "12.8"), toolkit(tmp_path / "13", "13.0")]
    monkeypatch.setattr(script, "find_system_homes", lambda: homes)
    found = script.find_toolkit("13.2", tmp_path, no_pip)
    assert found["HOROVOD_CUDA_HOME"] == found["CUDA_HOME"] == str(homes[1])


def test_a_compiler_without_headers_is_no_toolkit(script, tmp_path):
    home = toolkit(tmp_path / "13", "13.0")
    assert script.read_compiler_version(home) == "13.0"
    (home / "include" / "cuda_runtime.h").unlink()
    assert script.read_compiler_version(home) is None


def test_the_directories_of_the_environment_come_before_the_compilers_on_the_path(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "tools")
    script = importlib.import_module("cuda_toolkit")
    asked, on_path = toolkit(tmp_path / "asked", "13.0"), toolkit(tmp_path / "on-path", "13.0")
    monkeypatch.setenv("CUDA_HOME", str(asked))
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert script.find_system_homes()[:2] == [asked, on_path]


def test_without_a_systems_toolkit_the_compiler_is_a_package_of_torchs_release(script, monkeypatch, tmp_path):
    def pip(*words):
        asked.append(words)
        libraries = toolkit(tmp_path / "nvidia" / "cu13", "13.2") / "lib"
        libraries.mkdir()
        (libraries / "libcudart.so.13").touch()

    asked = []
    monkeypatch.setattr(importlib.metadata, "version", lambda name: {"cuda-toolkit": "13.2.2"}[name])
    found = script.find_toolkit("13.2", tmp_path, pip)
    assert asked == [("install", "--target", str(tmp_path), "cuda-toolkit[nvcc,cudart,cccl]==13.2.2")]
    home = tmp_path / "nvidia" / "cu13"
    assert found["HOROVOD_CUDA_HOME"] == str(home)
    assert (home / "lib64" / "libcudart.so").resolve() == home / "lib" / "libcudart.so.13"


def test_without_any_toolkit_the_remedy_is_named(script, monkeypatch, tmp_path):
    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(script, "find_system_homes", lambda: [toolkit(tmp_path / "12", "12.8")])
    with pytest.raises(MissingExtraError, match=r"no toolkit of CUDA 13.0, .*set CUDA_HOME.*12 \(12.8\)"):
        script.find_toolkit("13.0", tmp_path, no_pip)


def test_nccl_of_torchs_packages_is_linked_under_the_name_that_linkers_know(script, monkeypatch, tmp_path):
    packages = tmp_path / "site-packages"
    for name in ("nvidia/nccl/include/nccl.h", "nvidia/nccl/lib/libnccl.so.2", "torch/__init__.py"):
        (packages / name).parent.mkdir(parents=True)
        (packages / name).touch()
    monkeypatch.setattr("torch.__file__", str(packages / "torch" / "__init__.py"))
    monkeypatch.setattr(script, "SYSTEM_NCCL", tmp_path / "none")
    found = script.find_nccl(tmp_path)
    assert found["HOROVOD_NCCL_INCLUDE"] == str(packages / "nvidia/nccl/include")
    assert Path(found["HOROVOD_NCCL_LIB"], "libnccl.so").resolve().name == "libnccl.so.2"
    monkeypatch.setenv("HOROVOD_NCCL_HOME", "/opt/nccl")
    assert script.find_nccl(tmp_path) == {}


def test_a_missing_nccl_is_named(script, monkeypatch, tmp_path):
    monkeypatch.setattr("torch.__file__", str(tmp_path / "torch" / "__init__.py"))
    monkeypatch.setattr(script, "SYSTEM_NCCL", tmp_path / "none")
    with pytest.raises(MissingExtraError, match="no nccl.h: set HOROVOD_NCCL_HOME"):
        script.find_nccl(tmp_path)
