"""The picture of a run's curves: drawn at its end, and again from its tables."""

import sys
from xml.etree import ElementTree

import pytest

from bertdata.errors import InputError
from tests.support.report_records import COLUMNS, Clock, evaluation, make_reporter, record, report
from trainer.config.settings import Config
from trainer.logs.curves import draw_curves


def test_the_picture_is_drawn_at_the_end_and_again_from_the_tables(tmp_path):
    config = Config.of(output_dir=str(tmp_path), log_every=1, curves=True)
    reporter = make_reporter(config, COLUMNS, rank=0, clock=Clock())
    for step in range(1, 9):
        reporter.update(record(step))
    reporter.evaluation(*evaluation(8))
    reporter.close()
    svg, png = tmp_path / "curves.svg", tmp_path / "curves.png"
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    shown = "".join(ElementTree.parse(svg).getroot().itertext())
    for words in ("Loss: masked words", "Accuracy: next sentence", "evaluated", "guess without reading"):
        assert words in shown
    assert f"{tmp_path.name}. Loss: masked words" in shown
    assert png.read_bytes().startswith(b"\x89PNG")
    png.unlink()
    assert draw_curves(tmp_path) == [svg, png]
    assert png.exists()


def test_a_picture_without_tables_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(InputError, match=r"holds no training\.csv"):
        draw_curves(tmp_path)


def test_a_run_without_matplotlib_ends_with_a_line_and_no_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    report(tmp_path, range(1, 2), curves=True)
    assert "no picture of the curves: it needs the package matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "curves.png").exists()


@pytest.mark.parametrize(
    ("status", "keys"),
    [("stopped", {"curves": True}), ("aborted", {"curves": True}), ("success", {})],
)
def test_a_run_that_is_to_end_soon_and_one_that_is_not_asked_draw_no_picture(tmp_path, status, keys):
    reporter = make_reporter(Config.of(output_dir=str(tmp_path), log_every=1, **keys), COLUMNS, rank=0)
    reporter.update(record(1))
    reporter.close(status)
    assert len((tmp_path / "training.csv").read_text(encoding="utf-8").splitlines()) == 2
    assert not list(tmp_path.glob("curves.*"))


def test_a_run_without_log_files_has_no_picture(tmp_path):
    report(tmp_path, range(1, 2), curves=True, no_logs=True)
    assert not list(tmp_path.glob("curves.*"))
