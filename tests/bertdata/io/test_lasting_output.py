"""Standard error may go away: nothing fails, and what is written later goes nowhere."""

import os
import pty
import subprocess
import sys

import pytest

from bertdata.io.lasting_output import LastingFile, protect_output
from bertdata.io.terminal import say_error
from tests.support.commands import ROOT

NAMES = ("pipe", "terminal")


def lost(kind: str) -> int:
    """A file descriptor whose reader is gone."""
    reader, writer = os.pipe() if kind == "pipe" else pty.openpty()
    os.close(reader)
    return writer


@pytest.mark.parametrize("kind", NAMES)
def test_what_nobody_reads_is_dropped_and_the_file_becomes_the_null_device(kind):
    writer = lost(kind)
    try:
        file = LastingFile(writer)
        assert [file.write(b"one\n"), file.write(b"two\n")] == [4, 4]
        assert os.fstat(writer).st_rdev == os.stat(os.devnull).st_rdev
        os.write(writer, b"of compiled code")  # as a library would
    finally:
        os.close(writer)


def test_a_reader_who_is_slow_gets_all():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    size = 300_000  # more than a pipe holds
    code = f"import os\nn = 0\nwhile n < {size}:\n n += len(os.read({reader}, 5000))"
    child = subprocess.Popen([sys.executable, "-c", code], pass_fds=[reader])
    os.close(reader)
    assert LastingFile(writer).write(b"x" * size) == size
    os.close(writer)
    assert child.wait(60) == 0


def test_a_full_disk_loses_lines_but_not_the_file():
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    full = os.open("/dev/full", os.O_WRONLY)
    assert LastingFile(full).write(b"line\n") == 5
    assert os.fstat(full).st_rdev == os.stat("/dev/full").st_rdev
    os.close(full)


def test_a_stream_that_a_caller_put_there_stays(capsys):
    with protect_output("stdout", "stderr"):
        say_error("heard")
    assert capsys.readouterr().err == "heard\n"


@pytest.mark.parametrize("closed", ["1", "2", "1,2", "0,1,2"])
def test_closed_standard_files_are_the_null_device(closed, tmp_path):
    told = tmp_path / "told"
    code = f"""
import os, sys
from bertdata.io.lasting_output import protect_output
with protect_output("stderr"):
    print("out"), print("err", file=sys.stderr)
    with open({str(told)!r}, "w") as file:
        file.write(str(file.fileno() > 2))
"""
    command = [sys.executable, "-c", code]
    shut = " ".join(f"{number}>&-" for number in closed.split(","))
    subprocess.run(["sh", "-c", f'exec "$@" {shut}', "sh", *command], cwd=ROOT, check=True, timeout=60)
    assert told.read_text() == "True"


def test_a_command_goes_on_when_nobody_reads_its_errors(tmp_path):
    (tmp_path / "part").write_text("A sentence. Another one.\n\nA second document here.\n")
    writer = lost("pipe")
    words = ["create", "part", "--vocab", ROOT / "golden" / "vocab.txt", "--output", "out", "--workers=1"]
    command = [sys.executable, "-m", "bertdata", *map(str, words)]
    done = subprocess.run(
        command, stderr=writer, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    os.close(writer)
    assert done.returncode == 0
    assert (tmp_path / "out" / "manifest.json").exists()
