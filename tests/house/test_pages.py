"""README and docs against the checkout: links, paths, commands, the list of rooms."""

import re
from pathlib import Path

import pytest

from bertdata.cli.main import COMMANDS
from bertdata.config.recipes import RECIPES
from tests.support.house import ORDER
from tests.support.paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "golden" / "README.md"]
PACKAGES = sorted({name.partition(".")[0] for name in ORDER})


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as Markdown renderers make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_files_and_headings_that_exist(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=page_id)
def test_pages_that_are_named_without_a_link_exist(page):
    named = set(re.findall(r"(?<![\w*/])[\w./-]+\.md\b", page.read_text(encoding="utf-8")))
    places = (page.parent, ROOT / "docs", ROOT)
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_paths_of_the_checkout_exist(page):
    named = re.findall(rf"`((?:docs|{'|'.join(PACKAGES)})/[\w./*-]*)`", page.read_text(encoding="utf-8"))
    assert [path for path in named if not list(ROOT.glob(path.rstrip("/")))] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_modules_to_be_run_exist(page):
    modules = set(re.findall(r"python -m ([\w.]+)", page.read_text(encoding="utf-8")))
    ours = {module for module in modules if module.partition(".")[0] in PACKAGES}
    paths = [ROOT / module.replace(".", "/") for module in ours]
    missing = [p for p in paths if not (p.with_suffix(".py").exists() or (p / "__main__.py").exists())]
    assert missing == []


def test_the_architecture_page_lists_the_rooms_in_their_order():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tables = [part.split("\n\n")[0] for part in text.split("| room | holds |")[1:]]
    listed = re.findall(r"^\| `([\w/.]+?)/?` \|", "\n".join(tables), re.MULTILINE)
    names = [path.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for path in listed]
    there = [name for name in ORDER if list(ROOT.glob(f"{name.replace('.', '/')}*"))]
    assert sorted(names) == sorted(there)
    for package in ("bertdata", "trainer"):
        own = [name for name in names if name.startswith(package)]
        assert own == [name for name in there if name.startswith(package)]


def test_the_page_of_commands_lists_every_command_and_recipe():
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for name in [*COMMANDS, *RECIPES]:
        assert re.search(rf"^\|.*`{name}\b.*\|", text, re.MULTILINE), name
