"""Starts Python programs by forking a process that has already imported PyTorch or Beam, which saves seconds.

``forking_python()`` returns the path of an executable that is called like Python: with ``-m MODULE``, ``-c
CODE`` or ``SCRIPT``, and arguments. The executable sends its arguments, environment, working directory and
standard files to the server. The server forks the program, forwards signals to it, and kills it if the
executable is killed. The executable exits with the program's status. Inside the program, ``sys.executable``
is the executable, and the parent process is the process that called it. So launchers work unchanged. Any
other command line starts Python itself.

Do not use it in tests of what a program imports.
"""

import atexit
import gc
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STUB = """\
#!{python} -IS
import os, sys
words = [word for word in sys.argv[1:2] if word != "-u"] + sys.argv[2:]
if "--multiprocessing-fork" in words or not words or (words[0][:1] == "-" and words[0] not in ("-m", "-c")):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
import json, signal, socket, struct
numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
asked = json.dumps([words, dict(os.environ), os.getcwd(), os.getpid()]).encode()
socket.send_fds(server, [struct.pack("!I", len(asked))], [0, 1, 2])
server.sendall(asked)
(pid,) = struct.unpack("!i", server.recv(4, socket.MSG_WAITALL))
def forward(number, frame):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
for number in numbers:
    signal.signal(number, forward)
signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
(status,) = struct.unpack("!i", server.recv(4, socket.MSG_WAITALL))
if status < 0:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (-status,))
    signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
    os.kill(os.getpid(), -status)
os._exit(status)
"""


def forking_python(preloaded: str = "trainer") -> str:
    """Return the path of the executable. The first call starts the server.

    preloaded: a key of PRELOADS: the program whose imports the server has already made.
    """
    return _start_server(preloaded)


@lru_cache
def _start_server(preloaded: str) -> str:
    # A TemporaryDirectory would not be removed: Python 3.13 clears atexit functions in forked processes.
    place = Path(tempfile.mkdtemp(prefix="fork-server-"))
    path, stub = f"{place}/socket", place / "python"
    stub.write_text(STUB.format(python=sys.executable, path=path), encoding="utf-8")
    stub.chmod(0o755)
    # OpenMP threads and an initialised CUDA do not survive a fork.
    own = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    server = subprocess.Popen(
        [sys.executable, __file__, str(place), preloaded],
        env={**os.environ, **own},
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,  # closed when this process is gone
    )
    atexit.register(_end, server, place, os.getpid())
    assert server.stdout is not None
    if server.stdout.readline() != b"ready\n":
        raise AssertionError("the fork server did not start")
    return str(stub)


def program_behind(stub: int, preloaded: str = "trainer") -> int:
    """Return the process id of the program that runs for the executable with this process id."""
    return int(Path(forking_python(preloaded)).with_name(f"{stub}.pid").read_text())


def _end(server: "subprocess.Popen[bytes]", place: Path, starter: int) -> None:
    if os.getpid() != starter:  # a process that a test forked
        return
    assert server.stdin is not None
    server.stdin.close()  # the server kills its programs and ends
    server.wait()
    shutil.rmtree(place)


def serve(place: Path, preloaded: str) -> None:
    """Run the server: fork a program for each caller. Returns only in the forked programs."""
    PRELOADS[preloaded](place)
    gc.collect()
    gc.freeze()  # the programs share memory pages as long as nobody writes to them
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / "socket"))
    listener.listen(64)
    wake, woken = socket.socketpair()
    for end in (wake, woken):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(woken.fileno())
    found = selectors.DefaultSelector()
    for source in (listener, wake, sys.stdin):
        found.register(source, selectors.EVENT_READ)
    programs: dict[int, socket.socket] = {}
    print("ready", flush=True)
    while True:
        for key, _ in found.select():
            file: Any = key.fileobj
            if file is sys.stdin:  # the tests are over, or were killed
                for pid in programs:
                    _kill(pid)
                os._exit(0)
            elif file is wake:
                wake.recv(4096)
                _report(programs, found)
            elif file is not listener:  # the caller was killed
                (pid,) = (pid for pid, caller in programs.items() if caller is file)
                found.unregister(file)
                _kill(pid)
            else:
                caller, _ = listener.accept()
                size, files, _, _ = socket.recv_fds(caller, 4, 3)
                asked = caller.recv(struct.unpack("!I", size)[0], socket.MSG_WAITALL)
                sys.stdout.flush()
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    found.close()
                    for each in (listener, wake, woken, caller, *programs.values()):
                        each.close()
                    words, environment, directory, stub = json.loads(asked)
                    become(words, environment, directory, stub, files)
                    return
                for number in files:
                    os.close(number)
                (place / f"{json.loads(asked)[3]}.pid").write_text(str(pid))
                caller.sendall(struct.pack("!i", pid))
                programs[pid] = caller
                found.register(caller, selectors.EVENT_READ)


def _report(programs: dict[int, socket.socket], found: selectors.BaseSelector) -> None:
    """Send the exit status of each program that has ended to its caller."""
    for pid in list(programs):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if not ended:
            continue
        caller = programs.pop(pid)
        if caller.fileno() in {key.fd for key in found.get_map().values()}:
            found.unregister(caller)
        with suppress(OSError):  # the caller was killed
            caller.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
        caller.close()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def load_trainer(place: Path) -> None:
    """Import everything that a run of the trainer imports, including what it imports late."""
    import torch.distributed.run  # noqa: F401

    import trainer.workers.torch_distributed  # noqa: F401
    from trainer.__main__ import main
    from trainer.plugins import TABLE, find, list_names

    for kind in TABLE.keys() - {"device"}:  # tests look at the import of a device's module
        for name in list_names(kind):
            find(kind, name)
    with suppress(ImportError):  # where Horovod could not be built, its tests are left out
        import horovod.torch  # noqa: F401

    sizes = ["--hidden-size=16", "--num-hidden-layers=1", "--num-attention-heads=2", "--batch-size=1"]
    words = [
        "--generated-data",
        f"--output-dir={place}/warm up",
        "--steps=1",
        "--no-progress-bar",
        "--no-logs",
    ]
    with open(os.devnull, "w") as nowhere:
        sys.stderr, said = nowhere, sys.stderr
        status = main(["pretrain", *sizes, *words])
        sys.stderr = said
    if status:
        raise AssertionError("the trainer does not run on the processor")
    del sys.modules["trainer.__main__"]


def load_beam(place: Path) -> None:
    """Import what a run of a pipeline imports, except Dask, which would add flags to Beam."""
    from beam_pipelines.runners.beam_import import import_beam

    import_beam()
    from apache_beam.options import pipeline_options  # noqa: F401
    from apache_beam.runners.portability import fn_api_runner  # noqa: F401
    from apache_beam.runners.worker import sdk_worker_main  # noqa: F401

    import beam_pipelines.prepare
    import beam_pipelines.runners.local_workers
    import beam_pipelines.stages.articles
    import beam_pipelines.stages.extraction
    import beam_pipelines.stages.shards
    import beam_pipelines.stages.text_stage  # noqa: F401


PRELOADS = {"trainer": load_trainer, "beam": load_beam}


def become(
    words: list[str], environment: dict[str, str], directory: str, stub: int, files: list[int]
) -> None:
    """Give this forked process the arguments, environment, directory and files of its caller."""
    os.setpgid(0, 0)
    for standard, number in enumerate(files):
        os.dup2(number, standard)
        os.close(number)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    sys.executable = str(Path(sys.argv[1], "python"))
    os.getppid = lambda: int(Path(f"/proc/{stub}/stat").read_text().rpartition(")")[2].split()[1])
    given = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [*given, *(entry for entry in sys.path[1:] if entry not in given)]
    sys.argv[:] = words


def run_and_exit() -> None:
    """Run ``sys.argv`` and exit as Python does, but without freeing memory, to save a second."""
    status = 0
    try:
        run_program()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if stop.code is not None and not isinstance(stop.code, int):
            print(stop.code, file=sys.stderr)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        status = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            file.flush()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)


def run_program() -> None:
    kind, *more = sys.argv
    if kind == "-m":
        sys.path.insert(0, os.getcwd())
        sys.argv[:] = more
        if not hasattr(sys.modules.get(more[0]), "__path__"):
            sys.modules.pop(more[0], None)  # runpy warns of a module that is there already
        runpy.run_module(more[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.path.insert(0, "")
        sys.argv[:] = ["-c", *more[1:]]
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(more[0], "<string>", "exec"), sys.modules["__main__"].__dict__)
    else:
        sys.path.insert(0, str(Path(kind).resolve().parent))
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2])
    run_and_exit()
