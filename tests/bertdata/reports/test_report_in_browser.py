"""Pages in Chromium: no error, no request, by keyboard, for a screen reader."""

from pathlib import Path

import pytest

from bertdata.cli.main import main
from bertdata.reports.page.page import write_page
from tests.bertdata.reports.test_page import HOSTILE, page_of
from tests.support.browser import Browser
from tests.support.commands import SMALL

pytestmark = pytest.mark.browser
SECTIONS = ["provenance", "left-out", "settings", "lengths", "packing-and-bins", "masks", "next-sentences"]
SECTIONS += ["unknown-words-and-word-lengths", "balance-of-shards", "frequent-and-rare-tokens", "examples"]


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def pages(corpus, small_vocabulary_file, tmp_path_factory) -> dict[str, Path]:
    """The pages of a dataset with a fault, of two side by side, and of nothing but hostile texts."""
    place = tmp_path_factory.mktemp("pages")
    for name, objective in (("one", "bert"), ("two", "mlm")):
        command = ["create", *map(str, corpus), "--vocab", str(small_vocabulary_file), *SMALL]
        assert main([*command, "--output", str(place / name), "--objective", objective]) == 0
    pages = {name: place / f"{name}.html" for name in ("dataset", "both", "hostile")}
    assert main(["report", str(place / "one"), str(place / "two"), "--output", str(pages["both"])]) == 0
    (place / "one" / "MD5SUMS").unlink()
    assert main(["report", str(place / "one"), "--output", str(pages["dataset"])]) == 1
    write_page(str(pages["hostile"]), page_of(HOSTILE))
    return pages


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("name", ["dataset", pytest.param("both", marks=pytest.mark.thorough), "hostile"])
@pytest.mark.thorough_after_first
def test_pages_ask_for_nothing_and_break_no_serious_rule(browser, pages, name, colours):
    browser.open(pages[name], colours)
    assert browser.errors() == []
    assert browser.requests() == []
    for element in browser.driver.find_elements("css selector", "details"):
        browser.run("arguments[0].open = true", element)
    assert browser.serious_findings() == []
    assert browser.errors() == []


def test_every_section_is_there_with_the_faults_on_top_in_red(browser, pages):
    browser.open(pages["dataset"])
    found = browser.run("return [...document.querySelectorAll('main > section')].map(one => one.id)")
    assert found == ["faults", *SECTIONS]
    colour = "return getComputedStyle(document.querySelector('#faults h2')).color"
    assert browser.run(colour) == "rgb(179, 38, 30)"
    assert browser.run("return document.querySelectorAll('svg.chart').length") >= 7


def test_hostile_texts_run_nothing(browser, pages):
    browser.open(pages["hostile"])
    assert browser.run("return document.scripts.length") == 1
    assert browser.run("return document.images.length") == 0
    title = browser.driver.title
    assert "<script>alert(1)</script>" in title
    assert "\\x1b[31m" in title


def test_colours_follow_the_system_and_the_button(browser, pages):
    background = "return getComputedStyle(document.documentElement).backgroundColor"
    bar = "return getComputedStyle(document.querySelector('svg.chart [style*=series-1]')).fill"
    seen = {}
    for colours in ("light", "dark"):
        browser.open(pages["dataset"], colours)
        seen[colours] = browser.run(background), browser.run(bar)
    assert seen["light"] == ("rgb(255, 255, 254)", "rgb(43, 97, 153)")
    assert seen["dark"] == ("rgb(20, 24, 29)", "rgb(128, 180, 234)")
    browser.focus("#theme")
    browser.press("ENTER")
    assert (browser.run(background), browser.run(bar)) == seen["light"]


def test_the_keyboard_reaches_content_search_pages_and_copies(browser, pages):
    browser.open(pages["dataset"])
    browser.run("navigator.clipboard.writeText = async text => { window.copied = text; }")
    browser.press("TAB", "ENTER")
    assert browser.run("return document.activeElement.id") == "main"
    browser.focus("summary")
    browser.press("ENTER")
    assert browser.run("return document.activeElement.parentElement.open")
    copy = browser.focus("[data-copies]")
    browser.press("ENTER")
    rows = browser.run("return document.getElementById(arguments[0].dataset.copies).rows.length", copy)
    copied = browser.run("return window.copied").splitlines()
    assert len(copied) == rows
    assert len({line.count("\t") for line in copied}) == 1


def test_examples_are_searched_and_turned_over_by_keyboard(browser, pages):
    browser.open(pages["dataset"])
    place = "return document.querySelector('.passages .place').textContent"
    shown = "return document.querySelectorAll('article:not([hidden])').length"
    total = browser.run("return document.querySelectorAll('article').length")
    assert browser.run(shown) == 20
    assert browser.run(place) == f"1 to 20 of {total} examples"
    browser.focus(".passages .pager [data-turn='1']")
    browser.press("ENTER")
    assert browser.run(place).startswith("21 to 40 of ")
    browser.run("document.querySelector('.passages input').focus()")
    browser.press(*"example 7")
    found = browser.run(
        "return [...document.querySelectorAll('article:not([hidden])')].map(one => one.textContent)"
    )
    assert found
    assert all("example" in text and "7" in text for text in found)
    browser.press(*" nowhere-to-be-found")
    assert browser.run(shown) == 0
    assert browser.run(place).startswith("no examples found")


def test_a_page_shows_all_its_text_without_its_script(browser, pages, tmp_path):
    text = pages["dataset"].read_text()
    start, end = text.index("<script>"), text.index("</script>")
    (tmp_path / "plain.html").write_text(text[:start] + text[end:])
    browser.open(tmp_path / "plain.html")
    assert browser.run("return document.querySelectorAll('article:not([hidden])').length") > 20
    buttons = "return [...document.querySelectorAll('button')].filter(one => one.offsetParent).length"
    assert browser.run(buttons) == 0


def test_print_is_light_and_without_controls(browser, pages):
    browser.open(pages["dataset"], "dark")
    browser.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    background = "return getComputedStyle(document.documentElement).backgroundColor"
    assert browser.run(background) == "rgb(255, 255, 254)"
    assert browser.run("return document.querySelector('nav').offsetParent") is None
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


PHONE = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
OUTSIDE = """
return [...document.querySelectorAll('body *')].filter(one => {
  const box = one.getBoundingClientRect();
  return box.width && !one.closest('.scroll, .unseen, .skip, nav, details, pre') && !one.closest('svg')
    && (box.left < -1 || box.right > innerWidth + 1);
}).map(one => one.outerHTML.slice(0, 120))
"""
ARROWS = """
return [...document.querySelectorAll('.steps > li:not(:last-child)')].map(one => {
  const box = one.getBoundingClientRect(), next = one.nextElementSibling.getBoundingClientRect();
  const arrow = getComputedStyle(one, '::after');
  const end = box.right + Math.max(0, -parseFloat(arrow.right));
  return [arrow.content, next.top >= box.bottom, end <= innerWidth];
})
"""


def test_on_a_phone_nothing_is_outside_and_arrows_point_down(browser, pages):
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        browser.open(pages["both"])
        assert browser.run("return document.documentElement.scrollWidth") <= 390
        assert browser.run(OUTSIDE) == []
        arrows = browser.run(ARROWS)
        assert len(arrows) >= 2
        assert all(arrow == ['"↓"', True, True] for arrow in arrows)
        browser.open(pages["dataset"])
        assert browser.run(OUTSIDE) == []
        assert all(arrow == ['"↓"', True, True] for arrow in browser.run(ARROWS))
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.open(pages["dataset"])
    assert all(arrow == ['"→"', False, True] for arrow in browser.run(ARROWS))
