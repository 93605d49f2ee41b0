"""Ctrl-C at chosen points of ``create``: one line and status 130, whatever it cuts short.

Each point is a piece of code, run before the program, that plants a signal in a function of the program.
"""

import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from bertdata.cli.common.interrupts import Interrupt, Interrupts
from bertdata.cli.main import main
from tests.support.commands import Program, contents, files_below
from tests.support.paths import ROOT

INTERRUPTED = "bertdata: interrupted; what is finished is kept, run the same command to go on"

RUN = """
import atexit, importlib.abc, os, runpy, signal, sys, threading, time

def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)

def before(owner, name, act):
    original = getattr(owner, name)
    def planted(*arguments, **options):
        setattr(owner, name, original)
        act()
        return original(*arguments, **options)
    setattr(owner, name, planted)

class AtImport(importlib.abc.MetaPathFinder):
    def __init__(self, module):
        self.module = module
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name == self.module:
            ctrl_c()
"""

POINTS = {
    "while the command's module is imported": "AtImport('bertdata.cli.create')",
    "in a finalizer, which hides exceptions": """
import bertdata.steps.create_plan as command
class Held:
    def __del__(self):
        ctrl_c()
def act():
    Held()
    time.sleep(60)
before(command, "find_given_tokenizer", act)
""",
    "in code that fails for it": """
import bertdata.steps.create_plan as command
def fail():
    try:
        ctrl_c()
        time.sleep(60)
    except KeyboardInterrupt:
        raise OSError(9, "Bad file descriptor")
before(command, "find_given_tokenizer", fail)
""",
    "while the workers start": "before(threading.Thread, 'start', ctrl_c)",
    "while the workers are closed": """
from multiprocessing import util
from bertdata.io import worker_process
before(worker_process.WorkerProcess, "close", lambda: before(util.Finalize, "__call__", ctrl_c))
""",
    "while the results are printed": """
from bertdata.cli.common.progress import Progress
before(Progress, "advance", ctrl_c)
""",
}


def create(parts: list[Path], vocabulary: Path, output: Path) -> list[str]:
    flags = ["--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=2", "--workers=2"]
    return ["create", *map(str, parts), "--output", str(output), "--vocab", str(vocabulary), *flags]


@pytest.fixture(scope="module")
def undisturbed(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The files of a run that nothing cuts short."""
    output = tmp_path_factory.mktemp("undisturbed") / "out"
    assert main([*create(corpus, small_vocabulary_file, output), "--workers=1"]) == 0
    return contents(output)


def run_planted(point: str, words: list[str]) -> "subprocess.CompletedProcess[str]":
    code = f"{RUN}\n{point}\nrunpy.run_module('bertdata', run_name='__main__', alter_sys=True)"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)


@pytest.mark.parametrize("point", POINTS)
def test_ctrl_c_ends_with_its_line_and_status(
    point: str,
    bertdata: Program,
    corpus: list[Path],
    small_vocabulary_file: Path,
    undisturbed: dict[str, bytes],
    tmp_path: Path,
) -> None:
    words = create(corpus, small_vocabulary_file, tmp_path / "out")
    done = run_planted(POINTS[point], words)
    *lines, last = done.stderr.splitlines()
    assert (done.returncode, last, done.stdout) == (130, INTERRUPTED, "")
    assert all(line.startswith("made part-") for line in lines), done.stderr
    assert not [name for name in files_below(tmp_path / "out") if name.endswith(".tmp")]
    assert bertdata(*words, "--workers=1").status == 0
    assert contents(tmp_path / "out") == undisturbed


@pytest.mark.parametrize("method", ["write", "close"])
def test_ctrl_c_while_hdf5_writes_does_not_crash_it(
    method: str, corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    point = f"""
from bertdata.shards.hdf5_file import ScratchFile
ScratchFile.close = lambda self: self._file.close()
before(ScratchFile, {method!r}, ctrl_c)
"""
    words = create(corpus, small_vocabulary_file, tmp_path / "out")
    done = run_planted(point, [*words, "--format=hdf5", "--workers=1"])
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, INTERRUPTED)
    assert "Traceback" not in done.stderr


def test_ctrl_c_while_the_command_line_is_imported_ends_the_process_silently() -> None:
    done = run_planted("AtImport('bertdata.cli.main')", ["recipes"])
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_after_the_end_changes_nothing() -> None:
    undisturbed = run_planted("", ["recipes"])
    done = run_planted("atexit.register(ctrl_c)", ["recipes"])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == undisturbed.stdout != ""


def test_a_process_that_ignores_sigint_goes_on_ignoring_it() -> None:
    point = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nAtImport('bertdata.cli.recipes')"
    done = run_planted(point, ["recipes"])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_for_the_end_of_an_import(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy's compiled half, cut short while it is set up, ends the process with SIGSEGV."""
    code = f"import os, time\nos.kill(os.getpid(), {int(number)})\ntime.sleep(0.05)\nIS_WHOLE = True\n"
    (tmp_path / "cut_short.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    began = time.monotonic()

    def import_it() -> None:
        with Interrupts():
            import_module("cut_short")
            time.sleep(60)

    with pytest.raises(Interrupt) as stopped:
        import_it()
    assert sys.modules.pop("cut_short").__dict__["IS_WHOLE"]
    assert stopped.value.exit_status == 128 + number
    assert time.monotonic() - began < 30
