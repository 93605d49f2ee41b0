"""Reading a dataset, and training on it, needs none of the rooms that make one of text."""

import subprocess
import sys
from pathlib import Path

import pytest

import bertdata
from tests.support.paths import GOLDEN, ROOT

ROOMS_OF_TEXT = ("bertdata.text", "bertdata.wiki", "bertdata.unicode")
DOCUMENTS = "one two three .\nfour five six .\n\nthe cat sat on the mat .\nit was here .\n"

READ = """
import bertdata
opened = bertdata.open_dataset("{path}")
assert len(list(opened)) == len(opened) > 0
"""
PRETRAIN = """
from trainer.__main__ import main
flags = ["--config=tiny", "--device=cpu", "--batch-size=2", "--steps=1"]
main(["pretrain", *flags, "--train-data={path}", "--output-dir={path}.run"])
"""
LIST = f"""
import sys
print([name for name in sys.modules if name.startswith({ROOMS_OF_TEXT!r})])
"""


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small dataset as ``create`` makes it, and packed."""
    place = tmp_path_factory.mktemp("datasets")
    part, stored, packed = place / "part-00000.txt", place / "stored", place / "packed"
    part.write_text(DOCUMENTS)
    sizes = {"max_seq_length": 32, "max_predictions_per_seq": 5}
    bertdata.create([part], stored, vocab=GOLDEN / "vocab.txt", workers=1, **sizes)
    bertdata.pack(stored, packed, workers=1)
    return {"stored": stored, "packed": packed}


@pytest.mark.parametrize(
    ("program", "dataset"),
    [(READ, "stored"), (READ, "packed"), (PRETRAIN, "stored")],
    ids=["open_dataset", "open_dataset of packed rows", "pretrain"],
)
def test_reading_a_dataset_imports_no_room_of_text(program: str, dataset: str, datasets: dict[str, Path]):
    code = program.format(path=str(datasets[dataset])) + LIST
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
