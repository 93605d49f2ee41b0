"""``bertdata extract`` at a page that never ends: it is stopped at once, and ended by name at the limit."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.soak.kills import ends_soon, list_descendants
from tests.support.commands import files_below, finish, start
from tests.support.dumps import HOSTILE_PAGES, page, write_dump

SECONDS = 120
"""Time that a busy machine may take to reach the page."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A page of which neither Python nor a signal handler sees anything for hours."""
    first = page("First", "Text.", number=1)
    return write_dump(tmp_path / "enwiki-20200101.xml", first, HOSTILE_PAGES["a power and comments"])


def at_the_page(process: "subprocess.Popen[str]") -> int:
    """The worker, when it has worked for two CPU seconds: nothing but that page takes as long."""
    deadline = time.monotonic() + SECONDS
    while True:
        assert process.poll() is None
        assert time.monotonic() < deadline
        for worker in list_descendants(process.pid):
            if _cpu_seconds(worker) > 2:
                return worker
        time.sleep(0.02)


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # the process is gone
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.thorough
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_everything_in_the_middle_of_a_page(
    dump: Path, tmp_path: Path, how: signal.Signals, workers: int
) -> None:
    process = start("extract", dump, "--output", tmp_path / "out", "--workers", workers)
    at_the_page(process)
    all_workers = list(list_descendants(process.pid))
    process.send_signal(how)
    assert finish(process).status == 128 + how
    assert all(map(ends_soon, all_workers))
    assert files_below(tmp_path / "out") == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("how", "told"),
    [
        (signal.SIGPROF, "took more than 600 CPU seconds; run the same command with --skip-page 5 to"),
        (signal.SIGKILL, "again, --skip-page 5 leaves that page out"),
    ],
)
def test_a_worker_that_the_system_ends_is_told_with_its_page(
    dump: Path, tmp_path: Path, how: signal.Signals, told: str
) -> None:
    process = start("extract", dump, "--output", tmp_path / "out", "--workers", 1)
    os.kill(at_the_page(process), how)
    outcome = finish(process)
    assert outcome.status == 1
    last = outcome.err.splitlines()[-1]
    assert last.startswith("bertdata: error: ")
    assert "page 'Power' (id 5)" in last
    assert told in last
    assert files_below(tmp_path / "out") == []
