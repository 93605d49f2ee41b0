"""The site of docs/: it is built without a warning, and has every page of the checkout in its navigation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools.site_pages import FILES, PAGES

CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_page_has_its_place() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} | set(PAGES.values())
    assert [name for name in sorted(pages) if f": {name}\n" not in CONFIGURATION] == []
    assert [pattern for pattern in FILES if not list(ROOT.glob(pattern))] == []


@pytest.mark.thorough
def test_the_site_is_built_strictly_and_asks_nobody_for_anything(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "bertdata create" in (tmp_path / "flags.html").read_text(encoding="utf-8")
    assert "open_dataset" in (tmp_path / "python-reference.html").read_text(encoding="utf-8")
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "your-own-text.html" in index
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fetched = [
            line
            for line in text.splitlines()
            if 'src="http' in line or '<link rel="stylesheet" href="http' in line
        ]
        assert fetched == [], page
