"""Arrow files of polars, whose blocks stand where their footer says and not one behind another.

The samples were written by polars 2.1.0 from the three rows below: ``write_ipc`` plain, with
``compression="zstd"``, with ``compat_level=CompatLevel.oldest()``; ``write_ipc_stream``.
"""

import gzip
import shutil
from pathlib import Path

import pytest

from bertdata.errors import InputError
from bertdata.sources.records import Record
from bertdata.text.selection.evaluation_texts import read_evaluation_texts
from tests.support.read_records import read_records

pytest.importorskip("pyarrow")

SAMPLES = sorted((Path(__file__).parent / "samples").glob("polars*.arrow"))
ROWS = ["One two.", "Drei Bäume, die länger als zwölf Zeichen sind.", "x"]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_file_of_polars_is_read(sample: Path, tmp_path: Path) -> None:
    expected = [Record(number, text, str(number)) for number, text in enumerate(ROWS, 1)]
    assert read_records(sample, id_field="id") == expected
    (tmp_path / "a.arrow.gz").write_bytes(gzip.compress(sample.read_bytes()))
    assert read_records(tmp_path / "a.arrow.gz", id_field="id") == expected
    assert list(read_evaluation_texts(str(sample))) == ROWS


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_file_of_polars_that_is_cut_is_an_error(sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    shutil.copy(sample, path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="a.arrow: is damaged Arrow data: "):
        read_records(path)
