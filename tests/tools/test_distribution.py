"""The distribution's name and commands: nothing tells a user to install a stranger's package."""

import re
import subprocess
import sys
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from pathlib import Path

import pytest

from tests.support.paths import ROOT

COMMANDS = {
    "bertdata": "usage: bertdata COMMAND",
    "bertdata-beam": "usage: beam_pipelines.prepare",
    "bertdata-train": "usage: python -m trainer COMMAND",
}
STRANGER = re.compile(r"bertdata\[|pip install (?:-\S+ )*['\"]?bertdata\b(?!-toolkit)")


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    """The distribution that setup.py declares, without an installation."""
    folder = tmp_path_factory.mktemp("metadata")
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    context = DistributionFinder.Context(path=[str(folder)])
    (found,) = MetadataPathFinder.find_distributions(context)
    return found


def test_the_distribution_has_a_name_of_its_own(distribution: Distribution) -> None:
    assert distribution.metadata["Name"] == "bertdata-toolkit"


def test_each_step_has_a_console_command(distribution: Distribution) -> None:
    commands = {entry.name: entry for entry in distribution.entry_points if entry.group == "console_scripts"}
    assert set(commands) == set(COMMANDS)
    for name, usage in COMMANDS.items():
        module, function = commands[name].module, commands[name].attr
        words = f"import sys; sys.argv = [{name!r}, '--help']"
        program = f"{words}; from {module} import {function} as run; sys.exit(run())"
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert usage in done.stdout


def texts() -> list[Path]:
    """All that a user reads, and all that runs an installation."""
    folders = ("bertdata", "beam_pipelines", "trainer", "tools", "docs", "golden", "benchmarks", "tests")
    loose = [path for path in ROOT.iterdir() if path.is_file() and path.suffix != ".so"]
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.*"))]
    return [path for path in (*loose, *found) if path.suffix in {".py", ".md", ".sh", ".txt", ""}]


def test_nothing_names_the_distribution_of_somebody_else() -> None:
    named = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in texts()
        if path.is_file() and path != Path(__file__)
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if STRANGER.search(line)
    ]
    assert not named
