"""Runs a program with kernels that were compiled with AddressSanitizer and UndefinedBehaviorSanitizer.

    python -m tests.soak.sanitized_kernels tests.soak.hostile --files 300 --calls 100000

The kernels are compiled into ``.soak/sanitized``, apart from those of the package, which stay as they are.
Every error of memory ends the program with the sanitizer's report. Needs g++ with its sanitizers.
"""

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT

FOLDER = ROOT / ".soak" / "sanitized"
NAME = "bertdata._native._kernels"
_LIBRARIES = ("libasan.so", "libubsan.so", "libstdc++.so")
"""Python itself is compiled without sanitizers, so their libraries must be loaded before it."""


def build_sanitized_kernels() -> Path:
    """Compile the kernels where their sources have changed. Return the path of the extension module.

    Raises RuntimeError if they cannot be compiled.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "setup.py", "--quiet", "build_ext"]
    command += [f"--build-temp={FOLDER / 'objects'}", f"--build-lib={FOLDER}"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "BERTDATA_SANITIZE": "address,undefined"},
        capture_output=True,
        text=True,
        check=False,
    )
    built = sorted((FOLDER / "bertdata" / "_native").glob("_kernels*.so"))
    if done.returncode or not built:
        raise RuntimeError(f"the kernels were not compiled with sanitizers: {done.stderr[-2000:]}")
    return built[0]


def make_environment(kernels: Path) -> dict[str, str]:
    """Return the environment of a program that uses these kernels."""
    libraries = [
        subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
        for name in _LIBRARIES
    ]
    return {
        **os.environ,
        "LD_PRELOAD": ":".join(map(str.strip, libraries)),
        # Python never frees all memory. Freed memory is kept from reuse only for a while.
        "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=32:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "BERTDATA_SANITIZED_KERNELS": str(kernels),
        "PYTHONPATH": str(ROOT),
    }


def load_kernels(path: str) -> None:
    """Import the extension module under the name of the package's kernels."""
    spec = importlib.util.spec_from_file_location(NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)


def main() -> int:
    kernels = os.environ.get("BERTDATA_SANITIZED_KERNELS")
    if kernels is None:
        environment = make_environment(build_sanitized_kernels())
        words = [sys.executable, "-m", "tests.soak.sanitized_kernels", *sys.argv[1:]]
        return subprocess.run(words, env=environment, cwd=ROOT, check=False).returncode
    load_kernels(kernels)
    del os.environ["LD_PRELOAD"]  # not for the compilers and shells that the program may start
    sys.argv[:] = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
