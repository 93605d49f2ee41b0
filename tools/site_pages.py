"""Hooks of mkdocs: pages made while the site is built, and links to files outside docs/.

README.md, CONTRIBUTING.md, CHANGELOG.md and golden/README.md become pages. The schemas become files of the
site. The page of flags shows each command's ``--help``, and the page of Python functions comes from the
docstrings of ``bertdata.__all__``. A link to a file that is not on the site becomes plain text.
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
"""Pages outside docs/, and their names on the site."""

FILES = ["schemas/*.json", "golden/shuffle/shards.txt"]
"""Files outside docs/ that pages link to."""

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
WIDTH = "100"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files that are not in docs/."""
    for source, name in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    for source in (path for pattern in FILES for path in sorted(ROOT.glob(pattern))):
        name = source.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(source)))
    files.append(File.generated(config, "flags.md", content=make_flags_page()))
    files.append(File.generated(config, "python-reference.md", content=make_python_page()))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Change links to where their targets are on the site."""
    name = page.file.src_uri
    source = next((path for path, own in PAGES.items() if own == name), f"docs/{name}")
    return _unescape_pipes(LINK.sub(lambda link: _relink(link, source, name, files), markdown))


def _unescape_pipes(markdown: str) -> str:
    """Return the page with ``|`` for each escaped pipe in the code of a table.

    GitHub shows ``\\|`` there as a pipe, Python-Markdown as two characters.
    """
    lines = (
        re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line
        for line in markdown.split("\n")
    )
    return "\n".join(lines)


def on_page_content(html: str, **_: Any) -> str:
    """Let the copy button copy the commands of a console block without prompts and output."""
    return add_commands_to_copy(html)


def _relink(link: re.Match[str], source: str, name: str, files: Files) -> str:
    """Return a link with its target on the site, or the link's text if the target is not on the site."""
    mark, words, target = link.groups()
    path, hash_sign, anchor = target.partition("#")
    if "://" in path or not path:
        return link[0]
    there = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    place = PAGES.get(there, there.removeprefix("docs/"))
    if files.get_file_from_path(place) is None:
        place = posixpath.join(place, "README.md")  # the link names a folder, which stands for its README.md
    if files.get_file_from_path(place) is None:
        return str(words) if (ROOT / there).exists() else link[0]
    return f"{mark}[{words}]({posixpath.relpath(place, posixpath.dirname(name) or '.')}{hash_sign}{anchor})"


def make_flags_page() -> str:
    """Return the page with the ``--help`` of every command."""
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
    """Return what a command prints."""
    os.environ["COLUMNS"] = WIDTH
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        call(words)
    return printed.getvalue()
