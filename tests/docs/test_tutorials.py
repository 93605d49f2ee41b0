"""README and the tutorials: every command on them is run, and prints what the page shows."""

from pathlib import Path

import pytest

from tests.support.console_pages import ConsolePage
from tests.support.paths import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A directory with the files of the checkout that pages name."""
    for name in ("golden", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def test_readme(checkout: Path) -> None:
    assert ConsolePage(ROOT / "README.md", checkout).run() == 4


@pytest.mark.thorough
def test_your_encoder(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert ConsolePage(ROOT / "docs" / "your-encoder.md", checkout).run() >= 10


@pytest.mark.thorough
def test_your_own_text_and_what_is_fine_tuned_from_its_run(checkout: Path) -> None:
    assert ConsolePage(ROOT / "docs" / "your-own-text.md", checkout).run() == 14
    assert ConsolePage(ROOT / "docs" / "finetuning.md", checkout).run() == 7


@pytest.mark.thorough
@pytest.mark.usefixtures("punkt_tables")
def test_mlperfs_route(checkout: Path) -> None:
    assert ConsolePage(ROOT / "docs" / "mlperf.md", checkout).run() == 11


@pytest.mark.thorough
def test_splitting(checkout: Path) -> None:
    assert ConsolePage(ROOT / "docs" / "splitting.md", checkout).run() == 2


def test_every_tutorial_of_the_site_is_run_here() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    tutorials = site.partition("- Tutorials:\n")[2].partition("\n  - How to:")[0]
    pages = [line.rpartition(": ")[2] for line in tutorials.splitlines()]
    text = Path(__file__).read_text(encoding="utf-8")
    assert pages
    assert [name for name in pages if f'"{name}"' not in text] == []
