"""No pipeline writes over what it reads, however the input is spelled."""

from pathlib import Path

import pytest

from beam_pipelines import pack, prepare
from tests.support.outputs_over_inputs import PIPELINES, Writing, contents, lay_out

PROGRAMS = {"prepare": prepare.main, "pack": pack.main}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("by_link", [False, True])
@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda row: row.shown)
def test_an_output_that_is_the_input_is_refused(
    folder: Path, pipeline: Writing, by_link: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    given = "data" if pipeline.of_directory else "notes.xml"
    (folder / "notes.xml").write_text("Not to be lost.\n")
    written = given
    if by_link:
        written = f"link{pipeline.ending}"
        (folder / written).symlink_to(folder / given)
    before = contents(folder)
    program, *words = pipeline.line(given, written)
    assert PROGRAMS[program](words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"error: {written}: is an input" in line
    assert contents(folder) == before
