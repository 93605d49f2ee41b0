"""A file that is cut while it is read is an error of one line. A mapped file ended the process (SIGBUS)."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bertdata.shards.fairseq.lines import LinesWriter

READ_AND_CUT = """
import os, sys
import bertdata
from bertdata.errors import ShardError
path = sys.argv[1]
data = bertdata.open_dataset(path, unverified=True, objective="mlm")
examples = iter(data)
next(examples)
os.truncate(path, 100)
try:
    list(examples)
except ShardError as error:
    print(error)
"""


def write_bin(folder: Path) -> Path:
    path = folder / "train.bin"
    with path.open("wb") as file:
        writer = LinesWriter(sink=file, kind="u2")
        for _ in range(3):
            writer.write(np.tile(np.array([5, 6, 7, 2]), 4096), np.arange(4, 4 * 4096 + 1, 4))
    (folder / "train.idx").write_bytes(writer.index())
    return path


def write_arrow(folder: Path) -> Path:
    pa = pytest.importorskip("pyarrow")
    path = folder / "train.arrow"
    column = pa.array([list(range(5, 25))] * 200, pa.list_(pa.int32()))
    batch = pa.record_batch([column], names=["input_ids"])
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, batch.schema) as stream:
        for _ in range(60):
            stream.write_batch(batch)
    return path


@pytest.mark.parametrize("write", [write_bin, write_arrow])
def test_a_file_cut_while_it_is_read_is_an_error(write, tmp_path: Path) -> None:
    path = write(tmp_path)
    before = path.stat().st_size
    done = subprocess.run([sys.executable, "-c", READ_AND_CUT, str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"{path}: was changed while it was being read: it had {before} bytes and now has 100; run the "
        "command again when nothing else writes to it\n"
    )
