"""README and the tutorials: every command on them is run, and prints what the page shows."""

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
import zstandard

from tests.support.console_pages import ConsolePage
from tests.support.object_stores import s3_emulator
from tests.support.paths import ROOT

SAMPLES = ROOT / "docs" / "samples"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A directory with the files of the checkout that pages name."""
    for name in ("golden", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The bucket of the page: s3://corpus/notes with the samples, compressed."""
    with s3_emulator() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        store = fsspec.filesystem("s3", use_listings_cache=False, skip_instance_cache=True)
        store.mkdir("corpus")
        for path in sorted(SAMPLES.glob("*.jsonl.zst")):
            store.pipe_file(f"corpus/notes/{path.name}", path.read_bytes())
        yield


def test_the_compressed_samples_are_those_that_one_can_read() -> None:
    for path in sorted(SAMPLES.glob("*.jsonl")):
        compressed = path.with_suffix(".jsonl.zst").read_bytes()
        assert zstandard.decompress(compressed) == path.read_bytes()


def test_readme(checkout: Path) -> None:
    assert ConsolePage(ROOT / "README.md", checkout).run() == 4


@pytest.mark.thorough
def test_your_encoder(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert ConsolePage(ROOT / "docs" / "your-encoder.md", checkout).run() >= 10


@pytest.mark.thorough
@pytest.mark.usefixtures("bucket")
def test_your_own_text_and_what_is_fine_tuned_from_its_run(checkout: Path) -> None:
    assert ConsolePage(ROOT / "docs" / "your-own-text.md", checkout).run() == 13
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
