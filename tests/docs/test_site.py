"""The site of docs/: it is built without a warning, has every page, and its links and copy buttons work."""

import html
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pygments
import pytest
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

import bertdata
from tests.support.console_pages import blocks
from tests.support.console_pages import commands as commands_of_block
from tests.support.paths import ROOT
from tools.site_copying import add_commands_to_copy
from tools.site_pages import FILES, PAGES
from tools.site_reference import divide_docstring, make_python_page, make_section

CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_page_has_its_place() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} | set(PAGES.values())
    assert [name for name in sorted(pages) if f": {name}\n" not in CONFIGURATION] == []
    assert [pattern for pattern in FILES if not list(ROOT.glob(pattern))] == []


def highlighted(text: str, kind: str) -> str:
    """A fenced block as the site's Markdown extension writes it."""
    code = pygments.highlight(text, get_lexer_by_name(kind), HtmlFormatter(nowrap=True))
    return f'<div class="highlight"><pre><span></span><code>{code}</code></pre></div>'


def copied(page: str) -> list[str]:
    """What the copy button copies from each block that says it."""
    return [html.unescape(text) for text in re.findall(r'data-copy="([^"]*)"', page)]


def test_copying_a_console_block_copies_its_commands_alone() -> None:
    page = ROOT / "docs" / "your-own-text.md"
    consoles = [block for block in blocks(page.read_text(encoding="utf-8")) if block.kind == "console"]
    assert len(consoles) > 5
    for block in consoles:
        expected = "\n".join(command.words for command in commands_of_block(block))
        assert copied(add_commands_to_copy(highlighted(block.text, "console"))) == [expected]


def test_a_block_without_prompts_is_copied_as_it_is() -> None:
    block = highlighted("make demo   # installs\nmake test\n", "console")
    assert add_commands_to_copy(block) == block


@pytest.mark.parametrize("name", [name for name in bertdata.__all__ if name not in ("errors", "__version__")])
def test_a_function_has_a_row_with_type_and_default_for_each_parameter(name: str) -> None:
    function = getattr(bertdata, name)
    shown = make_section(name, function)
    rows = re.findall(r"^\| `(\w+)` \| `[^`]+` \| (required|`[^`]+`|) \|", shown, re.MULTILINE)
    assert [row[0] for row in rows] == list(inspect.signature(function).parameters)
    signature = shown.partition("```python\n")[2].partition("```")[0]
    assert max(map(len, signature.splitlines())) <= 88


def test_a_docstring_is_divided_into_prose_and_meanings() -> None:
    running = "Do it.\n\npath: where; may be a URL. size, width: how\nmany. DataError for a bad one."
    assert divide_docstring(running, ["path", "size", "width"]) == (
        "Do it.\n\nDataError for a bad one.",
        {"path": "where; may be a URL", "size": "how many", "width": "how many"},
    )
    listed = "Do it with size: 3.\n\npath: where\nsize: how many"
    assert divide_docstring(listed, ["path", "size"]) == (
        "Do it with size: 3.",
        {"path": "where", "size": "how many"},
    )


def test_the_page_of_functions_shows_what_a_user_calls() -> None:
    assert "request: " not in make_python_page()
    assert "AnyPath" not in make_python_page()
    assert "\ncreate(\n    parts, output, *, " in make_python_page()


def links(page: Path) -> Iterator[tuple[str, str]]:
    """The file and the anchor of each link that stays on the site."""
    for link in re.findall(r'\b(?:href|src)="([^"]+)"', page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:|//", link):
            path, _, anchor = html.unescape(link).partition("#")
            yield unquote(path.partition("?")[0]), unquote(anchor)


def dead_links(site: Path) -> list[str]:
    """Each link of the built site whose file or anchor does not exist."""
    pages = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    anchors = {page: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for page, text in pages.items()}
    dead = []
    for page in pages:
        if page.name == "404.html":  # its links begin with the site's address
            continue
        for path, anchor in links(page):
            target = (page.parent / path).resolve() if path else page
            if target.is_dir():
                target /= "index.html"
            if not target.exists() or (anchor and target in anchors and anchor not in anchors[target]):
                dead.append(f"{page.name}: {path}#{anchor}")
    return dead


@pytest.mark.thorough
def test_the_site_is_built_strictly_and_asks_nobody_for_anything(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert dead_links(tmp_path) == []
    assert copied((tmp_path / "your-own-text.html").read_text(encoding="utf-8"))
    assert "bertdata create" in (tmp_path / "flags.html").read_text(encoding="utf-8")
    assert "open_dataset" in (tmp_path / "python-reference.html").read_text(encoding="utf-8")
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "your-own-text.html" in index
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fetched = [
            line
            for line in text.splitlines()
            if 'src="http' in line or '<link rel="stylesheet" href="http' in line
        ]
        assert fetched == [], page
        assert "\\|" not in text, f"{page}: a table shows the backslash of an escaped pipe"
