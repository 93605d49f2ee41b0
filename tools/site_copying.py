"""Make the site's copy button copy a console block's commands, without prompts and output."""

import html
import re

BLOCK = re.compile(r'<div class="highlight"><pre>(?P<code>.*?)</pre></div>', re.DOTALL)
OUTPUT = re.compile(r'<span class="go">.*?</span>\n?', re.DOTALL)
PROMPT = re.compile(r'<span class="gp">\$ </span>')


def add_commands_to_copy(page: str) -> str:
    """Return the page's HTML with ``data-copy``, which mkdocs-material copies, on each block of a console."""
    return BLOCK.sub(_mark_block, page)


def _mark_block(block: re.Match[str]) -> str:
    if not PROMPT.search(block["code"]):
        return block[0]  # a block without prompts is copied as it is
    commands = html.escape(find_commands(block["code"]))
    return f'<div class="highlight" data-copy="{commands}"><pre>{block["code"]}</pre></div>'


def find_commands(code: str) -> str:
    """Return the commands of a highlighted console block."""
    without_output = PROMPT.sub("", OUTPUT.sub("", code))
    return html.unescape(re.sub(r"<[^>]+>", "", without_output)).strip()
