"""Functions that mkdocs calls while it builds the site: they add pages and change links.

README.md, CONTRIBUTING.md, CHANGELOG.md and golden/README.md become pages, although they are not in docs/.
The schemas become files of the site. The page of flags shows each command's ``--help``, and the page of
Python functions is made from the docstrings of ``bertdata.__all__``. A link to a file that is not on the site
becomes plain text.
"""

import contextlib
import io
import os
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from bertdata.cli.main import COMMANDS
from bertdata.cli.main import main as bertdata_main
from tools.site_copying import add_commands_to_copy
from tools.site_reference import make_python_page
from trainer.__main__ import main as trainer_main
from trainer.plugins import list_names

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "golden/README.md": "golden.md",
}
"""Pages that are not in docs/, and their names on the site."""

FILES = ["schemas/*.json", "golden/shuffle/shards.txt"]
"""Patterns of the files that are not in docs/ and to which pages link."""

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
WIDTH = "100"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files that are not in docs/ to the site's files. mkdocs calls this function."""
    for source, name in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    for source in (path for pattern in FILES for path in sorted(ROOT.glob(pattern))):
        name = source.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(source)))
    files.append(File.generated(config, "flags.md", content=make_flags_page()))
    files.append(File.generated(config, "python-reference.md", content=make_python_page()))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Return the page with its links changed to the places of their targets on the site. mkdocs calls this
    function.
    """
    name = page.file.src_uri
    source = next((path for path, own in PAGES.items() if own == name), f"docs/{name}")
    return _unescape_pipes(LINK.sub(lambda link: _relink(link, source, name, files), markdown))


def _unescape_pipes(markdown: str) -> str:
    """Return the page with ``|`` in place of each escaped pipe in code that is in a table.

    GitHub shows ``\\|`` there as a pipe, but the site's Markdown library shows both characters.
    """
    lines = (
        re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line
        for line in markdown.split("\n")
    )
    return "\n".join(lines)


def on_page_content(html: str, **_: Any) -> str:
    """Make the copy button of console blocks copy only the commands. mkdocs calls this function.

    html: the page.
    """
    return add_commands_to_copy(html)


def _relink(link: re.Match[str], source: str, name: str, files: Files) -> str:
    """Return a link with its target's place on the site.

    If the target is not on the site, return the link's text.

    source: path of the page's source in the repository.
    name: name of the page on the site.
    """
    mark, words, target = link.groups()
    path, hash_sign, anchor = target.partition("#")
    if "://" in path or not path:
        return link[0]
    there = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    place = PAGES.get(there, there.removeprefix("docs/"))
    if files.get_file_from_path(place) is None:
        # The link names a folder. Its page is the README.md in it.
        place = posixpath.join(place, "README.md")
    if files.get_file_from_path(place) is None:
        return str(words) if (ROOT / there).exists() else link[0]
    return f"{mark}[{words}]({posixpath.relpath(place, posixpath.dirname(name) or '.')}{hash_sign}{anchor})"


def make_flags_page() -> str:
    """Return the page that shows the output of ``--help`` for every command."""
    parts = ["# Flags of every command\n\nThe output of each command's `--help`, in this version.\n"]
    for title, call, words in _list_commands():
        parts.append(f"## `{title}`\n\n```text\n{_run_help(call, [*words, '--help'])}```\n")
    return "\n".join(parts)


def _list_commands() -> Iterator[tuple[str, Callable[[list[str]], int], list[str]]]:
    """Yield each command's title, the function that runs it, and its first words."""
    for name in COMMANDS:
        yield f"bertdata {name}", bertdata_main, [name]
    for name in sorted(list_names("command")):
        yield f"python -m trainer {name}", trainer_main, [name]


def _run_help(call: Callable[[list[str]], int], words: list[str]) -> str:
    """Run a command and return what it prints.

    call: function that runs the command.
    words: its arguments.
    """
    os.environ["COLUMNS"] = WIDTH
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        call(words)
    return printed.getvalue()
