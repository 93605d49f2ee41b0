"""The table of hours in docs/your-encoder.md is that of ``benchmarks.encoder_hours``."""

import pytest

from benchmarks import encoder_hours
from tests.support.paths import ROOT


def test_the_page_prints_the_programs_table(capsys: pytest.CaptureFixture[str]) -> None:
    encoder_hours.main()
    page = (ROOT / "docs" / "your-encoder.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out in page


def test_a_row_is_tokens_times_operations_by_rate() -> None:
    """By hand: 12 layers of 768 and 3,072; the word head sees 15 % of the 512 tokens of a row."""
    layer = 2 * (4 * 768**2 + 2 * 768 * 3072 + 2 * 512 * 768)
    head = 2 * 0.15 * (768**2 + 768 * 30_528)
    each = 3 * (12 * layer + head)
    assert encoder_hours.count_token_operations(
        *encoder_hours.MODELS["BERT base, RoBERTa base"]
    ) == pytest.approx(each, rel=0.01)
    assert encoder_hours.format_hours(1e9 / 4.3, each, 0.4 * 312e12) == "18 min"
