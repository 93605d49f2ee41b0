"""docs/python.md against the package: its program prints what the page shows, and it lists every function."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bertdata
import trainer
from tests.support.console_pages import Block, blocks, matches
from tests.support.paths import DUMP, GOLDEN, ROOT

TEXT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
READING, _, _ = TEXT.partition("\n## An objective of your own\n")
BLOCKS = [block for block in blocks(READING) if block.kind in ("python", "text")]
CELLS = [block for block in BLOCKS if block.kind == "python"]
MARK = "=== the next cell ==="
PROGRAM = "\n".join(f'{cell.text}\nprint("{MARK}")\n' for cell in CELLS)


def list_shown_outputs() -> list[Block | None]:
    """Return for each cell the block below it that shows its output, or None."""
    followers = [*BLOCKS[1:], None]
    pairs = zip(BLOCKS, followers, strict=True)
    return [after if after and after.kind == "text" else None for one, after in pairs if one.kind == "python"]


def test_the_page_lists_every_name_that_the_package_offers():
    functions = set(re.findall(r"^\| `(\w+)\(", TEXT, re.MULTILINE))
    assert functions | {"errors", "__version__"} == set(bertdata.__all__)
    assert "`bertdata.errors`" in TEXT


def test_the_page_lists_every_function_of_the_trainer():
    assert set(re.findall(r"^\| `trainer\.(\w+)\(", TEXT, re.MULTILINE)) == set(trainer.__all__)


@pytest.mark.thorough
@pytest.mark.usefixtures("punkt_tables")
def test_the_pages_examples_run_in_order_in_a_fresh_process(tmp_path: Path) -> None:
    (dump,) = re.findall('dump = "(.*)"', PROGRAM)
    shutil.copy(DUMP, tmp_path / dump)
    shutil.copy(GOLDEN / "vocab.txt", tmp_path)
    shutil.copytree(ROOT / "docs" / "samples", tmp_path / "docs" / "samples")
    body = "".join(f"    {line}\n" if line else "\n" for line in PROGRAM.splitlines())
    (tmp_path / "page.py").write_text(f'if __name__ == "__main__":\n{body}', encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(tmp_path / "cache")}
    environment["OMP_NUM_THREADS"] = "1"  # the models are tiny, so that further threads only wait
    done = subprocess.run(
        [sys.executable, "page.py"], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout.split(f"{MARK}\n")
    assert len(printed) == len(CELLS) + 1
    for cell, shown, found in zip(CELLS, list_shown_outputs(), printed, strict=False):
        if shown is not None:
            tolerance = float((shown.given("within") or "0").partition(" %")[0]) / 100
            lines = [line for line in found.splitlines() if line.strip()]
            assert matches(shown.text.splitlines(), lines, tolerance), f"line {cell.line}:\n{found}"
    assert " articles of 102 pages" in done.stdout
    assert "creating shards: " in done.stdout
    assert (tmp_path / "shards" / "manifest.json").exists()
    assert "102 notes, 7 of them held out\n805 tokens\n" in done.stdout
    assert "420 of 420" in done.stdout
