"""Pages on runs in Chromium: no error, no request, by keyboard, hostile names harmless."""

from pathlib import Path

import pytest

from tests.support.browser import Browser
from tests.support.plans import make_plan
from tests.support.recorded_runs import LABELS, make_classified_run, make_run
from trainer.__main__ import main
from trainer.splitting.plan.plan import write_plan

pytestmark = pytest.mark.browser
HOSTILE = "<script>alert(1)<img src=x onerror=alert(2)>\x1b[31m\"'&"


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def pages(training_set, small_vocabulary_file, tmp_path_factory) -> dict[str, Path]:
    """The pages of a divided run, of two over each other, and of runs with a hostile name and with labels."""
    place = tmp_path_factory.mktemp("pages")
    split = make_run(place / "split", train_data=str(training_set), strategy="pipelined")
    write_plan(str(split / "plan.json"), make_plan())
    other = make_run(place / "other", status="aborted", base_learning_rate=0.5)
    hostile = make_run(place / HOSTILE, train_data=HOSTILE, description=HOSTILE)
    labelled = make_classified_run(place / "labelled", small_vocabulary_file)
    found = {"split": [split], "both": [split, other], "hostile": [hostile], "labelled": [labelled]}
    pages = {name: place / f"{name}.html" for name in found}
    for name, runs in found.items():
        assert main(["report", *map(str, runs), "--output", str(pages[name])]) == 0
    return pages


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("name", ["split", "labelled", "both", "hostile"])
@pytest.mark.thorough_after_first
def test_pages_of_runs_ask_for_nothing_and_break_no_serious_rule(browser, pages, name, colours):
    browser.open(pages[name], colours)
    for element in browser.driver.find_elements("css selector", "details"):
        browser.run("arguments[0].open = true", element)
    assert browser.serious_findings() == []
    assert browser.errors() == []
    assert browser.requests() == []


def test_every_section_of_a_run_is_there(browser, pages):
    browser.open(pages["split"])
    found = browser.run("return [...document.querySelectorAll('main > section')].map(one => one.id)")
    named = [
        "warnings",
        "results",
        "what-was-trained",
        "loss-and-accuracy",
        "evaluations",
        "optimiser",
        "speed",
    ]
    assert found == [*named, "division-of-the-model", "settings"]
    guesses = "return [...document.querySelectorAll('#loss-and-accuracy svg [style*=dasharray]')].length"
    assert browser.run(guesses) >= 4


def test_the_confusion_matrix_is_read_by_rows_and_columns(browser, pages):
    browser.open(pages["labelled"])
    heads = (
        "return [...document.querySelectorAll('table.matrix th')].map(one => [one.scope, one.textContent])"
    )
    found = browser.run(heads)
    for label in LABELS:
        assert ["row", label] in found
        assert [scope for scope, text in found if text.split(maxsplit=1)[-1] == label].count("col") == 1


def test_an_aborted_run_stands_on_top_in_red(browser, pages):
    browser.open(pages["both"])
    assert "ended as aborted" in browser.run("return document.getElementById('faults').textContent")
    colour = "return getComputedStyle(document.querySelector('#faults h2')).color"
    assert browser.run(colour) == "rgb(179, 38, 30)"


def test_hostile_names_of_runs_run_nothing(browser, pages):
    browser.open(pages["hostile"])
    assert browser.run("return document.scripts.length") == 1
    assert browser.run("return document.images.length") == 0
    assert "<script>alert(1)<img src=x onerror=alert(2)>" in browser.driver.title
    assert "\x1b" not in browser.driver.page_source


def test_the_numbers_of_a_figure_are_copied_by_keyboard(browser, pages):
    browser.open(pages["both"])
    browser.run("navigator.clipboard.writeText = async text => { window.copied = text; }")
    browser.focus("#loss-and-accuracy summary")
    browser.press("ENTER")
    copy = browser.focus("#loss-and-accuracy [data-copies]")
    browser.press("ENTER")
    rows = browser.run("return document.getElementById(arguments[0].dataset.copies).rows.length", copy)
    head, *lines = browser.run("return window.copied").splitlines()
    assert head.split("\t")[:2] == ["update", "split, training: loss (nats)"]
    assert len(lines) == rows - 1 == 8
