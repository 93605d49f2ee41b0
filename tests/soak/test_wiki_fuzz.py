"""The fuzzers of wiki mark-up: a round is the same for its seed, and a page that differs is found."""

from pathlib import Path

import pytest

from bertdata._native import kernels
from tests.soak import wiki_fuzz, wiki_pages

pytestmark = pytest.mark.skipif(kernels is None, reason="the kernels are not built")


@pytest.fixture(autouse=True)
def small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiki_pages, "PAGES", 8)


@pytest.mark.parametrize("against", ["package", "twin"])
def test_generated_and_mutated_pages_do_not_differ(
    capsys: pytest.CaptureFixture[str], kit: Path, against: str
) -> None:
    for make in (wiki_pages.generated_round, lambda seed: wiki_pages.mutated_round(seed, kit)):
        assert wiki_fuzz.run("some", make, against, pages=10, seed=1) == 0
    assert capsys.readouterr().out.count(f"against the {against}, 0 differ") == 2


def test_a_round_depends_on_its_seed_alone(kit: Path) -> None:
    first, again, other = (wiki_pages.mutated_round(seed, kit) for seed in (1, 1, 2))
    assert first == again != other


def test_a_page_that_differs_is_shown_with_its_seed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = wiki_fuzz.PairedResult(b"<page>", ("", "5", b"one"), ("", "5", b"two"))
    monkeypatch.setattr(
        wiki_fuzz, "against_twin", lambda dump: [outcome, outcome._replace(other=outcome.kernel)]
    )
    assert wiki_fuzz.run("some", lambda seed: b"", "twin", pages=2, seed=3) == 1
    shown = capsys.readouterr().out
    assert "some round of seed 3: a page differs" in shown
    assert "b'two'" in shown


@pytest.mark.parametrize(
    ("kernel", "other", "declared"),
    [("unknown", "", True), ("limit", "limit", True), ("limit", "", False), ("", "limit", False)],
)
def test_pages_left_to_the_package_and_beyond_both_limits_are_declared(
    kernel: str, other: str, declared: bool
) -> None:
    outcome = wiki_fuzz.PairedResult(b"", (kernel, "", b""), (other, "", b""))
    assert outcome.is_declared is declared
    assert outcome.differs is not declared
